"""The table of features in docs/comparison.md holds for the libraries that are installed.

autograd, MyGrad and tinygrad are tested where they are: ``pip install autograd mygrad tinygrad``.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

import xgrad

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
Rows = list[list[str]]


def tables() -> Iterator[Rows]:
    """Yield the tables of the page: the cells of each row, the header first."""
    for text in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        header, _, *rows = [line.strip().strip("|").split("|") for line in text.splitlines()]
        yield [[cell.strip() for cell in row] for row in (header, *rows)]


def cell(row: str, library: str) -> str:
    """Return a cell of the tables of features."""
    found = {
        cells[header.index(library)]
        for header, *rows in tables()
        for cells in rows
        if cells[0].startswith(row) and cells[0].endswith(" *") and library in header
    }
    (text,) = found  # where it is in two tables, it is the same
    return text


def works(function: Callable[[], Any]) -> bool:
    """Return whether a call raises none of the errors by which libraries refuse."""
    try:
        function()
    except (AttributeError, TypeError):
        return False
    return True


def assigned(y: Any) -> Any:
    y[0] = 1.0
    return (y * y).sum()


def check(library: str, probes: dict[str, Callable[[], Any]], module: Any, dtype: Any) -> None:
    """Assert that each probe works where the table says so, and only there."""
    for row, probe in probes.items():
        assert works(probe) == cell(row, library).startswith("yes"), (library, row)
    compiled = cell("compiled steps", library).strip("`")
    assert compiled == "no" or hasattr(module, compiled)
    assert compiled != "no" or not {"jit", "compile", "capture"} & set(dir(module))
    assert cell("dtype of a list", library) in str(dtype)


def tensor_probes(module: Any, x: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
    """Return the probes of a library with `backward` and `.grad`, for a vector `x`."""

    def gradient() -> Any:
        value = x()
        (value * value).sum().backward()
        return value.grad.shape

    def assignment() -> None:
        value = x()
        assigned(value * 2.0).backward()
        assert float(value.grad[0]) == 0.0 and float(value.grad[1]) == 16.0

    return {
        "`backward()`": gradient,
        "gradient of a function": lambda: module.grad(lambda x: x * x),
        "`vmap`": lambda: module.vmap(lambda x: x * x),
        "assignment": assignment,
    }


def test_features_of_xgrad_are_those_of_the_comparison() -> None:
    probes = tensor_probes(xgrad, lambda: xgrad.tensor([1.0, 2.0], requires_grad=True))
    x = xgrad.tensor(1.0)
    probes["gradients of gradients"] = lambda: xgrad.grad(xgrad.grad(lambda x: x**3))(x)
    check("xgrad", probes, xgrad, xgrad.asarray([1.0]).dtype)


def test_features_of_pytorch_are_those_of_the_comparison(torch: Any) -> None:
    probes = tensor_probes(torch.func, lambda: torch.tensor([1.0, 2.0], requires_grad=True))
    x = torch.tensor(1.0)
    grad = torch.func.grad
    probes["gradients of gradients"] = lambda: grad(grad(lambda x: x**3))(x)
    check("PyTorch", probes, torch, torch.tensor([1.0]).dtype)


def test_features_of_jax_are_those_of_the_comparison(jax: Any) -> None:
    x = jax.numpy.asarray([1.0, 2.0])
    probes = tensor_probes(jax, lambda: x)
    probes["assignment"] = lambda: jax.grad(lambda x: assigned(x * 2.0))(x)
    probes["gradients of gradients"] = lambda: jax.grad(jax.grad(lambda x: x**3))(1.0)
    check("JAX", probes, jax, jax.numpy.asarray([1.0]).dtype)


def test_features_of_autograd_are_those_of_the_comparison() -> None:
    autograd = pytest.importorskip("autograd")
    numpy = importlib.import_module("autograd.numpy")
    probes = tensor_probes(autograd, lambda: np.ones(2))
    probes["assignment"] = lambda: autograd.grad(lambda x: assigned(x * 2.0))(np.ones(2))
    probes["gradients of gradients"] = lambda: autograd.grad(autograd.grad(lambda x: x**3))(1.0)
    check("autograd", probes, autograd, numpy.asarray([1.0]).dtype)


def test_features_of_mygrad_are_those_of_the_comparison() -> None:
    mygrad = pytest.importorskip("mygrad")
    probes = tensor_probes(mygrad, lambda: mygrad.tensor([1.0, 2.0]))

    def second() -> None:
        x = mygrad.tensor(1.0)
        (x**3).backward()
        x.grad.backward()

    probes["gradients of gradients"] = second
    check("MyGrad", probes, mygrad, mygrad.tensor([1.0]).dtype)


def test_features_of_tinygrad_are_those_of_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEV", "PYTHON")  # its interpreter, which needs no compiler
    tinygrad = pytest.importorskip("tinygrad")

    def probe() -> Any:
        return tinygrad.Tensor([1.0, 2.0])

    probes = tensor_probes(tinygrad, probe)

    def assignment() -> None:
        x = probe()
        assigned(x * 2.0).backward()
        assert x.grad.tolist() == [0.0, 16.0]

    def second() -> None:
        x = probe()
        (first,) = (x**3).sum().gradient(x)
        (again,) = first.sum().gradient(x)
        assert again.tolist() == [6.0, 12.0]

    probes |= {"assignment": assignment, "gradients of gradients": second}
    same = tinygrad.Tensor([1.0]).dtype == tinygrad.dtypes.float32
    check("tinygrad", probes, tinygrad, "float32" if same else "another")


#: Names of a row of the tables of speed: the ratio in the results, and whether it is inverted.
RATIOS = {
    "PyTorch / eager": ("PyTorch / xgrad", False),
    "PyTorch / captured": ("PyTorch / xgrad captured", False),
    "`compile` / captured": ("PyTorch compiled / xgrad captured", False),
}


def ratios(result: str, row: str) -> list[float]:
    """Return the medians of a row of ratios: the times of a peer by the times of xgrad."""
    file = ROOT / "benchmarks" / "results" / f"{result}.json"
    tables = json.loads(file.read_text(encoding="utf-8"))["tables"]
    (cells,) = [table["cells"] for table in tables if table["title"].startswith("Ratios")]
    name, inverted = RATIOS.get(row) or (
        ("JAX jit / xgrad captured", False)
        if "JAX jit / xgrad captured" in cells
        else ("xgrad captured / JAX jit", True)
    )
    medians = [median(samples) for samples in cells[name].values()]
    return [1 / value for value in medians] if inverted else medians


def figure(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def test_ratios_of_the_comparison_are_those_of_the_results() -> None:
    mlps, models = [table for table in tables() if table[0][1] == "PyTorch / eager"]
    for (header, *rows), results in ((mlps, "step"), (models, "models")):
        for name, *cells in zip(header[1:], *[row[1:] for row in rows], strict=True):
            pairs = zip(ratios(results, name), ratios(f"{results}_amd", name), strict=True)
            assert cells == [f"{figure(a)}, {figure(b)}" for a, b in pairs], name


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/faq.md"])
def test_figures_of_a_page_are_those_of_the_results(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())

    def span(results: str, row: str) -> str:
        values = ratios(results, row) + ratios(f"{results}_amd", row)
        return f"{figure(min(values))} to {figure(max(values))}"

    reach = (ROOT / "benchmarks" / "results" / "reach.md").read_text(encoding="utf-8")
    counts = {
        name: re.search(rf"^\| {name} \|.* (\d+) \|$", reach, re.MULTILINE)[1]  # type: ignore[index]
        for name in ("call paths", "xgrad", "PyTorch")
    }
    assert counts["xgrad"] in text and span("models", "PyTorch / captured") in text
    if page == "docs/faq.md":
        assert span("models", "PyTorch / eager") in text
        return
    assert f"{counts['xgrad']} of {counts['call paths']}" in text and counts["PyTorch"] in text
    assert span("step", "PyTorch / captured") in text
    assert span("step", "`jit` / captured") in text and span("models", "`jit` / captured") in text
    slowest = min(ratios("models", "`compile` / captured"))
    assert f"({figure(min(ratios('models', 'PyTorch / eager')))})" in text
    assert f"({figure(slowest)})" in text
    conformance = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    passed = re.search(r"it passed (\d+) at 2024.12 and (\d+) at 2025.12", conformance)
    assert passed is not None and all(number in text for number in passed.groups())


def test_figures_of_the_page_on_performance_are_those_of_the_results() -> None:
    """Figures of steps on the first of the two CPUs; other figures are older than the results."""
    text = " ".join(
        (ROOT / "docs" / "explanation" / "performance.md").read_text(encoding="utf-8").split()
    )
    for row, what in (
        ("PyTorch / eager", "times as fast as PyTorch's. Beside"),
        ("PyTorch / captured", "times as fast as PyTorch's eager ones"),
        ("`jit` / captured", "times as fast as JAX's `jit`"),
    ):
        values = ratios("step", row)
        assert f"{figure(min(values))} to {figure(max(values))} {what}" in text
