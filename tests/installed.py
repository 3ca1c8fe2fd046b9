"""Check an installed xgrad with some of its extras: ``python installed.py special,cli``.

It runs in the environment of the extras, outside of the repository, so that it imports the
installed package. It needs only the standard library.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import xgrad

EXTRAS: set[str] = set()  # installed extras
PLUGINS = sorted(point.module for point in metadata.entry_points(group="xgrad.backends"))
LIBRARIES = ("torch", "jax", "dask", "mlx")  # extras that are devices
#: A program that compiles native kernels where no other compiler is found.
NATIVE = """import os
os.environ |= {"CC": "", "PATH": "", "XGRAD_CACHE_DIR": "kernels"}
from xgrad_numpy.native import library
from xgrad_numpy.native.runtime import runtime
print(library.load("int add(int x) { return x + 1; }").add(2), "is 3 by", library.describe())
print(runtime().functions.threads(), "threads")
"""


def check(holds: object, message: str) -> None:
    """Exit with a message unless a condition holds."""
    if not holds:
        sys.exit(f"with the extras {sorted(EXTRAS) or 'none'}: {message}")


def modules() -> Iterator[str]:
    """Yield the names of all modules but scripts."""
    for root in ("xgrad", *PLUGINS):
        yield root
        packages = pkgutil.walk_packages(importlib.import_module(root).__path__, f"{root}.")
        yield from (module.name for module in packages if not module.name.endswith("__main__"))


def import_every_module() -> str:
    names = list(modules())
    for name in names:
        importlib.import_module(name)
    return f"{len(names)} modules import"


def missing_packages_name_their_extras() -> str:
    try:
        xgrad.special.gammaln(xgrad.asarray(3.0))
    except ImportError as error:
        check("special" not in EXTRAS, f"special.gammaln: {error}")
        check("pip install 'xgrad[special]'" in str(error), f"no extra is named: {error}")
    else:
        check("special" in EXTRAS, "SciPy is installed")
    try:
        xgrad.set_num_threads(1)
    except ImportError as error:
        check("threads" not in EXTRAS, f"set_num_threads: {error}")
        check("pip install 'xgrad[threads]'" in str(error), f"no extra is named: {error}")
    else:
        check("threads" in EXTRAS and xgrad.get_num_threads() == 1, "threadpoolctl is installed")
    xgrad.graph(2 * xgrad.ones(3, requires_grad=True)).svg()
    try:
        xgrad.training.TensorBoard(".")
    except ImportError as error:
        check(
            "pip install 'xgrad[tensorboard]'" in str(error) and "test" not in EXTRAS,
            f"TensorBoard: {error}",
        )
    works = [name for name in ("special", "threads") if name in EXTRAS]
    return (
        f"{' and '.join(works) or 'none'} of special and threads work, errors of others name their"
        " extras"
    )


def example_of_readme_runs() -> str:
    text = metadata.distribution("xgrad").read_text("METADATA") or ""
    program = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    printed = run("-c", program)
    check(
        re.search(r"test accuracy 9[5-9]\.\d%", printed),
        f"the example of the README printed {printed!r}",
    )
    return printed.strip()


def command_line_works() -> str:
    printed = run("-m", "xgrad", "train", "digits", "--epochs", "2", "--out", "run", "--quiet")
    pictures = {path.name for path in Path("run").glob("*.png")}
    plots = bool(EXTRAS & {"cli", "parity"})
    check(bool(pictures) == plots, f"pictures {pictures}, printed {printed!r}")
    check(plots or "pip install 'xgrad[cli]'" in printed, f"no extra is named: {printed!r}")
    Path("photo.png").write_bytes(b"no picture")
    printed = run("-m", "xgrad", "predict", "run", "photo.png", status=2)
    # matplotlib brings Pillow
    expected = "a picture of the formats PNG" if plots else "pip install 'xgrad[cli]'"
    check(expected in printed, f"xgrad predict of a picture: {printed!r}")
    status = 0 if "threads" in EXTRAS else 2
    printed = run(
        "-m", "xgrad", "train", "digits", "--threads", "1", "--epochs", "1", status=status
    )
    check(
        "threads" in EXTRAS or "pip install 'xgrad[threads]'" in printed,
        f"no extra is named: {printed!r}",
    )
    report = json.loads(run("-m", "xgrad", "info", "--json"))
    check(report["devices"][0]["usable"], f"xgrad info: {report['devices']}")
    printed = run("-m", "xgrad", "report", "run", status=0 if plots else 2)
    check(Path("report.html").exists() == plots, f"xgrad report: {printed!r}")
    check(plots or "pip install 'xgrad[cli]'" in printed, f"no extra is named: {printed!r}")
    return f"xgrad train and xgrad info work, pictures: {sorted(pictures) or 'none'}"


def parity_skips_ops_without_references() -> str:
    options = ("--devices", "cpu", "--parts", "ops", "--dtypes", "float64")
    missing = (
        ""
        if "parity" in EXTRAS
        else "needs mpmath"
        if "special" in EXTRAS
        else "needs scipy, mpmath"
    )
    status = 1 if missing else 0
    last = run(
        "-m", "xgrad", "parity", *options, "--ops", "special.gammaln", status=status
    ).splitlines()
    check(bool(missing) == last[-1].startswith("NOTHING COMPARED"), f"xgrad parity: {last[-1]}")
    page = bool(EXTRAS & {"cli", "parity"})
    printed = run(
        "-m",
        "xgrad",
        "parity",
        *options,
        "--ops",
        "add",
        "--html",
        "page.html",
        status=0 if page else 2,
    )
    check(Path("page.html").exists() == page, f"xgrad parity --html: {printed!r}")
    check(page or "pip install 'xgrad[parity]'" in printed, f"no extra is named: {printed!r}")
    if EXTRAS - {"special"}:  # other extras add no op cases; the tests run with `test`
        return last[-1]
    lines = run("-m", "xgrad", "parity", *options).splitlines()
    skipped = [line for line in lines if line.startswith("skipped: ")]
    check(skipped and all(line.endswith("mpmath") for line in skipped), f"xgrad parity: {skipped}")
    check(re.match(r"PASSED: \d+ of \d+ op cases", lines[-1]), f"xgrad parity: {lines[-1]}")
    return lines[-1]


def commands_of_extras_work() -> str:
    """Run the documented commands of extras.

    These are array libraries, several processes, and native kernels.
    """
    train = ("xgrad", "train", "digits", "--epochs", "1", "--out")
    lines = [
        run("-m", *train, name, "--device", name, "--quiet").splitlines()
        for name in LIBRARIES
        if name in EXTRAS
    ]
    if "mpi" in EXTRAS:
        lines.append(
            run(
                "-m", "xgrad.distributed.launch", "-n", "2", *train, "mpi", "--distributed"
            ).splitlines()
        )
    if "onnx" in EXTRAS:
        x = xgrad.ones((1, 3))
        xgrad.onnx.export(xgrad.nn.Linear(3, 2), x, "net.onnx")
        lines.append([f"xgrad.onnx.export wrote {Path('net.onnx').stat().st_size} bytes"])
    if "native" in EXTRAS:
        lines.append(run("-c", NATIVE).splitlines())
    return "; ".join(printed[0] for printed in lines) or "no extra of an array library"


def run(*command: str, status: int = 0) -> str:
    """Return the output of Python for a command, which must exit with a status."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=".")
    check(
        done.returncode == status,
        f"{' '.join(command[:6])}: exit status {done.returncode}\n{done.stdout}{done.stderr}",
    )
    return done.stdout + done.stderr


STEPS = (
    import_every_module,
    missing_packages_name_their_extras,
    example_of_readme_runs,
    command_line_works,
    parity_skips_ops_without_references,
    commands_of_extras_work,
)


def main(extras: str) -> None:
    EXTRAS.update(filter(None, extras.split(",")))
    if "test" in EXTRAS:
        EXTRAS.update({"cli", "parity"})
    if EXTRAS & {"parity", "jax"}:  # JAX brings SciPy
        EXTRAS.add("special")
    if "cli" in EXTRAS:
        EXTRAS.add("threads")
    check(
        "site-packages" in str(xgrad.__file__), f"expected an installed xgrad, got {xgrad.__file__}"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for step in STEPS:
            print(f"  {step()}")


if __name__ == "__main__":
    main(sys.argv[1])
