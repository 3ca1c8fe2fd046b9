"""Pictures of a training run: curves, and misclassified images.

They need matplotlib, from the extra ``cli``.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xgrad.support.hints import import_optional

COUNT = 40  # most misclassified images in a picture


def curves(metrics: Sequence[Mapping[str, float]], title: str) -> bytes:
    """Return a PNG of loss and accuracy by epoch, on the training, validation and test images."""
    figure = _figure(9, 3.6)
    figure.suptitle(title)
    for axes, what, factor in zip(
        figure.subplots(1, 2), ("loss", "accuracy"), (1, 100), strict=True
    ):
        for part in ("train", "validation", "test"):
            lines = [line for line in metrics if f"{part}_{what}" in line]
            if lines:
                values = [factor * line[f"{part}_{what}"] for line in lines]
                axes.plot([line["epoch"] for line in lines], values, marker=".", label=part)
        axes.set_xlabel("epoch")
        axes.set_ylabel("cross-entropy [nats]" if what == "loss" else "accuracy [%]")
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)  # also for one epoch
        axes.grid(alpha=0.3)
        axes.legend()
    return _png(figure)


def mistakes(
    images: npt.NDArray[np.uint8],
    labels: npt.NDArray[np.uint8],
    probabilities: npt.NDArray[np.float32],
    columns: int = 8,
) -> bytes:
    """Return a PNG of misclassified images, the most confident first.

    Each image has its true and its predicted label.
    """
    predicted = np.argmax(probabilities, axis=1)
    wrong = np.flatnonzero(predicted != labels)
    shown = wrong[np.argsort(-probabilities[wrong, predicted[wrong]], kind="stable")][:COUNT]
    rows = max(1, -(-len(shown) // columns))
    height, width = images.shape[1:]
    figure = _figure(1.1 * columns, 1.3 * rows + 0.7)
    part = f", the {len(shown)} most confident" if len(shown) < len(wrong) else ""
    figure.suptitle(f"{len(wrong)} of {len(labels)} test images wrong{part}:\ntrue → predicted")
    axes = figure.subplots()  # one for all images: forty would take a second
    axes.set_axis_off()
    for position, i in enumerate(shown):
        row, column = divmod(position, columns)
        left, top = 1.1 * column + 0.05, 1.3 * row + 0.25
        extent = (left, left + 1, top + height / width, top)
        axes.imshow(
            images[i], extent=extent, cmap="gray_r", interpolation="nearest", aspect="equal"
        )
        axes.text(left + 0.5, top - 0.05, f"{labels[i]} → {predicted[i]}", ha="center", fontsize=10)
    axes.set(xlim=(0, 1.1 * columns), ylim=(1.3 * rows, 0))
    return _png(figure)


def _figure(width: float, height: float) -> Any:
    """Return an empty figure of a size in inches.

    If matplotlib is missing, ImportError tells the command that installs it.
    """
    # not pyplot, which keeps every figure, and may need a display
    module = import_optional("matplotlib.figure", "cli")
    return module.Figure(figsize=(width, height), layout="constrained")


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=120)
    return file.getvalue()
