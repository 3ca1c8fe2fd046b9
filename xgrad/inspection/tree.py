"""A graph as a tree of text, with lines for branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xgrad.inspection.dot import usual_place


def text(boxes: Sequence[Any]) -> str:
    """Return the boxes of a graph, in the order of execution, as text from result to leaves.

    The input with the most ops behind it continues below an op, and the others are branches. A box
    with several users is drawn below the user that was executed first, and has a number by which
    the other users refer to it.
    """
    parents: dict[Any, Any] = {}
    sizes, uses = dict.fromkeys(boxes, 1), dict.fromkeys(boxes, 0)
    for box in boxes:
        for _, source in box.inputs:
            uses[source] += 1
            parents.setdefault(source, box)
    for box in boxes[:-1]:
        sizes[parents[box]] += sizes[box]
    shared = [box for box in reversed(boxes) if uses[box] > 1]
    titles = {box: box.title for box in boxes} | {
        box: f"{box.title} #{i}" for i, box in enumerate(shared, 1)
    }

    def lines(box: Any, start: str, indent: str) -> Iterator[tuple[str, Any]]:
        """Yield the lines of a box and everything below it.

        A branch has at most half of the ops, so recursion is shallow.
        """
        while True:
            yield f"{start}{titles[box]}", box
            own = [
                source
                for _, source in box.inputs
                if parents[source] is box and source.kind != "leaf"
            ]
            trunk = max(own, key=sizes.__getitem__, default=None)
            branches = [(name, source) for name, source in box.inputs if source is not trunk]
            for i, (name, source) in enumerate(branches, 1):
                line, rest = ("└─", "  ") if trunk is None and i == len(branches) else ("├─", "│ ")
                if parents[source] is not box:
                    yield f"{indent}{line}○ {name}: see {titles[source]}", None
                else:
                    mark = "○" if source.kind == "leaf" else "●"
                    yield from lines(source, f"{indent}{line}{mark} {name}: ", indent + rest)
            if trunk is None:
                return
            box, start = trunk, f"{indent}● "

    rows = list(lines(boxes[-1], "● ", ""))
    usual = usual_place(boxes)
    left, middle = max(len(text) for text, _ in rows), max(len(box.shape) for box in boxes)
    leaves = sum(box.kind == "leaf" for box in boxes)
    count = sum(box.ops for box in boxes) - leaves
    written = [
        f"{count} op{'s' * (count != 1)}, {leaves} lea{'ves' if leaves != 1 else 'f'}; {usual}"
    ]
    for text, box in rows:
        cells = (
            []
            if box is None
            else [box.place if box.place != usual else "", box.contents, box.values]
        )
        shape = "" if box is None else box.shape
        written.append(
            "  ".join([f"{text:{left}}", f"{shape:{middle}}", *filter(None, cells)]).rstrip()
        )
    return "\n".join(written)
