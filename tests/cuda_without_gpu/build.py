"""Build of the emulation of CUDA.

It consists of libraries in place of CUDA's, and of CuPy's modules that have CUDA's runtime linked
in.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
CUPY = "14.2.0"

#: In place of CUDA's libraries: file name, sources, and a module of CuPy that is linked to more
#: functions, with the prefix of their names. These functions print that they are not covered, and
#: fail.
LIBRARIES: dict[str, tuple[list[str], str, str]] = {
    "libcuda.so.1": (["driver.cpp", "blocks.cpp", "freed.cpp"], "", ""),
    "libnvrtc.so.13": (["nvrtc.cpp"], "", ""),
    "libnvJitLink.so.13": ([], "", ""),
    "libcublasLt.so.13": ([], "", ""),
    "libcublas.so.13": (["cublas.cpp"], "cupy_backends.cuda.libs.cublas", "cublas"),
    "libcufft.so.12": (["cufft.cpp"], "cupy.cuda.cufft", "cufft"),
    "libcurand.so.10": ([], "cupy_backends.cuda.libs.curand", "curand"),
    "libcusolver.so.12": (["cusolver.cpp"], "cupy_backends.cuda.libs.cusolver", "cusolver"),
    "libcusparse.so.12": ([], "cupy_backends.cuda.libs.cusparse", "cusparse"),
}

#: Modules of CuPy that contain CUDA's runtime, compiled again from their source, with sources in
#: place of device code.
MODULES: dict[str, list[str]] = {
    "cupy_backends.cuda.api.runtime": [],
    "cupy.cuda.cub": ["device_algorithms.cpp"],
    "cupy.cuda.thrust": ["device_algorithms.cpp"],
}

FLAGS = ["-std=c++17", "-O2", "-ftree-vectorize", "-Wall", "-fPIC"]
KERNEL_FLAGS = ["-std=c++20", "-O1", "-w", "-fPIC", "-fwhole-program", "-ffp-contract=off"]


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Return the output of a command; its errors are shown."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"{shlex.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}"
        )
    return done.stdout


def site() -> Path:
    return Path(sysconfig.get_path("purelib"))


def module_file(name: str) -> Path:
    """Return the file of an extension module, without an import of its package."""
    (path,) = site().joinpath(*name.split(".")[:-1]).glob(name.rpartition(".")[2] + ".*.so")
    return path


def compiler() -> str:
    found = shutil.which("g++")
    if found is None:
        raise SystemExit("cuda_without_gpu: expected g++")
    return found


def cuda_headers() -> Path:
    return site() / "nvidia/cu13/include"


def build(folder: Path) -> None:
    """Build everything into a folder, and install CuPy's rebuilt modules.

    They are installed in the environment that runs this program.
    """
    library, objects, source = folder / "lib", folder / "objects", cupy_source(folder)
    for path in (library, objects, folder / "include"):
        path.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = pool.submit(kernel_headers, folder)
        rebuilt = {name: pool.submit(compile_module, name, source, objects) for name in MODULES}
        files = {
            path.name: pool.submit(compile_file, path, objects, source)
            for path in HERE.glob("*.cpp")
        }
        for name, (needed, module, prefix) in LIBRARIES.items():
            parts = [files[file].result() for file in needed]
            if prefix:
                parts += [
                    missing(module_file(module), prefix, objects, parts),
                    library / "libcuda.so.1",
                ]
            link(library / name, parts)
        for name, needed in MODULES.items():
            parts = [
                rebuilt[name].result(),
                *[files[file].result() for file in needed],
                library / "libcuda.so.1",
            ]
            made = objects / module_file(name).name
            run(
                compiler(),
                "-shared",
                "-fPIC",
                "-w",
                missing(parts[0], "cuda", objects, parts),
                *parts,
                "-o",
                made,
            )
            # Replaced, not overwritten: a process that runs with the old file has its pages mapped,
            # and would crash
            os.replace(shutil.copy(made, f"{module_file(name)}.new"), module_file(name))
        headers.result()
    folder.joinpath("version").write_text(f"// {version()}\n")  # last: what says that all is built


def compile_file(path: Path, objects: Path, source: Path, *flags: str) -> Path:
    """Compile a source to an object."""
    target, cupy = objects / f"{path.stem}.o", site() / "cupy/_core/include/cupy/_cccl"
    paths = [
        HERE / "include",
        cuda_headers(),
        cupy / "thrust",
        cupy / "libcudacxx",
        source / "cupy/cuda",
    ]
    include = [f"-I{each}" for each in [*paths, sysconfig.get_path("include")]]
    run(compiler(), *FLAGS, *flags, *include, "-c", path, "-o", target)
    return target


def compile_module(name: str, source: Path, objects: Path) -> Path:
    """Compile a module of CuPy from its source."""
    path = source.joinpath(*name.split("."))
    run(
        sys.executable,
        "-c",
        CYTHONIZE,
        name,
        path.relative_to(source).with_suffix(".pyx"),
        cwd=source,
    )
    return compile_file(path.with_suffix(".cpp"), objects, source, "-O1", "-w")


def link(target: Path, parts: list[Path]) -> None:
    """Link a shared library, with versions of its symbols, which CuPy's modules ask for."""
    versions = target.with_suffix(".map")
    versions.write_text(f"{target.name} {{ global: *; }};\n")
    options = [
        "-shared",
        "-fPIC",
        "-w",
        f"-Wl,-soname,{target.name}",
        f"-Wl,--version-script={versions}",
    ]
    run(compiler(), *options, *parts, "-o", target, "-ldl")
    versions.unlink()


def cupy_source(folder: Path) -> Path:
    """Return the folder of CuPy's source, downloaded if it is not there."""
    source = folder / f"cupy-{CUPY}"
    if not source.exists():
        options = [
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--no-binary",
            ":all:",
            "--dest",
            folder,
        ]
        os.environ["CUPY_INSTALL_USE_STUB"] = "1"  # or its setup looks for CUDA
        run(sys.executable, "-m", "pip", "download", *options, f"cupy=={CUPY}")
        with tarfile.open(folder / f"cupy-{CUPY}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return source


CYTHONIZE = """
import sys
from Cython.Build import cythonize
from setuptools import Extension
name, path = sys.argv[1:]
directives = dict(embedsignature=True, c_api_binop_methods=True, binding=False)
directives |= {"freethreading_compatible": True, "warn.deprecated.IF": False}
known = dict(CUPY_USE_CUDA_PYTHON=False, CUPY_CUFFT_STATIC=False)
known |= dict(CUPY_CUDA_VERSION=13020, CUPY_HIP_VERSION=0)
extension = Extension(name, [path], language="c++")
options = dict(compiler_directives=directives, compile_time_env=known)
cythonize([extension], language_level=3, quiet=True, **options)
"""


def missing(module: Path, prefix: str, objects: Path, parts: list[Path]) -> Path:
    """Return a source with the functions that a module needs and other parts lack."""

    def symbols(path: Path, kind: str) -> set[str]:
        dynamic = ["-D"] if ".so" in path.name else []
        return set(re.findall(rf" {kind} ({prefix}[A-Z]\w*)", run("nm", *dynamic, path)))

    path = objects / f"missing_{module.name.partition('.')[0]}.cpp"
    refuse = '{ fprintf(stderr, "cuda_without_gpu: %s is not covered\\n"); return 801; }'
    names = sorted(symbols(module, "U").difference(*[symbols(part, "T") for part in parts]))
    path.write_text(
        "#include <cstdio>\n"
        + "".join(f'extern "C" int {name}(...) {refuse % name}\n' for name in names)
    )
    return path


def kernel_headers(folder: Path) -> None:
    """Precompile the headers of kernels, and write the command of the compiler."""
    cupy = site() / "cupy/_core/include"
    paths = [
        folder / "include",
        HERE / "include",
        *[cupy / f"cupy/_cccl/{x}" for x in ("cub", "thrust", "libcudacxx")],
    ]
    command = [compiler(), *KERNEL_FLAGS, *[f"-I{path}" for path in [*paths, cupy]]]
    header = folder / "include/kernels.h"
    shutil.copy(HERE / "include/kernels.h", header)
    run(*command, "-x", "c++-header", header, "-o", header.with_suffix(".h.gch"))
    folder.joinpath("compiler").write_text(shlex.join(command))


def version() -> str:
    """Return a digest of the compiler and of what kernels are made with."""
    digest = hashlib.sha256(run(compiler(), "--version").encode())
    for path in sorted([*HERE.glob("include/**/*"), HERE / "nvrtc.cpp"]):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def environment(folder: Path) -> dict[str, str]:
    """Return the variables with which CuPy finds the libraries of a folder."""
    paths = [str(folder / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"CUDA_WITHOUT_GPU": str(folder), "LD_LIBRARY_PATH": ":".join(paths)}
