"""``xgrad info``: versions, usable devices, CUDA, native kernels, data folders."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import xgrad
from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.backend.devices import LISTED, device_types, in_use
from xgrad.backend.registry import PlugInErrors, backend_class, device_count, open_backend
from xgrad.backend.threads import blas_libraries
from xgrad.cli.arguments import Parser
from xgrad.data import DataError, DataNotFoundError, mnist
from xgrad.support.units import size
from xgrad_numpy.native import library

REQUIRED = ("numpy", "array-api-compat", "safetensors")
OPTIONAL = (
    "scipy",
    "tqdm",
    "matplotlib",
    "pillow",
    "threadpoolctl",
    "jinja2",
    "mpmath",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "array-api-strict",
    "dask",
    "jax",
    "mlx",
    "mpi4py",
    "mpich",
    "ndonnx",
    "onnxruntime",
    "tensorboardx",
    "torch",
    "ziglang",
)


def run(argv: Sequence[str]) -> int:
    """Print the report."""
    parser = Parser(
        "info",
        "",
        "Print versions, usable devices and their memory, why others are not usable, CUDA, and data"
        " folders.",
    )
    parser.add_argument("--json", action="store_true", default=False, help="print JSON")
    every = "open every installed array library, to list its devices; some take memory of a GPU"
    parser.add_argument("--open", action="store_true", default=False, help=every)
    args = parser.parse_args(argv)
    report = gather(args.open)
    print(json.dumps(report, indent=2) if args.json else as_text(report))
    return 0


def versions() -> dict[str, str | None]:
    """Return the versions of xgrad, Python and the packages that xgrad uses; None if missing."""
    installed: dict[str, str | None] = {
        "xgrad": xgrad.__version__,
        "python": platform.python_version(),
    }
    for package in (*REQUIRED, *OPTIONAL):
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            installed[package] = None
    return installed


def blas() -> list[dict[str, Any]] | str:
    """Return name, version and number of threads of each BLAS library in use.

    If the libraries are unknown, return the reason.
    """
    try:
        return [
            {
                "library": library["internal_api"],
                "version": library["version"],
                "threads": library["num_threads"],
            }
            for library in blas_libraries()
        ]
    except (ImportError, RuntimeError) as error:
        return f"not known: {str(error).partition(': ')[2]}"


def cuda() -> dict[str, Any] | str:
    """Return the versions of CuPy, CUDA's runtime and the driver, and whether TF32 is on.

    If these are unknown, return the reason.
    """
    try:
        backend = open_backend("cuda")
        with PlugInErrors("cuda"):
            return backend.versions() | {"tf32": backend.tf32}
    except DeviceError as error:
        return f"driver, runtime, TF32 and memory pools are not known: {_reason('cuda', error)}"


def _reason(kind: str, error: DeviceError) -> str:
    return str(error).removeprefix(f"{kind}: ")


def gather(every: bool = False) -> dict[str, Any]:
    """Return versions, devices, CUDA and data for JSON.

    If `every` is false, only libraries of device types that `xgrad.devices` lists, or that are in
    use, are opened; ``"usable"`` is None for the others.
    """
    devices: list[dict[str, Any]] = []
    for kind in device_types():
        try:
            if not (every or kind in LISTED or in_use(kind)):
                devices.append({"name": kind, "usable": None, "description": unopened(kind)})
                continue
            backend = open_backend(kind)
            names = [Device(f"{kind}:{i}") for i in range(device_count(kind))]
            with PlugInErrors(kind):
                devices += [
                    {
                        "name": str(device),
                        "usable": True,
                        "description": str(backend.describe(device.index)),
                    }
                    | ({"memory": memory} if (memory := device.memory()) else {})
                    for device in names
                ]
        except DeviceError as error:
            devices.append({"name": kind, "usable": False, "description": _reason(kind, error)})
    try:
        images = mnist(download=False)
        source = os.environ.get("XGRAD_DATA") or "the user's cache"
        data = f"{len(images.train)} training and {len(images.test)} test images, found in {source}"
    except (DataError, OSError) as error:
        if isinstance(error, DataNotFoundError) and error.folders:
            data = f"not found in {error.folders[-1]}"
        else:
            data = f"not usable: {str(error).partition(';')[0]}"
    return {
        "versions": versions(),
        "platform": platform.platform(),
        "blas": blas(),
        "devices": devices,
        "cuda": cuda(),
        "native": library.describe(),
        "data": {
            "XGRAD_DATA": os.environ.get("XGRAD_DATA"),
            "mnist": data,
            "digits": "1797 images that come with xgrad",
        },
    }


def unopened(kind: str) -> str:
    """Return the description of a device type whose library is installed.

    Raise DeviceError if the library is not installed.
    """
    library = backend_class(kind).library
    if find_spec(library) is None:
        raise DeviceError(f"{kind}: the package {library} is missing")
    return f"{library} is installed: `xgrad info --open` tests it"


def as_text(report: dict[str, Any]) -> str:
    """Return the report as text."""
    libraries, cuda = report["blas"], report["cuda"]
    if not isinstance(libraries, str):
        libraries = [
            _line(x["library"], f"{x['version']}, threads: {x['threads']}") for x in libraries
        ]
    if not isinstance(cuda, str):
        cuda = [
            _line(name, {True: "on", False: "off"}.get(value, value))
            for name, value in cuda.items()
        ]
    devices = []
    for device in report["devices"]:
        devices.append(
            _line(
                device["name"], "not usable: " * (device["usable"] is False) + device["description"]
            )
        )
        if memory := device.get("memory"):
            figures = ", ".join(f"{size(count)} {name}" for name, count in memory.items())
            devices.append(_line("", f"memory: {figures}"))
    sections = {
        "versions": [
            _line(name, version or "not installed") for name, version in report["versions"].items()
        ],
        "BLAS": libraries,
        "devices": devices,
        "CUDA": cuda,
        "native kernels": report["native"],
        "data": [_line(name, text or "not set") for name, text in report["data"].items()],
    }
    lines = [f"xgrad on {report['platform']}"]
    for title, section in sections.items():
        lines += ["", title, *([f"  {section}"] if isinstance(section, str) else section)]
    return "\n".join(lines)


def _line(name: str, text: str) -> str:
    return f"  {name:18}{text}"
