"""The style of all plots, which matplotlib draws: transparent, legible on light and dark pages.

`STYLE` has its settings, for ``matplotlib.pyplot.style.use(STYLE)`` or ``matplotlib.rc_context``.
The first colour, ``C0``, stands for xgrad, ``C7`` for everything that it is compared with.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from xgrad.support.hints import import_optional

#: Text and axes, with a contrast of 4 with white as well as with the darkest pages, #131416.
INK = "#757d88"
#: Errors out of tolerance.
FAILED = "#e0483e"
#: Devices or runs side by side; the first is the colour of xgrad.
COLORS = ("#3d86e0", "#d8781f", "#a06be0", "#26a195", "#d0589a")
#: What is compared with xgrad: peers and references.
OTHER, OTHERS = "#8b94a3", ("#8b94a3", "#6f7681", "#9a8868")
CYCLE = (*COLORS, FAILED, INK, OTHER)

STYLE: dict[str, Any] = {
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
    "grid.color": INK,
    "grid.alpha": 0.25,
    "axes.prop_cycle": f"cycler('color', {list(CYCLE)})",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "figure.facecolor": "none",
    "figure.titlesize": 11,
    "figure.constrained_layout.use": True,
    "legend.frameon": False,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "savefig.facecolor": "none",
    "savefig.dpi": 150,
    # text remains text, in a font of the reader that is no wider than DejaVu Sans
    "svg.fonttype": "none",
    # equal data give equal files
    "svg.hashsalt": "xgrad",
}


def figure(width: float, height: float, draw: Callable[[Any], None], extra: str = "cli") -> Any:
    """Return a figure in the style, filled by a function; width and height are in inches.

    If matplotlib is missing, ImportError tells the command that installs it, with `extra`.
    """
    # not pyplot, which keeps every figure, and may need a display
    module = import_optional("matplotlib.figure", extra)
    with import_optional("matplotlib", extra).rc_context(STYLE):
        result = module.Figure(figsize=(width, height))
        draw(result)
        # the first layout may change the labels, and with them the space that they need
        for _ in range(2):
            result.draw_without_rendering()
        result.set_layout_engine("none")
        return result


def svg(figure: Any) -> str:
    """Return a figure as SVG; equal figures give equal texts."""
    file = io.StringIO()
    with import_optional("matplotlib", "cli").rc_context(STYLE):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def png(figure: Any) -> bytes:
    """Return a figure as PNG."""
    file = io.BytesIO()
    with import_optional("matplotlib", "cli").rc_context(STYLE):
        figure.savefig(file, format="png")
    return file.getvalue()
