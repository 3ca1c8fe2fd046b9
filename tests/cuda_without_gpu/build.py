"""Build of the emulation: libraries in place of CUDA's, and CuPy's modules that have CUDA's runtime linked in."""

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
from pathlib import Path

HERE = Path(__file__).parent
CUPY = "14.2.0"

#: In place of CUDA's libraries: file name, sources, and a module of CuPy that is linked to more functions, with the
#: beginning of their names. Those print that they are not covered, and fail.
LIBRARIES: dict[str, tuple[list[str], str, str]] = {
    "libcuda.so.1": (["driver.cpp", "blocks.cpp"], "", ""),
    "libnvrtc.so.13": (["nvrtc.cpp"], "", ""),
    "libnvJitLink.so.13": ([], "", ""),
    "libcublasLt.so.13": ([], "", ""),
    "libcublas.so.13": (["cublas.cpp"], "cupy_backends.cuda.libs.cublas", "cublas"),
    "libcufft.so.12": (["cufft.cpp"], "cupy.cuda.cufft", "cufft"),
    "libcurand.so.10": ([], "cupy_backends.cuda.libs.curand", "curand"),
    "libcusolver.so.12": (["cusolver.cpp"], "cupy_backends.cuda.libs.cusolver", "cusolver"),
    "libcusparse.so.12": ([], "cupy_backends.cuda.libs.cusparse", "cusparse"),
}

#: Modules of CuPy that contain CUDA's runtime, compiled again from their source, with sources in place of device code.
MODULES: dict[str, list[str]] = {
    "cupy_backends.cuda.api.runtime": [],
    "cupy.cuda.cub": ["device_algorithms.cpp"],
    "cupy.cuda.thrust": ["device_algorithms.cpp"],
}

FLAGS = ["-std=c++17", "-O3", "-Wall", "-fPIC"]
KERNEL_FLAGS = ["-std=c++20", "-O1", "-w", "-fPIC", "-fwhole-program", "-ffp-contract=off"]


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Return the output of a command; its errors are shown."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
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
    """Build all into a folder, and put CuPy's rebuilt modules into the environment that runs this."""
    library, include = folder / "lib", folder / "include"
    for path in (library, include):
        path.mkdir(parents=True, exist_ok=True)
    source = cupy_source(folder)
    for name, (files, module, prefix) in LIBRARIES.items():
        sources = [HERE / file for file in files]
        if prefix:
            sources += [library / "libcuda.so.1", missing(module_file(module), prefix, library, sources)]
        shared(library / name, sources)
    for name in MODULES:
        rebuild(name, source, library)
    kernel_headers(folder)


def shared(target: Path, sources: list[Path]) -> None:
    """Compile a shared library, with versions of its symbols, which CuPy's modules ask for."""
    versions, empty = target.with_suffix(".map"), target.with_suffix(".cpp")
    versions.write_text(f"{target.name} {{ global: *; }};\n")
    empty.write_text("")
    options = [*FLAGS, "-shared", f"-I{cuda_headers()}", f"-Wl,-soname,{target.name}"]
    run(compiler(), *options, f"-Wl,--version-script={versions}", empty, *sources, "-o", target, "-ldl")
    versions.unlink()
    empty.unlink()


def cupy_source(folder: Path) -> Path:
    """Return the folder of CuPy's source, downloaded if it is not there."""
    source = folder / f"cupy-{CUPY}"
    if not source.exists():
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", folder]
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
directives = dict(embedsignature=True, c_api_binop_methods=True, binding=False, freethreading_compatible=True)
directives["warn.deprecated.IF"] = False
known = dict(CUPY_USE_CUDA_PYTHON=False, CUPY_CUFFT_STATIC=False, CUPY_CUDA_VERSION=13020, CUPY_HIP_VERSION=0)
extension = Extension(name, [path], language="c++")
cythonize([extension], language_level=3, compiler_directives=directives, compile_time_env=known, quiet=True)
"""


def rebuild(name: str, source: Path, library: Path) -> None:
    """Compile a module of CuPy again, with functions of this folder in place of CUDA's."""
    path = source.joinpath(*name.split("."))
    run(sys.executable, "-c", CYTHONIZE, name, path.relative_to(source).with_suffix(".pyx"), cwd=source)
    flags = ["-std=c++17", "-O1", "-w", "-fPIC", f"-I{sysconfig.get_path('include')}", f"-I{cuda_headers()}"]
    flags += [
        f"-I{site()}/cupy/_core/include/cupy/_cccl/thrust",
        f"-I{site()}/cupy/_core/include/cupy/_cccl/libcudacxx",
    ]
    flags += [f"-I{HERE}/include", f"-I{source}/cupy/cuda", f"-I{source}/cupy/_core/include"]
    compiled = path.with_suffix(".o")
    run(compiler(), *flags, "-c", path.with_suffix(".cpp"), "-o", compiled)
    made = library / module_file(name).name
    sources = [
        compiled,
        missing(compiled, "cuda", library, [library / "libcuda.so.1"]),
        *[HERE / file for file in MODULES[name]],
    ]
    run(compiler(), *flags, "-shared", *sources, library / "libcuda.so.1", "-o", made)
    made.replace(module_file(name))


def missing(module: Path, prefix: str, folder: Path, sources: list[Path]) -> Path:
    """Return a source with the functions that a module needs and other sources lack."""
    needed = set(re.findall(rf" U ({prefix}[A-Z]\w*)", run("nm", *(["-D"] if module.suffix == ".so" else []), module)))
    for source in sources:
        if source.suffix == ".cpp":
            made = folder / f"{source.stem}.o"
            run(compiler(), *FLAGS, "-c", source, "-o", made)
            source = made
        needed -= set(re.findall(r" T (\w+)", run("nm", *(["-D"] if ".so" in source.name else []), source)))
    path = folder / f"missing_{prefix}.cpp"
    refuse = '{ fprintf(stderr, "cuda_without_gpu: %s is not covered\\n"); return 801; }'
    path.write_text(
        "#include <cstdio>\n" + "".join(f'extern "C" int {name}(...) {refuse % name}\n' for name in sorted(needed))
    )
    return path


def kernel_headers(folder: Path) -> None:
    """Precompile the headers of kernels, and write the command of the compiler and the version of both."""
    cupy = site() / "cupy/_core/include"
    paths = [folder / "include", HERE / "include", *[cupy / f"cupy/_cccl/{x}" for x in ("cub", "thrust", "libcudacxx")]]
    command = [compiler(), *KERNEL_FLAGS, *[f"-I{path}" for path in [*paths, cupy]]]
    header = folder / "include/kernels.h"
    shutil.copy(HERE / "include/kernels.h", header)
    run(*command, "-x", "c++-header", header, "-o", header.with_suffix(".h.gch"))
    folder.joinpath("compiler").write_text(shlex.join(command))
    digest = hashlib.sha256(run(compiler(), "--version").encode())
    for path in sorted([*HERE.glob("include/**/*"), HERE / "nvrtc.cpp"]):
        if path.is_file():
            digest.update(path.read_bytes())
    folder.joinpath("version").write_text(f"// {digest.hexdigest()}\n")


def environment(folder: Path) -> dict[str, str]:
    """Return the variables with which CuPy finds the libraries of a folder."""
    paths = [str(folder / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"CUDA_WITHOUT_GPU": str(folder), "LD_LIBRARY_PATH": ":".join(paths)}
