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
from collections.abc import Iterator
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
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#define __global__
#define __shared__ static

struct Place { unsigned x, y, z; };
static thread_local Place threadIdx;
static Place blockIdx, blockDim;

struct Barrier {  // of threads, some of which may have ended
    mutex lock;
    condition_variable all;
    int expected, arrived = 0, round = 0;
    explicit Barrier(int count) : expected(count) {}
    void wait(bool leave = false) {
        unique_lock<mutex> held(lock);
        expected -= leave;
        arrived += !leave;
        int mine = round;
        if (arrived == expected) {
            arrived = 0;
            ++round;
            all.notify_all();
        } else if (!leave) {
            all.wait(held, [&] { return round != mine; });
        }
    }
};

static vector<Barrier *> warps;
static Barrier *whole;
static double slots[1024];

inline unsigned number() { return threadIdx.y * blockDim.x + threadIdx.x; }
inline void __syncthreads() { whole->wait(); }

template <typename V> V __shfl_xor_sync(unsigned, V value, int step) {
    unsigned mine = number();
    slots[mine] = value;
    warps[mine / 32]->wait();
    V found = slots[mine ^ step];
    warps[mine / 32]->wait();
    return found;
}

template <typename Work> void launch(long long blocks, unsigned x, unsigned y, Work work) {
    blockDim = {x, y, 1};
    for (long long block = 0; block < blocks; ++block) {
        blockIdx = {(unsigned)block, 0, 0};
        Barrier every(x * y);
        whole = &every;
        for (unsigned k = 0; k < x * y / 32; ++k) warps.push_back(new Barrier(32));
        vector<thread> threads;
        for (unsigned k = 0; k < x * y; ++k) {
            threads.emplace_back([=] {
                threadIdx = {k % x, k / x, 0};
                work();
                warps[k / 32]->wait(true);
                whole->wait(true);
            });
        }
        for (thread &one : threads) one.join();
        for (Barrier *warp : warps) delete warp;
        warps.clear();
    }
}
"""


class Parameter:
    """A parameter of an elementwise kernel, as CuPy reads it: a dtype, or one letter for any."""

    def __init__(self, text: str) -> None:
        *words, self.type, self.name = text.split()
        assert set(words) <= {"raw"} and self.name not in ("i", "n"), text
        self.raw = "raw" in words
        assert len(self.type) == 1 or self.type in C_TYPES, text

    def dtype(self, types: dict[str, str]) -> np.dtype:
        return np.dtype(types.get(self.type, self.type))


class ElementwiseKernel:
    """CuPy's class of this name, on the host."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str,
        *,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        self.ins = [Parameter(text) for text in in_params.split(",")]
        self.outs = [Parameter(text) for text in out_params.split(",")]
        self.operation, self.name, self.preamble = operation, name, preamble

    def __call__(self, *args: Any) -> Any:
        assert len(args) in (len(self.ins), len(self.ins) + len(self.outs)), self.name
        params = self.ins + self.outs[: len(args) - len(self.ins)]
        types: dict[str, str] = {}
        for p, x in reversed(list(zip(params, args, strict=True))):  # results decide first
            if isinstance(x, np.ndarray) and types.setdefault(p.type, x.dtype.name) != x.dtype.name != p.type:
                raise TypeError(f"Type is mismatched. {p.name} {x.dtype} {types[p.type]}")
            if isinstance(x, np.ndarray) and p.type in C_TYPES and x.dtype.name != p.type:
                raise TypeError(f"Type is mismatched. {p.name} {x.dtype} {p.type}")
        shapes = [x.shape for p, x in zip(params, args, strict=True) if not p.raw and isinstance(x, np.ndarray)]
        if not shapes:
            raise ValueError("Loop size is undecided.")
        shape = np.broadcast_shapes(*shapes)
        given = list(args)
        if len(args) == len(self.ins):
            assert not any(p.raw for p in self.outs), "Output array size is Undecided"
            given += [np.full(shape, 77, p.dtype(types)) for p in self.outs]
        results = given[len(self.ins) :]
        for p, x in zip(self.outs, results, strict=True):
            if not p.raw and x.shape != shape:
                raise ValueError("Out shape is mismatched")
        size = int(np.prod(shape))
        if size:
            held = list(self._held(given, types, shape))
            run = compiled(self.code(types))[self.name]
            strides = [0 if p.raw or not x.ndim else x.strides[-1] for p, x in self._pairs(held)]
            pointers = (ctypes.c_void_p * len(held))(*[x.ctypes.data for x in held])
            run(pointers, (ctypes.c_longlong * len(held))(*strides), ctypes.c_longlong(size))
        return results[0] if len(results) == 1 else tuple(results)

    def _pairs(self, values: list[Any]) -> Iterator[tuple[Parameter, Any]]:
        return zip(self.ins + self.outs, values, strict=True)

    def _held(self, given: list[Any], types: dict[str, str], shape: tuple[int, ...]) -> Iterator[np.ndarray]:
        """Yield what the kernel reads and writes: of one axis, or in C order."""
        for number, (p, x) in enumerate(self._pairs(given)):
            if not isinstance(x, np.ndarray):
                assert not p.raw, f"{self.name}: a number for the raw parameter {p.name}"
                yield np.array(x, p.dtype(types))
            elif number < len(self.ins):
                yield np.ascontiguousarray(x if p.raw else np.broadcast_to(x, shape))
            else:
                assert x.flags.c_contiguous or (x.ndim == 1 and not p.raw), "no copy of a result"
                yield x

    def code(self, types: dict[str, str], before: str = MATHEMATICS) -> str:
        """Return the source for given types, as a function of pointers, strides in bytes and the number of elements."""
        lines = [before]
        lines += [f"typedef {C_TYPES[types[t]]} {t};" for t in sorted(types) if len(t) == 1]
        lines += [self.preamble, f'extern "C" void {self.name}(char **at, const long long *by, long long n) {{']
        for k, p in enumerate(self.ins + self.outs):
            const = "const " if p in self.ins else ""
            if p.raw:
                lines.append(
                    f"{const}{C_TYPES.get(p.type, p.type)} *{p.name} = ({C_TYPES.get(p.type, p.type)} *)at[{k}];"
                )
        lines.append("for (long long i = 0; i < n; ++i) {")
        for k, p in enumerate(self.ins + self.outs):
            const, kind = "const " if p in self.ins else "", C_TYPES.get(p.type, p.type)
            if not p.raw:
                lines.append(f"{const}{kind} &{p.name} = *({kind} *)(at[{k}] + i * by[{k}]); (void){p.name};")
        return "\n".join([*lines, self.operation + ";", "}", "}"])


class RawKernel:
    """What CuPy's class of this name does with a kernel, on the host."""

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
        return np.full(shape, 77, dtype)  # which is noticed where it is not written to

    @staticmethod
    def empty_like(x: Any) -> np.ndarray:
        return np.full_like(x, 77)


folder: Path | None = None  # where libraries are kept
_loaded: dict[str, Any] = {}


def compiled(code: str) -> Any:
    """Return the library of a source, compiled without joining a product and a sum into one operation."""
    assert folder is not None and COMPILER is not None
    name = hashlib.sha256(code.encode()).hexdigest()[:16]
    library = folder / f"{name}.so"
    if name not in _loaded and not library.exists():
        path = folder / f"{name}-{os.getpid()}.cpp"  # another worker may compile the same
        path.write_text(code)
        flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused-function"]
        flags += ["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-pthread", "-shared", "-fPIC"]
        made = path.with_suffix(".so")
        done = subprocess.run([COMPILER, *flags, "-o", made, path], capture_output=True, text=True, check=False)
        assert not done.returncode, f"{done.stderr}\n{code}"
        made.replace(library)
    if name not in _loaded:
        _loaded[name] = ctypes.CDLL(str(library))
    return _loaded[name]
