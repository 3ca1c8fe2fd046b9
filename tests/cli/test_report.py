"""``xgrad report``: one page on one run or several.

Figures on the page are compared with the files of the runs.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from html import escape
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import xgrad.cli
from legibility import flaws
from xgrad.cli import report
from xgrad.cli.report import figures
from xgrad.support import plotting


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("xgrad.cli.training_run.TrainingRun.draw", lambda self, trainer: None)
        for name, options in {
            "narrow": ("--hidden", "4"),
            "wide": ("--hidden", "16", "--optimizer", "sgd"),
        }.items():
            command = ["train", "digits", *options, "--epochs", "2", "--device", "cpu", "--quiet"]
            assert xgrad.cli.main([*command, "--out", str(folder / name)]) == 0
    return folder


@pytest.fixture
def copied(trained, tmp_path) -> Path:
    """A copy of a run."""
    return Path(shutil.copytree(trained / "wide", tmp_path / "copied"))


def svg(uri: str) -> str:
    return base64.b64decode(uri.removeprefix("data:image/svg+xml;base64,")).decode()


def last_metrics(folder: Path) -> dict[str, float]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return {name: value for line in lines for name, value in json.loads(line).items()}


def test_page_on_two_runs_has_the_figures_of_both(run, trained, pictures):
    pytest.importorskip("jinja2")
    status, out, err = run("report", trained / "narrow", trained / "wide", "--out", "page.html")
    figures_of = {
        name: last_metrics(trained / name)["test_accuracy"] for name in ("narrow", "wide")
    }
    best = max(figures_of, key=figures_of.get)
    headline = f"Best test accuracy {figures_of[best]:.2%}, by {best}"
    assert (status, out, err) == (0, f"wrote page.html: {headline}\n", "")
    page = Path("page.html").read_text(encoding="utf-8")
    for name in ("narrow", "wide"):
        metrics = last_metrics(trained / name)
        assert f"{metrics['test_accuracy']:.2%}" in page and f"{metrics['train_loss']:.4g}" in page
    assert f'<p class="headline">{headline}</p>' in page
    assert f"by <code>xgrad report {trained}/narrow {trained}/wide --out page.html</code>" in page
    assert re.search(r'<p class="dim">\d{4}-\d\d-\d\d \d\d:\d\d UTC, by ', page)
    images = re.findall(r'<img src="data:image/(\w+)[^"]*" alt="([^"]*)"', page)
    assert [alt.split()[0] for _, alt in images] == [
        "Loss", "Accuracy", "Confusion", "Misclassified", "Confusion", "Misclassified",
        "0.bias", "0.weight", "2.bias", "2.weight", "Images",
    ]  # fmt: skip
    assert not re.search(r'(src|href)="(?!data:|#)', page) and "<script" not in page, (
        "the page needs another file"
    )
    marked = re.findall(r'<tr class="s3"><td>([^<]*)', page)
    assert marked == ["hidden", "optimizer", "lr", "weight decay"]
    assert "4 runs" not in page and page.count("<td>train seconds") == 0


def test_figures_are_legible(trained, monkeypatch, pictures):
    drawn = []
    original = plotting.svg
    monkeypatch.setattr(plotting, "svg", lambda figure: drawn.append(figure) or original(figure))
    names = ("narrow", "wide", "narrow", "a run with a name that is long")
    runs = [
        report.read(name, trained / folder, plotting.COLORS[i], None)
        for i, (name, folder) in enumerate(zip(names, ("narrow", "wide") * 2, strict=True))
    ]
    for count in (1, 2, 4):
        for draw in (figures.curves, figures.histograms, figures.throughput):
            draw(runs[:count])
    figures.confusion(runs[0])
    assert len(drawn) == 22 and [flaw for figure in drawn for flaw in flaws(figure)] == []


def test_pages_and_their_pictures_fit_the_width(run, trained, pictures, tmp_path):
    pytest.importorskip("jinja2")
    api = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
    browser = shutil.which("chromium")
    if not browser:
        pytest.skip("needs Chromium: apt-get install chromium")
    assert run("report", trained / "narrow", trained / "wide").status == 0
    parity = "parity --devices cpu --parts ops --ops add,exp --dtypes float32 --html parity.html"
    assert run(*parity.split()).status == 0
    with api.sync_playwright() as started:
        page = started.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        for width, name in product((420, 900, 1400), ("report.html", "parity.html")):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto((tmp_path / name).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == width
            images = "[...document.images].map(i => [i.width, i.closest('figure').clientWidth])"
            sizes = page.evaluate(images)
            assert sizes and all(0 < image <= column for image, column in sizes)
            # text of 10 points in plots of 442 pixels stays legible
            assert all(image > 0.8 * 442 for image, column in sizes if column > 300)


def test_confusion_matrix_counts_all_test_images(trained):
    result = report.read("wide", trained / "wide", "red", None)
    counts = result.confusion()
    accuracy = last_metrics(trained / "wide")["test_accuracy"]
    assert counts.sum() == len(result.split) and np.trace(counts) == round(accuracy * counts.sum())
    assert (counts.sum(axis=1) == np.bincount(result.split.labels)).all()


def test_unknown_metrics_are_shown_and_missing_ones_left_out(copied, pictures):
    lines = [
        {"epoch": 1, "train_loss": 0.5, "note": "x"},
        {"epoch": 2, "train_loss": 0.25, "val_accuracy": 0.5},
    ]
    (copied / "metrics.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in [*lines, {"test_loss": 0.125}])
    )
    (copied / "timing.jsonl").unlink()
    result = report.read("copied", copied, "red", None)
    assert result.results == {
        "epoch": "2",
        "train_loss": "0.25",
        "val_accuracy": "50.00%",
        "test_loss": "0.125",
    }
    assert figures.throughput([result]) == ""
    plots = figures.curves([result])
    assert list(plots) == ["Loss by epoch", "Accuracy by epoch"]
    loss, accuracy = map(svg, plots.values())
    assert "copied, train" in loss and "copied, val" not in loss and "copied, val" in accuracy
    assert report.headline([result]) == "No run was evaluated on the test images yet"


def test_names_with_special_characters_are_shown_as_they_are(run, trained, tmp_path, pictures):
    pytest.importorskip("jinja2")
    for name in (r"_<b>$\frac$&", "_x"):
        folder = shutil.copytree(trained / "narrow", tmp_path / name)
        assert run("report", folder)[0] == 0
        page = Path("report.html").read_text(encoding="utf-8")
        assert f"</b> {escape(name)}</th>" in page and "<b>$" not in page


def test_missing_data_set_is_noted(run, small_mnist):
    options = (
        "--data",
        small_mnist,
        "--hidden",
        "4",
        "--epochs",
        "1",
        "--device",
        "cpu",
        "--out",
        "small",
        "--quiet",
    )
    assert run("train", "mnist", *options).status == 0
    assert report.read("small", Path("small"), "red", str(small_mnist)).predicted.shape == (100, 10)
    result = report.read("small", Path("small"), "red", None)
    assert result.predicted is None and result.missing.startswith("MNIST was not found in ")


def refused(run, *argv) -> str:
    status, out, err = run("report", *argv)
    assert status == 2 and not out and err.startswith("xgrad report: ") and err.count("\n") == 1
    return err.removeprefix("xgrad report: ")


def test_what_is_no_run_is_refused_in_one_line(run, copied, pictures):
    pytest.importorskip("jinja2")
    assert refused(run) == "the following arguments are required: RUN\n"
    assert refused(run, "nothing").startswith(
        "expected a folder that `xgrad train` wrote, got nothing: "
    )
    (copied / "metrics.jsonl").write_text("{")
    assert refused(run, copied).startswith(
        f"expected a JSON object in each line of {copied / 'metrics.jsonl'}: "
    )
    (copied / "metrics.jsonl").write_text("1")
    assert refused(run, copied).startswith("expected a JSON object in each line of ")
    (copied / "metrics.jsonl").unlink()
    assert refused(run, copied, "--out", "no/page.html").startswith(
        "--out: expected a file that can be written"
    )


def test_missing_package_names_its_extra(run, trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "pip install 'xgrad[cli]'" in refused(run, trained / "wide")
