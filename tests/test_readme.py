"""The programs in the README and in docs/ run, and print the documented output.

Programs of the README and of docs/*.md stand alone; their outputs are in `PRINTED`. Programs of the
index, and of a page in a folder of docs/, run one after the other in one namespace, and the block
of text below each is its output.
"""

from __future__ import annotations

import contextlib
import doctest
import io
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

from xgrad import nn, optim
from xgrad.capture import CaptureWarning

ROOT = Path(__file__).parent.parent
#: Expected output of each program, by file.
PRINTED = {
    "README.md": [
        r"test accuracy 9[5-9]\.\d% on",
        r"^\[ 0\.17 -0\.02 -0\.24  0\.09\]\n$",
        r"^\[\[2\.0, 0\.0\], \[0\.0, 4\.0\]\]\n$",
    ],
    "docs/install.md": [r"^6\.0\n$"],
    "docs/faq.md": [],
    "docs/glossary.md": [],
    "docs/comparison.md": [],
    "docs/derivatives.md": [
        (
            r"\[396\.0, 200\.0\]\n\[\[402\.0, 400\.0\], \[400\.0, 200\.0\]\]\n\{'0\.weight': \(8,"
            r" 2\), [^\n]*\nTrue True\n"
        ),
        (
            r"\{'0\.weight': \(32, 16, 3\), '0\.bias': \(32, 16\), '2\.weight': \(32, 4, 16\),"
            r" '2\.bias': \(32, 4\)\}\n"
        ),
        r"^\[0\.25, 3\.75\]\n$",
        r"\(\) \(2500,\)\n",
        r"^\(5,\) -0\.18\n$",
    ],
    "docs/distributions.md": [
        r"^\[0\.3, 0\.7, -2\.0, 1\.0\]\n$",
        r"^0\.5\n$",
    ],
    "docs/tensors.md": [
        r"\[\[4\.0, 5\.0\], \[13\.0, 16\.0\]\] \[\[2\.0, 0\.0\], \[7\.0, 9\.0\]\]\n",
        r"^True\n$",
        r"True False\n",
    ],
    "docs/models.md": [
        r"head +Linear +\(32, 10\) +1,290 +5\.2 kB +1\.3 kB\ntotal: 1,370 parameters in 5\.5 kB, ",
        r"IncompatibleKeys\(missing_keys=\[\], unexpected_keys=\[\]\)\n\[\[3\.0, 3\.0, 3\.0\]\]\n",
        r"\(5, 8\)\n",
    ],
    "docs/checkpoints.md": [
        r"\['history', 'loader', 'model', 'optimizer', 'random'\] \[\{'epoch': 0, 'loss': inf\}\]"
    ],
    "docs/command_line.md": [],
    "docs/debugging.md": [
        r"sqrt: infinity in 1 of 2 elements of the gradient of x [^\n]*debugging\.md:7: [^\n]*\n"
        r"linear: NaN in 5 of 10 elements of the result [^\n]*debugging\.md:22:"
        r" [^\n]*\(net\.2\.weight\) has NaN, ",
        r"sum: add: infinity in 3 of 9 elements of the result of [^\n]*debugging\.md:8:"
        r" [^\n]*\(mask\) has infinity\n"
        r"masked_fill: no anomaly\nwhere: no anomaly\nclip: no anomaly\nattention: no anomaly\n",
        r"(\[.*\], batches of \d+: \d+\.\d times the time\n){3}",
        r"\[1\.0, 1\.0\] \[2\.0, 4\.0\]\n",
        r"\d+ bytes: .*saved by linear",
        (
            r"ReLU: 1\d\.\d MiB, in 10 segments 4\.\d, in halves 2\.\d\nGELU: 3\d\.\d MiB, in 10"
            r" segments 6\.\d, in"
        ),
        r"True\n",
    ],
    "docs/inspection.md": [
        r"13 ops, 10 leaves; float32 on cpu\n● cross_entropy +\(\)\n● linear +\(32, 10\)\n├─○",
        r"\A\Z",
        r"\nlinear +20 .* 50 [\s\S]*\noutside of ops [\s\S]*\ninspection\.md:\d+ +30 .* 60 ",
    ],
    "docs/ecosystem.md": [r"\A\(8, 16, 192\)\n"],
    "docs/array_libraries.md": [r"\A(\Z|(jax|dask|mlx) \[ 5\.437 )"],
    "docs/gallery.md": [],
    "docs/promises.md": [],
    "docs/optimizers.md": [
        r"loss \d\.\d, of the average \d\.\d\n1 recording\n",
        r"float16 float32 float32\n",
    ],
    "docs/gpu.md": [r"\A(cpu|cuda) \{.*\}\n"],
    "docs/distributed.md": [r"ranks: 1, loss: \d\.\d\d\n"],
    "docs/training.md": [
        r"epoch \d+: validation accuracy [89]\d\.\d%\n",
        r"\(64, 1, 8, 8\) float32 int64 10\n",
    ],
    "docs/pytorch.md": [
        r"in layer 'head' \(Linear\) of Sequential"
    ],  # test_docs_tables.py evaluates its table
    "docs/capture.md": [
        r"\[2\.0, 4\.0\]\n\[6\.0, 12\.0\] 1\n",
        (
            r"capture\.md:9: multiply is given a tensor of shape \(2,\) that is neither an"
            r" argument[^\n]*\nNone state\n"
        ),
        r"0\.00625 1\n3\n",
        (
            r"np\.float32\(2\.0\) \(0x40000000\) against np\.float32\(3\.0\) \(0x40400000\) at"
            r" \(0,\): "
        ),
    ],
}
#: Pages that run in a process of their own: SciPy reads the variable when it is imported, and
#: backends are found once.
ISOLATED = ["docs/index.md", "docs/learn/scipy.md", "docs/howto/backend.md"]
PYTORCH = "docs/howto/pytorch_model.md"
OUTPUT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
REFUSED = {"docs/capture.md": [1]}  # programs with a step whose capture is refused, by index


def programs(file: str) -> list[str]:
    """Return the Python programs in a file."""
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(encoding="utf-8"), re.DOTALL)


def test_all_documents_are_listed() -> None:
    elsewhere = {"docs/index.md", "docs/onnx.md"}  # in `PAGES`, and in tests/test_onnx.py
    documents = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert {"README.md", *documents} == PRINTED.keys() | elsewhere


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


@pytest.mark.parametrize(
    ("file", "index", "program", "pattern"),
    [
        (file, i, *pair)
        for file, patterns in PRINTED.items()
        for i, pair in enumerate(zip(programs(file), patterns, strict=True))
    ],
)
def test_documented_program_prints_the_documented_output(
    file: str, index: int, program: str, pattern: str
) -> None:
    if "from_dlpack" in program and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy 2.0 imports all memory as read-only, and cannot export it: it is copied")
    if "SCIPY_ARRAY_API" in program:  # which SciPy reads when it is imported
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert re.search(pattern, run.stdout), run.stderr
        return
    printed = io.StringIO()
    refused = (
        pytest.warns(CaptureWarning)
        if index in REFUSED.get(file, ())
        else warnings.catch_warnings()
    )
    with contextlib.redirect_stdout(printed), refused:
        exec(compile(program, str(ROOT / file), "exec"), {"__name__": "__main__"})
    assert re.search(pattern, printed.getvalue())


PAGES = [
    "docs/index.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*/*.md")),
]


def run_page(file: str) -> None:
    """Run the programs of a page.

    Raise AssertionError if one prints something else than the page says.
    """
    namespace = {"__name__": "__main__"}
    text = (ROOT / file).read_text(encoding="utf-8")
    for program in re.finditer(
        r"```(?:python|\{graph\})\n(.*?)```(?:\n+```text\n(.*?)```)?", text, re.DOTALL
    ):
        code, expected = program.groups(default="")
        lines = "\n" * text.count("\n", 0, program.start(1))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(lines + code, str(ROOT / file), "exec"), namespace)
        same = doctest.OutputChecker().check_output(expected, printed.getvalue(), OUTPUT)
        assert same, f"{file}: expected\n{expected}\ngot\n{printed.getvalue()}"


@pytest.mark.parametrize("file", [file for file in PAGES if file not in (*ISOLATED, PYTORCH)])
def test_programs_of_a_page_print_the_text_below_them(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(file)


def test_programs_of_the_page_on_models_of_pytorch_print_the_text_below_them(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PYTORCH)


@pytest.mark.parametrize("file", ISOLATED)
def test_programs_of_a_page_in_their_own_process_print_the_text_below_them(
    file: str, tmp_path: Path
) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    for name, module in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(module, encoding="utf-8")
    for project in re.findall(r"```toml\n# pyproject.toml\n(.*?)```", text, re.DOTALL):
        install(tomllib.loads(project)["project"], tmp_path)
    code = f"import test_readme; test_readme.run_page({file!r})"
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
