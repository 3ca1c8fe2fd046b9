"""Checks of pictures: contrast of colours; in matplotlib, overlaps and parts that are cut off."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any


def luminance(color: str) -> float:
    """Return the relative luminance of a colour such as #3d86e0 or #fff.

    The guidelines for the accessibility of web content define it.
    """
    digits = color.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def flaws(figure: Any) -> list[str]:
    """Return what is illegible in a figure: overlaps of its parts, and parts beyond its edge."""
    figure.draw_without_rendering()
    labels = [*_titles(figure)]
    for axes in figure.axes:
        labels += _labels(axes)
    found = [
        f"{name} is cut off"
        for name, box in labels
        if not (figure.bbox.x0 - 1 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1)
        or not (figure.bbox.y0 - 1 <= box.y0 <= box.y1 <= figure.bbox.y1 + 1)
    ]
    found += [
        f"{a} overlaps {b}"
        for (a, one), (b, other) in itertools.combinations(labels, 2)
        if _overlap(one, other)
    ]
    for axes in figure.axes:
        drawn = [("a bar", bar.get_window_extent()) for bar in _bars(axes)]
        found += [
            f"{name} overlaps {what}"
            for name, box in labels
            for what, area in drawn
            if _overlap(box, area)
        ]
        for line in axes.lines if axes.get_legend() else ():
            box = axes.get_legend().get_window_extent()
            points = line.get_transform().transform(line.get_xydata())
            if any(box.contains(x, y) for x, y in points):
                found.append(f"the legend hides {line.get_label()}")
    return found


def _titles(figure: Any) -> Iterator[tuple[str, Any]]:
    """Yield the texts of a figure and its parts that belong to no axes, with their areas."""
    for part in (figure, *figure.subfigs):
        for text in part.texts:
            yield from _text(text)
        for legend in part.legends:
            yield "the legend", legend.get_window_extent()


def _labels(axes: Any) -> Iterator[tuple[str, Any]]:
    """Yield the texts and the legend of axes, with their areas."""
    for text in (axes.title, axes._left_title, axes._right_title, *axes.texts):
        yield from _text(text)
    if axes.get_legend():
        yield "the legend", axes.get_legend().get_window_extent()
    area = axes.get_window_extent()
    for axis, low, high, side in (
        (axes.xaxis, area.x0, area.x1, "x"),
        (axes.yaxis, area.y0, area.y1, "y"),
    ):
        if axis.get_visible() and axes.axison:
            yield from _text(axis.label)
            for label in axis.get_ticklabels():
                for name, box in _text(label):
                    middle = (getattr(box, f"{side}0") + getattr(box, f"{side}1")) / 2
                    if low - 1 <= middle <= high + 1:
                        yield name, box


def _text(text: Any) -> Iterator[tuple[str, Any]]:
    if text.get_visible() and text.get_text().strip():
        yield repr(text.get_text()), text.get_window_extent()


def _bars(axes: Any) -> list[Any]:
    return [bar for group in axes.containers for bar in getattr(group, "patches", ())]


def _overlap(a: Any, b: Any) -> bool:
    """Tell whether two areas share more than the half pixel by which they are rounded."""
    return bool(min(a.x1, b.x1) - max(a.x0, b.x0) > 0.5 and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.5)
