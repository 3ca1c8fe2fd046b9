"""Print the major version of the newest CUDA that the NVIDIA driver supports.

``python benchmarks/cuda_major.py`` needs nothing but the driver, so that CuPy for this version can
be installed.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

LIBRARY = "libcuda.so.1"
OLDEST, NEWEST = 12, 13  # of the extras cuda12 and cuda13


def cuda_major(load: Any = ctypes.CDLL) -> int:
    """Return the major version of the CUDA extra for this machine.

    If something is missing, RuntimeError tells what.
    """
    try:
        driver = load(LIBRARY)
    except OSError as error:
        raise RuntimeError(
            f"no NVIDIA driver ({LIBRARY}): install one, and see that nvidia-smi finds the GPU"
        ) from error
    count, version = ctypes.c_int(), ctypes.c_int()
    for status in (
        driver.cuDriverGetVersion(ctypes.byref(version)),
        driver.cuInit(0),
        driver.cuDeviceGetCount(ctypes.byref(count)),
    ):
        if status:
            raise RuntimeError(
                f"the NVIDIA driver finds no GPU (CUDA error {status}): see nvidia-smi"
            )
    major = version.value // 1000
    if major < OLDEST:
        raise RuntimeError(
            f"expected a driver for CUDA {OLDEST} or newer, got one for CUDA {major}: update it"
        )
    return min(major, NEWEST)


if __name__ == "__main__":
    try:
        print(cuda_major())
    except RuntimeError as error:
        sys.exit(f"gpu-check: {error}")
