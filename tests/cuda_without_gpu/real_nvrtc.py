"""Compile sources by NVIDIA's NVRTC, in a process without the emulation.

Usage: ``python real_nvrtc.py LIBRARY``. The standard input has a list of compilations as JSON: a
source, and lists of options. The output has, for each, whether the machine code is the same with
all of these lists.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from pathlib import Path
from typing import Any


def compiled(nvrtc: Any, source: str, options: list[str]) -> bytes:
    """Return a cubin."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    array = (ctypes.c_char_p * len(options))(*[x.encode() for x in options])
    assert not nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None
    )
    if nvrtc.nvrtcCompileProgram(program, len(options), array):
        log = ctypes.create_string_buffer(1 << 20)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(f"{log.value.decode()}\n{source}")
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


def machine_code(cubin: bytes) -> list[bytes]:
    """Return the sections with code of a cubin, which is a file in ELF64."""
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    texts = sections[names][4]
    return [cubin[x[4] : x[4] + x[5]] for x in sections if cubin.startswith(b".text", texts + x[0])]


def main(library: str) -> None:
    for path in Path(library).parent.glob("libnvrtc-builtins.so*"):
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(library)
    same = []
    for source, variants in json.load(sys.stdin):
        codes = [machine_code(compiled(nvrtc, source, options)) for options in variants]
        assert all(codes)
        same.append(codes.count(codes[0]) == len(codes))
    print(json.dumps(same))


if __name__ == "__main__":
    main(sys.argv[1])
