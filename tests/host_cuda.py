"""CUDA kernels on the host: their source, compiled by a C++ compiler with definitions of CUDA's names.

`HostCupy` has the names that `xgrad_cupy.fused_kernels` uses, for NumPy's arrays, and refuses what CuPy refuses.
Threads of a block are threads of the host, which exchange the values of a warp, and wait for each other.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from xgrad_cupy.cuda_source import C_TYPES

COMPILER = shutil.which("g++")

SCALARS: dict[Any, Any] = {
    np.int32: ctypes.c_int,
    np.int64: ctypes.c_longlong,
    np.uint64: ctypes.c_ulonglong,
    np.float64: ctypes.c_double,
}

MATHEMATICS = """
#include <cmath>
using namespace std;

#define __device__
#define __umul64hi(a, b) ((unsigned long long)((unsigned __int128)(a) * (b) >> 64))
"""

BLOCKS = """
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#define __global__
#define __shared__ static

struct Index { unsigned x, y, z; };
static thread_local Index threadIdx;
static Index blockIdx, blockDim;
static vector<unique_ptr<barrier<>>> warps;
static unique_ptr<barrier<>> whole;
static double slots[1024];

inline void __syncthreads() { whole->arrive_and_wait(); }

template <typename V> V __shfl_xor_sync(unsigned, V value, int step) {
    unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    slots[thread] = value;
    warps[thread / 32]->arrive_and_wait();
    V other = slots[thread ^ step];
    warps[thread / 32]->arrive_and_wait();
    return other;
}

template <typename Work> void launch(long long blocks, unsigned x, unsigned y, Work work) {
    blockDim = {x, y, 1};
    for (long long block = 0; block < blocks; ++block) {
        blockIdx = {(unsigned)block, 0, 0};
        whole = make_unique<barrier<>>(x * y);
        warps.clear();
        for (unsigned k = 0; k < x * y / 32; ++k) warps.push_back(make_unique<barrier<>>(32));
        vector<jthread> threads;
        for (unsigned k = 0; k < x * y; ++k) {
            threads.emplace_back([=] {
                threadIdx = {k % x, k / x, 0};
                work();
                warps[k / 32]->arrive_and_drop();
                whole->arrive_and_drop();
            });
        }
    }
}
"""


class ElementwiseKernel:
    """CuPy's class of this name, on the host, for contiguous arrays."""

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str, *, options: tuple[str, ...] = ()
    ) -> None:
        self.ins, self.outs = ([text.split() for text in params.split(",")] for params in (in_params, out_params))
        self.operation, self.name = operation, name
        assert all(len(kind) == 1 or kind in C_TYPES for kind, _ in self.ins + self.outs), name

    def __call__(self, *args: Any) -> Any:
        assert len(args) in (len(self.ins), len(self.ins) + len(self.outs)), self.name
        params = (self.ins + self.outs)[: len(args)]
        arrays = [(kind, x) for (kind, _), x in zip(params, args, strict=True) if isinstance(x, np.ndarray)]
        types: dict[str, str] = {}
        for kind, x in reversed(arrays):  # results first
            expected = kind if kind in C_TYPES else types.setdefault(kind, x.dtype.name)
            if x.dtype.name != expected:
                raise TypeError(f"Type is mismatched. {self.name} {x.dtype} {expected}")
        if not arrays:
            raise ValueError("Loop size is undecided.")
        shape = np.broadcast_shapes(*[x.shape for _, x in arrays])
        dtypes = [types.get(kind, kind) for kind, _ in self.ins + self.outs]
        count = len(self.ins)
        results = list(args[count:]) or [np.full(shape, 77, dtype) for dtype in dtypes[count:]]
        if any(x.shape != shape for x in results):
            raise ValueError("Out shape is mismatched")
        assert all(x.flags.c_contiguous for x in results), "no copy of a result"
        pairs = zip(args[:count], dtypes[:count], strict=True)
        held = [np.ascontiguousarray(np.broadcast_to(np.asarray(x, dtype), shape)) for x, dtype in pairs] + results
        if results[0].size:
            pointers = (ctypes.c_void_p * len(held))(*[x.ctypes.data for x in held])
            compiled(self.code(types))[self.name](pointers, ctypes.c_longlong(results[0].size))
        return results[0] if len(results) == 1 else tuple(results)

    def code(self, types: dict[str, str], before: str = MATHEMATICS) -> str:
        """Return the source for given types, as a function of pointers and the number of elements."""
        lines = [before, *[f"typedef {C_TYPES[types[kind]]} {kind};" for kind in sorted(types)]]
        lines += [f'extern "C" void {self.name}(void **at, long long n) {{', "for (long long i = 0; i < n; ++i) {"]
        for k, (kind, name) in enumerate(self.ins + self.outs):
            const, ctype = "const " if k < len(self.ins) else "", C_TYPES.get(kind, kind)
            lines.append(f"{const}{ctype} &{name} = (({ctype} *)at[{k}])[i]; (void){name};")
        return "\n".join([*lines, self.operation + ";", "}", "}"])


class RawKernel:
    """CuPy's class of this name, on the host."""

    def __init__(self, code: str, name: str) -> None:
        self.code, self.name = code, name

    def __call__(self, grid: tuple[int], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        width, height = (*block, 1)[:2]
        assert 0 < grid[0] < 2**31 and width % 32 == 0 and width * height <= 1024
        passed: list[Any] = []
        for x in args:
            if x is None:
                passed.append(ctypes.c_void_p())
            elif isinstance(x, np.ndarray):
                assert x.flags.c_contiguous, f"{self.name}: strides are ignored"
                passed.append(ctypes.c_void_p(x.ctypes.data))
            else:
                passed.append(SCALARS[type(x)](x.item()))
        code, counts = MATHEMATICS + BLOCKS + self.code, dict[str, int]()
        for name, parameters in re.findall(r"__global__ void (\w+)\(([^)]*)\)", self.code):
            names = re.findall(r"(\w+)\s*(?:,|$)", parameters)
            counts[name] = len(names)
            run = f"launch(blocks, width, height, [=] {{ {name}({', '.join(names)}); }});"
            code += f'extern "C" void run_{name}(long long blocks, int width, int height, {parameters}) {{ {run} }}\n'
        assert counts[self.name] == len(args), f"{self.name}: got {len(args)} arguments for {counts[self.name]}"
        compiled(code)[f"run_{self.name}"](ctypes.c_longlong(grid[0]), width, height, *passed)


class HostCupy:
    """CuPy's names, on the host."""

    ElementwiseKernel, RawKernel = ElementwiseKernel, RawKernel
    ndarray = np.ndarray
    moveaxis = staticmethod(np.moveaxis)
    ascontiguousarray = staticmethod(np.ascontiguousarray)

    @staticmethod
    def empty(shape: Any, dtype: Any) -> np.ndarray:
        return np.full(shape, 77, dtype)  # visible if not overwritten

    @staticmethod
    def empty_like(x: Any) -> np.ndarray:
        return np.full_like(x, 77)


folder: Path | None = None  # of compiled libraries
_loaded: dict[str, Any] = {}


def compiled(code: str) -> Any:
    """Return the library of a source, compiled without fused multiply-add."""
    assert folder is not None and COMPILER is not None
    name = hashlib.sha256(code.encode()).hexdigest()[:16]
    library = folder / f"{name}.so"
    if name not in _loaded and not library.exists():
        path = folder / f"{name}-{os.getpid()}.cpp"  # another worker may compile the same
        path.write_text(code)
        flags = ["-std=c++20", "-O0", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused-function"]
        flags += ["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-pthread", "-shared", "-fPIC"]
        made = path.with_suffix(".so")
        done = subprocess.run([COMPILER, *flags, "-o", made, path], capture_output=True, text=True, check=False)
        assert not done.returncode, f"{done.stderr}\n{code}"
        made.replace(library)
    if name not in _loaded:
        _loaded[name] = ctypes.CDLL(str(library))
    return _loaded[name]
