"""A graph as SVG: a row for each op, in the order of execution, from the leaves to the result.

The leaves of an op stand at its left. An edge to the next row is straight; other edges pass at the
right of all boxes, in a lane for each box. Modules are frames around their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from xgrad.inspection.dot import COLORS, FRAME_COLOR, TEXT_COLOR, Path, relative, usual_place

# pixels
SIZE, SMALL, LINE = 12, 10, 13
GAP, LANE, MARGIN, PADDING = 20, 12, 12, 10
#: The width of a character by the size of its font: no usual font is wider.
ADVANCE = 0.64
EDGE_COLOR = "#7d899b"
FONT = "DejaVu Sans,Verdana,Arial,sans-serif"


class Area(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        """The middle of its height."""
        return (self.top + self.bottom) / 2


class Drawing:
    """The parts of a picture and their areas; the middles of ops are at x = 0."""

    def __init__(self, boxes: Sequence[Any], classes: Mapping[Path, str]) -> None:
        self.usual, self.classes = usual_place(boxes), classes
        self.areas: dict[Any, Area] = {}
        self.boxes: list[str] = []
        self.frames: list[str] = []
        self.edges: list[str] = []
        users: dict[Any, int] = {}
        for box in boxes:
            for _, source in box.inputs:
                users[source] = users.get(source, 0) + 1
        beside = {box for box in boxes if box.kind == "leaf" and users.get(box) == 1}
        self.rows = _leaves_above_users([box for box in boxes if box not in beside])
        self.leaves = {
            row: [source for _, source in row.inputs if source in beside] for row in self.rows
        }
        # leaves in rows of their own are in the module of the op below
        self.paths: dict[Any, Path] = {}
        path: Path = ()
        for row in reversed(self.rows):
            path = self.paths[row] = path if row.kind == "leaf" else row.path
        self.bottom = float(MARGIN)
        self.left, self.right = self._place((), (), self.rows)
        lanes = self._lanes()
        for above, row in zip([None, *self.rows], self.rows, strict=False):
            for name, source in row.inputs:
                self._edge(name, source, row, None if source is above else lanes.get(source))

    def _place(self, module: Path, outer: Path, rows: Sequence[Any]) -> tuple[float, float]:
        """Place rows of a module below the bottom, and return their left and right ends.

        The rows of inner modules are placed into frames, with titles relative to `outer`, the
        innermost module with a frame.
        """
        ends = []
        for path, group in groupby(rows, lambda row: self.paths[row][: len(module) + 1]):
            members = list(group)
            if path == module:
                ends += [self._row(row) for row in members]
            elif len(members) == len(rows):
                ends.append(self._place(path, outer, members))
            else:
                ends.append(self._frame(path, outer, members))
        return min(left for left, _ in ends), max(right for _, right in ends)

    def _frame(self, path: Path, outer: Path, rows: Sequence[Any]) -> tuple[float, float]:
        """Place the rows of a module in a frame with a title, and return its ends."""
        title = f"{relative('.'.join(path), outer)} {self.classes.get(path, '')}"
        top, index = self.bottom, len(self.frames)
        self.bottom += LINE + PADDING
        left, right = self._place(path, path, rows)
        self.bottom += PADDING - GAP
        # the edge at x = 0 passes at the right of the title
        left = min(left, -ADVANCE * SMALL * len(title) - PADDING) - PADDING
        right += PADDING
        self.frames.insert(
            index,
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}"'
            f' height="{self.bottom - top:.1f}" rx="8" fill="none" stroke="{FRAME_COLOR}"/>'
            f'<text x="{left + PADDING:.1f}" y="{top + LINE + 2:.1f}" font-size="{SMALL}"'
            f' fill="{TEXT_COLOR}">{_escape(title)}</text>',
        )
        self.bottom += GAP
        return left, right

    def _row(self, row: Any) -> tuple[float, float]:
        """Place an op with its leaves, and return the left and right ends."""
        width, height = self._size(row)
        sizes = [self._size(leaf) for leaf in self.leaves[row]]
        leaves = sum(h for _, h in sizes) + 4 * max(0, len(sizes) - 1)
        middle = self.bottom + max(height, leaves) / 2
        self._box(row, Area(-width / 2, middle - height / 2, width / 2, middle + height / 2))
        top, right = middle - leaves / 2, -width / 2 - 1.5 * GAP
        for leaf, (w, h) in zip(self.leaves[row], sizes, strict=True):
            self._box(leaf, Area(right - w, top, right, top + h))
            top += h + 4
        self.bottom += max(height, leaves) + GAP
        return right - max([w for w, _ in sizes], default=-right - width / 2), width / 2

    def _texts(self, box: Any) -> tuple[str, str, list[str]]:
        """Return the title, the shape, and further lines of a box."""
        more = [box.place if box.place != self.usual else "", box.contents, box.values]
        return relative(box.title, box.path), box.shape, [text for text in more if text]

    def _size(self, box: Any) -> tuple[float, float]:
        title, shape, more = self._texts(box)
        widths = [SIZE * len(title) + SMALL * (len(shape) + 1), *(SMALL * len(x) for x in more)]
        return ADVANCE * max(widths) + 2 * PADDING, LINE * (1 + len(more)) + PADDING

    def _box(self, box: Any, area: Area) -> None:
        self.areas[box] = area
        fill, line = COLORS[box.kind]
        title, shape, more = self._texts(box)
        x, y = (area.left + area.right) / 2, area.top + PADDING / 2 + LINE - 3
        small = "".join(
            [
                f'<tspan x="{x:.1f}" dy="{LINE}" font-size="{SMALL}">{_escape(text)}</tspan>'
                for text in more
            ]
        )
        self.boxes.append(
            f'<rect x="{area.left:.1f}" y="{area.top:.1f}" width="{area.right - area.left:.1f}"'
            f' height="{area.bottom - area.top:.1f}" rx="6" fill="{fill}" stroke="{line}"/>'
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{_escape(title)}'
            f'<tspan dx="6" font-size="{SMALL}">{_escape(shape)}</tspan>{small}</text>'
        )

    def _lanes(self) -> dict[Any, float]:
        """Return the x of the lane of each box whose edges skip rows; short ones come first."""
        index = {row: i for i, row in enumerate(self.rows)}
        ends = {
            source: index[row]
            for row in self.rows
            for _, source in row.inputs
            if source in index and index[row] - index[source] > 1
        }
        taken: list[list[tuple[int, int]]] = []
        lanes = {}
        for source, end in sorted(ends.items(), key=lambda item: item[1] - index[item[0]]):
            start = index[source]
            free = (
                lane
                for lane, spans in enumerate(taken)
                if all(end <= low or start >= high for low, high in spans)
            )
            lane = next(free, len(taken))
            taken[lane:] = taken[lane:] or [[]]
            taken[lane].append((start, end))
            lanes[source] = self.right + (lane + 1) * LANE
        self.right += (len(taken) + 1) * LANE
        return lanes

    def _edge(self, name: str, source: Any, row: Any, lane: float | None) -> None:
        """Draw an edge, whose tooltip is the name of the input."""
        start, end = self.areas[source], self.areas[row]
        if source in self.leaves[row]:
            line = (
                f"M{start.right:.1f},{start.middle:.1f} C{start.right + GAP:.1f},{start.middle:.1f}"
                f" {end.left - GAP:.1f},{end.middle:.1f} {end.left - 6:.1f},{end.middle:.1f}"
            )
            head = f"M{end.left:.1f},{end.middle:.1f} l-7,-3.5 v7 z"
        elif lane is None:
            # from the row above
            line = f"M0,{start.bottom:.1f} V{end.top - 6:.1f}"
            head = f"M0,{end.top:.1f} l-3.5,-7 h7 z"
        else:
            # leaves a box below its middle, and arrives above it
            leave, arrive = start.middle + 4, end.middle - 4
            line = (
                f"M{start.right:.1f},{leave:.1f} H{lane - 6:.1f} q6,0 6,6 V{arrive - 6:.1f}"
                f" q0,6 -6,6 H{end.right + 6:.1f}"
            )
            head = f"M{end.right:.1f},{arrive:.1f} l7,-3.5 v7 z"
        self.edges.append(
            f'<g><title>{_escape(name)}</title><path d="{line}" fill="none" stroke="{EDGE_COLOR}"/>'
            f'<path d="{head}" fill="{EDGE_COLOR}"/></g>'
        )

    def svg(self) -> str:
        """Return the picture."""
        left = self.left - MARGIN
        width, height = self.right + MARGIN - left, self.bottom + MARGIN
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
                f' viewBox="{left:.0f} 0 {width:.0f} {height:.0f}" font-family="{FONT}"'
                f' font-size="{SIZE}" fill="#1d2430">',
                *self.frames,
                *self.edges,
                *self.boxes,
                f'<text y="{self.bottom:.0f}" text-anchor="middle" font-size="{SMALL}"'
                f' fill="{TEXT_COLOR}">{_escape(self.usual)}</text>',
                "</svg>",
                "",
            ]
        )


def _escape(text: str) -> str:
    """Return a text for XML, which has no control characters."""
    return escape("".join([c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text]))


def _leaves_above_users(rows: Sequence[Any]) -> list[Any]:
    """Return the rows with each leaf directly above the first op that uses it."""
    leaves = {row for row in rows if row.kind == "leaf"}
    placed: dict[Any, None] = {}
    for row in rows:
        if row not in leaves:
            for _, source in row.inputs:
                if source in leaves:
                    placed.setdefault(source)
            placed.setdefault(row)
    return [*placed]


def svg(boxes: Sequence[Any], classes: Mapping[Path, str]) -> str:
    """Return the boxes of a graph as SVG."""
    return Drawing(boxes, classes).svg()
