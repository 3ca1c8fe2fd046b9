"""The examples run with few steps, and their results improve, within known bounds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
#: For each example its steps, a pattern of a number in its output, and bounds of the first and the
#: last of these numbers.
RUNS = {
    "char_lstm": (20, r"loss ([\d.]+)", 4.2, 3.3),
    "cnn": (100, r"loss ([\d.]+)", 2.4, 0.8),
    "dask_fits": (3, r"then ([\d.]+)", 40, 1),
    "gan": (200, r"losses [\d.]+ and [\d.]+, (\d+)%", 101, 101),
    "gaussian_process": (60, r"loss ([\d.]+)", 1.2, 0.17),
    "gpt": (60, r"loss ([\d.]+)", 4.5, 2.7),
    "neural_ode": (60, r"loss ([\d.]+)", 0.6, 0.25),
    "pinn": (100, r"error ([\de.+-]+)", 0.7, 0.1),
    "vae": (200, r"test loss ([\d.]+)", 46, 28),
}


def test_all_examples_are_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(RUNS)
    gallery = (FOLDER.parent / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert all(f"examples/{name}.py" in gallery for name in RUNS)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_example(name: str, tmp_path: Path) -> None:
    if name == "dask_fits":
        pytest.importorskip(
            "distributed.client", reason="needs Dask: pip install 'dask[array,distributed]'"
        )
    steps, pattern, first, last = RUNS[name]
    script = FOLDER / f"{name}.py"
    command = [str(script), "--steps", str(steps)]
    if drawn := find_spec("matplotlib") and "--plot" in script.read_text("utf-8"):
        picture = tmp_path / f"{name}.svg"
        command = [
            str(Path(__file__).parent / "drawn_example.py"),
            *command,
            "--plot",
            str(picture),
        ]
    run = subprocess.run(
        [sys.executable, "-W", "error", *command],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "svg"},
    )
    assert run.returncode == 0, run.stderr
    assert not drawn or "</svg>" in picture.read_text("utf-8")
    numbers = [float(number) for number in re.findall(pattern, run.stdout)]
    assert numbers[0] <= first and numbers[-1] <= last and len(numbers) > 1, run.stdout
    assert name == "gan" or numbers[-1] < numbers[0], run.stdout


def test_examples_say_how_to_run_them() -> None:
    for name in RUNS:
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        assert f"python examples/{name}.py [--steps" in text and "--device" in text, name
