"""Compile sources by NVIDIA's NVRTC, in a process without the emulation: ``python real_nvrtc.py LIBRARY``.

The standard input has a list of sources with their options, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

ARCHITECTURES = 75, 90, 120


def compile_source(nvrtc: Any, source: str, options: list[str]) -> None:
    program = ctypes.c_void_p()
    array = (ctypes.c_char_p * len(options))(*[x.encode() for x in options])
    assert not nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    if nvrtc.nvrtcCompileProgram(program, len(options), array):
        log = ctypes.create_string_buffer(1 << 20)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(f"{log.value.decode()}\n{source}")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def main(library: str) -> None:
    for path in Path(library).parent.glob("libnvrtc-builtins.so*"):
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(library)
    for source, options in json.load(sys.stdin):
        for architecture in ARCHITECTURES:
            compile_source(nvrtc, source, [*options, f"-arch=sm_{architecture}"])


if __name__ == "__main__":
    main(sys.argv[1])
