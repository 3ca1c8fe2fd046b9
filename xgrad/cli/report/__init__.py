"""``xgrad report``: training runs side by side, as one HTML page.

The page has no scripts and no external resources.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import xgrad
from xgrad.backend.device import Device
from xgrad.cli import plots
from xgrad.cli.arguments import Parser, UsageError, nonempty_path
from xgrad.cli.inference import Scaling, probabilities
from xgrad.cli.predict import load_model, read_config
from xgrad.cli.report import figures
from xgrad.cli.sources import find_data
from xgrad.cli.training_run import METRICS, TIMING, WEIGHTS
from xgrad.data import Split
from xgrad.data.images import PUBLISHED
from xgrad.parity.html_report import check_installed, date_text, render
from xgrad.support import files
from xgrad.support.plotting import COLORS

MAX_LINES = 2**26  # bytes of a metrics file
#: Entries of a configuration that are not settings of the run.
ENVIRONMENT = ("device", "device_description", "data_source", "blas", "versions")
DERIVED = ("classes", "class_names", "image_shape", "grey_values")


@dataclass(eq=False)
class Run:
    """A training run: the contents of its files, and its predictions for the test images.

    If the data set is not on this machine, `split` and `predicted` are None, and `missing` says
    why.
    """

    name: str
    color: str
    config: dict[str, Any]
    metrics: list[dict[str, float]]
    timing: list[dict[str, float]]
    weights: dict[str, np.ndarray]
    split: Split | None = None
    predicted: np.ndarray | None = None
    missing: str = ""
    settings: dict[str, str] = field(init=False)
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        shown = [name for name in self.config if name not in (*ENVIRONMENT, *DERIVED)]
        self.settings = {name: as_text(self.config[name]) for name in shown}
        self.environment = {
            name: as_text(self.config[name]) for name in ENVIRONMENT if name in self.config
        }
        self.environment["parameters"] = f"{sum(x.size for x in self.weights.values()):,}"

    @property
    def last(self) -> dict[str, float]:
        """The last value of each metric."""
        return {name: value for line in self.metrics for name, value in line.items()}

    @property
    def results(self) -> dict[str, str]:
        """The last value of each metric, the total of seconds, and the median images per second."""
        figures = {name: number(name, value) for name, value in self.last.items()}
        seconds = sum(
            value
            for line in self.timing
            for name, value in line.items()
            if name.endswith("_seconds")
        )
        rates = [line["images_per_second"] for line in self.timing if "images_per_second" in line]
        figures |= {"seconds": f"{seconds:.1f}"} if seconds else {}
        return figures | (
            {"images per second, median": f"{np.median(rates):,.0f}"} if rates else {}
        )

    @property
    def class_names(self) -> list[str]:
        """The names of the classes."""
        return self.config.get("class_names") or [
            str(number) for number in range(self.config["classes"])
        ]

    def confusion(self) -> np.ndarray:
        """Return the number of test images by label and predicted class."""
        assert self.split is not None and self.predicted is not None
        counts = np.zeros((self.config["classes"],) * 2, dtype=np.int64)
        np.add.at(counts, (self.split.labels, np.argmax(self.predicted, axis=1)), 1)
        return counts

    def mistakes(self) -> str:
        """Return a picture of the misclassified images as a data URI."""
        assert self.split is not None and self.predicted is not None
        picture = plots.mistakes(self.split.images, self.split.labels, self.predicted, columns=5)
        return "data:image/png;base64," + base64.b64encode(picture).decode()


def run(argv: Sequence[str]) -> int:
    """Write the page, and return the exit status."""
    parser = Parser(
        "report",
        "RUN ...",
        "Write a page on training runs: curves, mistakes, weights, throughput, environment.",
    )
    add = parser.add_argument
    add(
        "folders",
        type=nonempty_path,
        nargs="+",
        metavar="RUN",
        help="output folder of `xgrad train`, such as runs/mnist",
    )
    add(
        "--out",
        type=nonempty_path,
        default=Path("report.html"),
        metavar="FILE",
        help="the page, which is replaced if it exists (default: report.html)",
    )
    add("--data", metavar="FOLDER", help="folder of the data set, if it is not digits")
    args = parser.parse_args(argv)
    try:
        check_installed("cli")
    except ImportError as error:
        raise UsageError(str(error)) from error
    names = [os.path.basename(os.path.realpath(folder)) for folder in args.folders]
    names = [
        name if names.count(name) == 1 else str(folder)
        for name, folder in zip(names, args.folders, strict=True)
    ]
    folders = enumerate(zip(names, args.folders, strict=True))
    runs = [
        read(name, folder, COLORS[i % len(COLORS)], getattr(args, "data", None))
        for i, (name, folder) in folders
    ]
    try:
        command = shlex.join(["xgrad", "report", *argv])
        files.write(args.out, as_html(runs, command).encode())
    except OSError as error:
        raise UsageError(
            f"--out: expected a file that can be written, got {args.out}: {error}"
        ) from error
    print(f"wrote {args.out}: {headline(runs)}")
    return 0


def read(name: str, folder: Path, color: str, data: str | None) -> Run:
    """Return a run from the files in its folder; raise UsageError if they are damaged."""
    device, config = Device("cpu"), read_config(folder)
    model = load_model(folder, config, device)
    weights = {name: x.numpy() for name, x in xgrad.load(folder / WEIGHTS).items()}
    result = Run(
        name, color, config, read_lines(folder / METRICS), read_lines(folder / TIMING), weights
    )
    from_files = config["dataset"] in PUBLISHED
    try:
        images = find_data(
            Namespace(
                dataset=config["dataset"],
                no_download=True,
                **({"data": data} if data and from_files else {}),
            )
        )
    except UsageError as error:
        result.missing = str(error)
        return result
    scaling = Scaling(*(float(config["grey_values"][key]) for key in ("mean", "std")))
    if (
        images.test.images.shape[1:] != tuple(config["image_shape"])
        or images.classes != config["classes"]
    ):
        raise UsageError(
            f"expected a network for images and classes of {config['dataset']} in {folder}"
        )
    result.split = images.test
    result.predicted = probabilities(model, scaling(images.test.images, device))
    return result


def read_lines(path: Path) -> list[dict[str, float]]:
    """Return the numbers in each line of a file of JSON objects; none if there is no file."""
    try:
        lines = [
            json.loads(line) for line in files.read(path, MAX_LINES).splitlines() if line.strip()
        ]
        return [
            {name: x for name, x in line.items() if isinstance(x, (int, float))} for line in lines
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise UsageError(f"expected a JSON object in each line of {path}: {error}") from error


def as_html(runs: Sequence[Run], command: str) -> str:
    """Return the page, which names the command that made it; it needs Jinja2 and matplotlib."""
    settings = table([run.settings for run in runs])
    changed = {name for name, cells in settings.items() if len(set(cells)) > 1}
    return render(
        __name__,
        runs=runs,
        headline=headline(runs),
        date=date_text(datetime.now(UTC)),
        command=command,
        figures=figures,
        settings=settings,
        changed=changed,
        version=xgrad.__version__,
        results=table([run.results for run in runs]),
        environment=table([run.environment for run in runs]),
    )


def headline(runs: Sequence[Run]) -> str:
    """Return the accuracy of the best run on the test images, or what is known instead."""
    tested = {run.name: run.last["test_accuracy"] for run in runs if "test_accuracy" in run.last}
    if not tested:
        return "No run was evaluated on the test images yet"
    best = max(tested, key=lambda name: tested[name])
    if len(runs) == 1:
        return f"Test accuracy {tested[best]:.2%}"
    return f"Best test accuracy {tested[best]:.2%}, by {best}"


def table(columns: Sequence[dict[str, str]]) -> dict[str, list[str]]:
    """Return the rows of a table, given its columns."""
    names = dict.fromkeys(name for column in columns for name in column)
    return {name: [column.get(name, "-") for column in columns] for name in names}


def number(name: str, value: float) -> str:
    """Return a figure as text."""
    return f"{value:.2%}" if name.endswith("accuracy") else f"{value:.4g}"


def as_text(value: Any) -> str:
    """Return a setting as text."""
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {as_text(part)}" for name, part in value.items() if part is not None
        )
    if isinstance(value, (list, tuple)):
        return ", ".join(map(as_text, value)) or "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
