"""Opening of CuPy and the GPUs, with errors that name the missing part."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from xgrad.backend import DeviceError

_INSTALL = "pip install 'xgrad[cuda13]', or 'xgrad[cuda12]' for an NVIDIA driver older than 580"
_NO_DEVICE, _INSUFFICIENT_DRIVER = 100, 35  # of cudaError_t


def open_cupy() -> tuple[Any, int]:
    """Return CuPy and the number of GPUs, after a test computation.

    Raises DeviceError, which names the missing part.
    """
    try:
        cp: Any = import_module("cupy")
    except ModuleNotFoundError as error:
        if error.name == "cupy":
            raise DeviceError(f"cuda: the package CuPy is missing: {_INSTALL}") from error
        raise DeviceError(f"cuda: CuPy lacks a package: {_reason(error)}: {_INSTALL}") from error
    except Exception as error:
        raise DeviceError(f"cuda: CuPy does not load: {_reason(error)}: {_INSTALL}") from error
    runtime = cp.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except Exception as error:
        status = getattr(error, "status", None)
        if status == _INSUFFICIENT_DRIVER and not runtime.driverGetVersion():
            raise DeviceError(
                "cuda: no NVIDIA driver: install one, and see that nvidia-smi finds the GPU"
            ) from error
        if status == _INSUFFICIENT_DRIVER:
            has = version_text(runtime.driverGetVersion())
            needs = version_text(runtime.runtimeGetVersion())
            raise DeviceError(
                f"cuda: the NVIDIA driver knows CUDA up to {has}, CuPy was built for {needs}:"
                " update the driver, or uninstall this CuPy and pip install 'xgrad[cuda12]'"
            ) from error
        if status != _NO_DEVICE:
            raise DeviceError(
                f"cuda: the NVIDIA driver fails: {_reason(error)}: see nvidia-smi"
            ) from error
        count = 0
    if not count:
        raise DeviceError("cuda: no GPU: see nvidia-smi, and whether CUDA_VISIBLE_DEVICES hides it")
    try:
        ones = cp.ones((2, 2), dtype=np.float32)
        correct = (ones @ ones + ones).get().tolist() == [[3, 3], [3, 3]]
    except Exception as error:
        raise DeviceError(
            f"cuda: there is a GPU, but CuPy fails on it: {_reason(error)}: if CUDA's libraries are"
            f" missing, {_INSTALL}"
        ) from error
    if not correct:
        raise DeviceError(
            "cuda: CuPy's results on this GPU are wrong: see that driver, CUDA and CuPy fit"
            " together"
        )
    return cp, count


def version_text(number: int) -> str:
    """Return the version "12.8" for CUDA's number 12080."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _reason(error: Exception) -> str:
    """Return the line of an error that has the cause: CuPy adds frames and advice around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =")]
    if "Original error:" in lines[:-1]:
        return lines[lines.index("Original error:") + 1]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
