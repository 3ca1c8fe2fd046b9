"""The environment of a measurement: hardware, versions and variables.

The variables are equal for all peers.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("numpy", "torch", "jax", "jaxlib", "scikit-learn", "mygrad", "autograd", "scipy")
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NPROC",
)
#: Variables that override a library's choice of kernels; they are not passed on to the peers.
KERNELS = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
    "NPY_DISABLE_CPU_FEATURES",
    "XLA_FLAGS",
)
REPORTED = (
    "MALLOC_",
    "GLIBC_",
    "PYTHONMALLOC",
    "LD_PRELOAD",
    "OMP_",
    "KMP_",
    "GOMP_",
    "OPENBLAS_",
    "MKL_",
    "XLA_",
    "JAX_",
    "TORCH",
    "CUDA_VISIBLE",
    "CUPY_",
    "NVIDIA_TF32",
    "VECLIB_",
    "NPROC",
)


def for_workers(threads: int, device: str, tree: Path = ROOT, tf32: bool = False) -> dict[str, str]:
    """Return the environment of the peers' processes.

    It has a number of threads for each library (NPROC is XLA's variable), and the xgrad of a tree.
    Each library chooses its kernels by itself: `KERNELS` are not passed on.
    """
    own = dict.fromkeys(THREADS, str(threads))
    if device != "cpu" and not tf32:
        own["NVIDIA_TF32_OVERRIDE"] = "0"  # no TF32 in NVIDIA's libraries
    own |= {
        "JAX_PLATFORMS": "cpu" if device == "cpu" else "",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    folders = [str(tree), *([str(tree / "backends"), str(ROOT)] if tree != ROOT else [])]
    path = os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])
    # PYTHONDONTWRITEBYTECODE is not passed on: an editable installation writes bytecode at its
    # first import, which installed libraries have already.
    inherited = {
        name: text
        for name, text in os.environ.items()
        if name not in (*KERNELS, "PYTHONDONTWRITEBYTECODE")
    }
    return {**inherited, **own, "PYTHONPATH": path}


def describe(env: Mapping[str, str]) -> dict[str, str]:
    """Return hardware, versions, the peers' relevant variables, commit and date."""
    config: Any = np.show_config  # typed as returning None
    blas = config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "CPU": f"{cpu()}, {cores()} cores for us, load {load()} at the start",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": ", ".join(versions(PACKAGES)),
        "BLAS of NumPy": f"{blas.get('name')} {blas.get('version')}",
        "variables": ", ".join(variables(env)) or "none that matter",
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
    }


def cpu() -> str:
    """Return the name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> str:
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"


def versions(packages: Iterable[str]) -> list[str]:
    """Return installed packages with their versions."""
    installed = []
    for package in packages:
        try:
            installed.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return installed


def variables(env: Mapping[str, str]) -> list[str]:
    """Return the environment variables that change memory, threads or kernels."""
    relevant = {name: text for name, text in sorted(env.items()) if name.startswith(REPORTED)}
    return [f"{name}={Path(text).name if '/' in text else text}" for name, text in relevant.items()]


def commit() -> str:
    """Return the commit, with a note if tracked files differ from it."""
    changed = output_of("git", "status", "--porcelain", "--untracked-files=no")
    return (output_of("git", "rev-parse", "HEAD") or "unknown") + (", changed" if changed else "")


def output_of(*command: str) -> str | None:
    """Return the output of a command in the repository, None if it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
