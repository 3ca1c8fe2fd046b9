"""The programs in the README and in docs/ run, and print the documented output.

Programs of the README and of docs/*.md stand alone. Programs of the index, and of a page in a
folder of docs/, run one after the other in one namespace. The block of text below a program is its
output, compared by `printed.same_output`: ```text tolerance=0.1 accepts other floats, as of a
training run, and tolerance=inf any numbers, as of a measurement.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from printed import same_output
from xgrad import nn, optim
from xgrad.capture import CaptureWarning

ROOT = Path(__file__).parent.parent
#: Pages that run in a process of their own: memory is measured, SciPy reads the variable when it is
#: imported, and backends are found once.
ISOLATED = [
    "README.md",
    "docs/debugging.md",
    "docs/howto/backend.md",
    "docs/index.md",
    "docs/learn/scipy.md",
]
#: Pages that need packages of ``make test-peers``.
PEERS = {
    "docs/array_libraries.md": ["torch"],
    "docs/dask.md": ["dask"],
    "docs/howto/pytorch_model.md": ["torch"],
    "docs/onnx.md": ["ndonnx", "onnxruntime"],
}
#: A program of a page, and the block of text below it.
PROGRAM = re.compile(
    r"^```(python|\{graph\})\n(.*?)^```$(?:\s+^```text(?: tolerance=(\S+))?\n(.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


def test_page_of_models_lists_all_layers_and_losses() -> None:
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    for line in re.findall(r".*and the same with `2d` and `3d`.*", text):
        text += line.replace("1d`", "2d`") + line.replace("1d`", "3d`")
    public = {name: getattr(nn, name) for name in nn.__all__}
    names = {
        name
        for name, value in public.items()
        if isinstance(value, type) and issubclass(value, nn.Module)
    }
    names |= {name for name in nn.functional.__all__ if "loss" in name or "entropy" in name}
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_page_of_optimizers_lists_all_optimizers_and_schedules() -> None:
    text = (ROOT / "docs" / "optimizers.md").read_text(encoding="utf-8")
    bases = {"Optimizer", "LRScheduler", "lr_scheduler", "swa_utils"}
    names = {*optim.__all__, *optim.lr_scheduler.__all__, *optim.swa_utils.__all__} - bases
    assert {name for name in names if name not in text} == set()


PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))


def run_page(file: str, folder: Path) -> None:
    """Run the programs of a page, each from a file `example.py` in a folder.

    Raise AssertionError if one prints something else than the page says. What a program prints
    includes warnings of refused captures; others are errors.
    """
    namespace: dict[str, Any] = {}
    copies = np.lib.NumpyVersion(np.__version__) < "2.1.0"  # memory that DLPack exchanges
    example = folder / "example.py"
    for number, match in enumerate(PROGRAM.finditer((ROOT / file).read_text(encoding="utf-8"))):
        kind, code, tolerance, expected = match.groups(default="")
        if copies and "from_dlpack" in code:
            continue
        if kind == "python":
            if stands_alone(file):
                namespace.clear()
            example.write_text(code, encoding="utf-8")
            linecache.checkcache()  # another program had the file
        printed = io.StringIO()
        namespace["__name__"] = "__main__"
        with (
            contextlib.redirect_stdout(printed),
            warnings.catch_warnings(
                record=True, action="always", category=CaptureWarning
            ) as caught,
        ):
            exec(compile(code, str(example), "exec"), namespace)
        got = printed.getvalue().replace(f"{folder}/", "")
        got += "".join(f"{w.category.__name__}: {w.message}\n" for w in caught)
        same = same_output(expected, got, float(tolerance or 1e-5))
        assert same, f"{file}, program {number}: expected\n{expected}\ngot\n{got}"


def stands_alone(file: str) -> bool:
    """Return whether each program of a page runs by itself, without the programs before it."""
    return Path(file).parent.name in ("", "docs") and file != "docs/index.md"


@pytest.mark.parametrize("file", [file for file in PAGES if file not in (*ISOLATED, *PEERS)])
def test_programs_of_a_page_print_the_text_below_them(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(file, tmp_path)


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(("file", "packages"), PEERS.items())
def test_programs_of_a_page_on_another_library_print_the_text_below_them(
    file: str, packages: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in packages:
        pytest.importorskip(package, reason=f"needs {package}: make test-peers")
    monkeypatch.chdir(tmp_path)
    run_page(file, tmp_path)


def test_programs_of_pytorch_print_the_text_below_them(torch: Any, tmp_path: Path) -> None:
    """Blocks ```python torch are PyTorch's side of two programs beside each other."""
    text = (ROOT / "docs/pytorch.md").read_text(encoding="utf-8")
    (both,) = re.findall(r"^```python torch\n(.*?)^```\s+^```text\n(.*?)^```", text, re.S | re.M)
    script = (ROOT / "docs/howto/pytorch_script.md").read_text(encoding="utf-8")
    code, expected = re.findall(
        r"^```python\n(.*?)^```\s+^```text\n(.*?)^```", script, re.S | re.M
    )[0]
    assert "xgrad" in code
    for program, output in (both, (code.replace("xgrad.compat.", ""), expected)):
        torch.manual_seed(0)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, {"__name__": "__main__"})
        assert same_output(output, printed.getvalue()), printed.getvalue()


@pytest.mark.parametrize("file", ISOLATED)
def test_programs_of_a_page_in_their_own_process_print_the_text_below_them(
    file: str, tmp_path: Path
) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    for name, module in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(module, encoding="utf-8")
    for project in re.findall(r"```toml\n# pyproject.toml\n(.*?)```", text, re.DOTALL):
        install(tomllib.loads(project)["project"], tmp_path)
    code = f"import test_readme; test_readme.run_page({file!r}, test_readme.Path())"
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "SCIPY_ARRAY_API": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def install(project: dict[str, Any], folder: Path) -> None:
    """Write the metadata of a project to a folder on the path.

    By the metadata, Python finds the project's entry points.
    """
    metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n"
    )
    groups = project["entry-points"].items()
    lines = [
        line
        for group, names in groups
        for line in (f"[{group}]", *[f"{n} = {v}" for n, v in names.items()])
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
