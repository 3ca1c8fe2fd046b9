"""Pictures of a training run: curves, and misclassified images.

They need matplotlib, from the extra ``cli``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xgrad.support import plotting

COUNT = 40  # most misclassified images in a picture
#: The line of each part of the data.
LINES: dict[str, dict[str, Any]] = {
    "train": {"color": plotting.OTHER, "linestyle": "--"},
    "validation": {"color": plotting.OTHERS[2], "marker": "."},
    "test": {"color": "C0", "linewidth": 2.2, "marker": "."},
}


def curves(metrics: Sequence[Mapping[str, float]], title: str) -> bytes:
    """Return a PNG of loss and accuracy by epoch, on the training, validation and test images."""

    def draw(figure: Any) -> None:
        figure.suptitle(title)
        for axes, what, factor in zip(
            figure.subplots(1, 2), ("loss", "accuracy"), (1, 100), strict=True
        ):
            for part, style in LINES.items():
                lines = [line for line in metrics if f"{part}_{what}" in line]
                values = [factor * line[f"{part}_{what}"] for line in lines]
                if lines:
                    axes.plot([line["epoch"] for line in lines], values, label=part, **style)
            axes.set(
                title="loss, nats, lower is better"
                if what == "loss"
                else "accuracy, %, higher is better",
                xlabel="epoch",
            )
            # also for one epoch
            axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
            axes.grid()
        marks = {line.get_label(): line for axes in figure.axes for line in axes.lines}
        figure.legend(marks.values(), marks, loc="outside lower center", ncols=len(LINES))

    return plotting.png(plotting.figure(9, 3.8, draw))


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
    part = f", the {len(shown)} most confident" if len(shown) < len(wrong) else ""

    def draw(figure: Any) -> None:
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
            answer = f"{labels[i]} → {predicted[i]}"
            axes.text(left + 0.5, top - 0.05, answer, ha="center", fontsize=10)
        axes.set(xlim=(0, 1.1 * columns), ylim=(1.3 * rows, 0))

    return plotting.png(plotting.figure(1.1 * columns, 1.3 * rows + 0.7, draw))
