"""A graph in the DOT language of Graphviz."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from xgrad.support.plotting import INK

Path = tuple[str, ...]

#: Fill and outline colors of boxes by kind; dark text on them is legible on light and dark pages.
COLORS = {
    "op": ("#dbe8fb", "#3d86e0"),
    "leaf": ("#e4f4e4", "#4a9a5b"),
    "module": ("#ece2fa", "#8a5cc9"),
}
FRAME_COLOR, TEXT_COLOR = "#a9b4c4", INK
FRAME = (
    f'labelloc=t; labeljust=l; style=rounded; color="{FRAME_COLOR}"; fontcolor="{TEXT_COLOR}";'
    " fontsize=10; margin=8"
)
FONT = 'fontname="DejaVu Sans,Verdana,sans-serif"'


def source(boxes: Sequence[Any], classes: Mapping[Path, str]) -> str:
    """Return the boxes of a graph in DOT, from the leaves at the top to the result.

    Modules are frames around ops.
    """
    numbers = {box: i for i, box in enumerate(boxes)}
    usual = usual_place(boxes)
    lines = [
        "digraph {",
        (
            '  graph [rankdir=TB, bgcolor="transparent", nodesep=0.25, ranksep=0.3, labelloc=b,'
            f' label="{usual}", {FONT}, fontsize=10, fontcolor="{TEXT_COLOR}"]'
        ),
        (
            f'  node [shape=box, style="filled,rounded", margin="0.14,0.05", height=0.3, {FONT},'
            " fontsize=11]"
        ),
        f'  edge [color="#7d899b", arrowsize=0.6, {FONT}, fontsize=9, fontcolor="{TEXT_COLOR}"]',
    ]
    members: dict[Path, list[Any]] = {}
    for box in boxes:
        for length in range(len(box.path) + 1):
            members.setdefault(box.path[:length], [])
        members[box.path].append(box)
    inner: dict[Path, list[Path]] = {path: [] for path in members}
    for path in members:
        if path:
            inner[path[:-1]].append(path)

    def contents(path: Path, outer: Path, indent: str) -> None:
        """Write the boxes and frames in a module.

        Their names are relative to `outer`, the innermost module with a frame.
        """
        for box in members[path]:
            fill, line = COLORS[box.kind]
            title = escape(relative(box.title, path))
            about = [box.shape, box.place if box.place != usual else "", box.contents, box.values]
            small = "".join(
                [f'<br/><font point-size="9">{escape(text)}</font>' for text in about if text]
            )
            lines.append(
                f'{indent}{numbers[box]} [label=<{title}{small}>, fillcolor="{fill}",'
                f' color="{line}"]'
            )
        for p in inner[path]:
            if len(inner[path]) == 1 and not members[path]:
                contents(p, outer, indent)
                continue
            title = quotable(f"{relative('.'.join(p), outer)} {classes.get(p, '')}")
            lines.append(f'{indent}subgraph "cluster {quotable(".".join(p))}" {{')
            lines.append(f'{indent}  label="{title}"; {FRAME}')
            contents(p, p, f"{indent}  ")
            lines.append(f"{indent}}}")

    contents((), (), "  ")
    for box in boxes:
        for name, origin in box.inputs:
            options = [f'edgetooltip="{quotable(name)}"'] if len(box.inputs) > 1 else []
            options += ["weight=8"] if origin.kind != "leaf" else []  # aligns the ops
            end = f" [{', '.join(options)}]" if options else ""
            lines.append(f"  {numbers[origin]} -> {numbers[box]}{end}")
    return "\n".join([*lines, "}", ""])


def usual_place(boxes: Sequence[Any]) -> str:
    """Return the dtype and device of most boxes."""
    places: list[str] = [box.place for box in boxes]
    return max(dict.fromkeys(places), key=places.count)


def quotable(text: str) -> str:
    """Return a text for quotes, in which DOT decodes entities and escapes."""
    return escape(text).replace("\\", r"\\")


def relative(name: str, path: Path) -> str:
    """Return a dotted name as seen from a module."""
    return name.removeprefix("".join([f"{part}." for part in path]))


def scrollable(picture: str | None, text: str) -> str:
    """Return HTML with a scrollable picture, or with a text if there is no picture."""
    if picture is None:
        return f"<pre>{escape(text)}</pre>"
    return f'<div style="max-height: 900px; overflow: auto">{picture}</div>'
