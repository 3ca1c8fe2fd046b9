"""How far an epoch has come: a bar where tqdm is installed, else a line now and then."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from types import TracebackType
from typing import Any

BAR_SECONDS, LINE_SECONDS = 0.2, 5.0  # between two looks at the figures


class Progress:
    """Progress of one epoch on stderr, shown seldom, since the figures to show are on the device.

    Parameters
    ----------
    label : str
        What goes on, such as ``epoch 1/5``.
    total : int
        The number of images.
    quiet : bool
        Whether to show nothing.
    """

    def __init__(self, label: str, total: int, quiet: bool) -> None:
        self.label, self.total, self.quiet = label, total, quiet
        self.start = self.shown = time.perf_counter()
        self.bar: Any = None
        try:
            tqdm = import_module("tqdm").tqdm
        except ImportError:
            self.interval = LINE_SECONDS
        else:
            self.interval = BAR_SECONDS
            self.quiet |= not sys.stderr.isatty()
            if not self.quiet:
                self.bar = tqdm(
                    desc=label, total=total, unit="img", leave=False, dynamic_ncols=True, mininterval=0, miniters=1
                )

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()

    def due(self) -> bool:
        """Return whether it is time to show something."""
        return not self.quiet and time.perf_counter() - self.shown >= self.interval

    def show(self, seen: int, loss: float, accuracy: float) -> None:
        """Show the figures of the first `seen` images."""
        self.shown = time.perf_counter()
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {loss:.4f}, accuracy {accuracy:.2%}", refresh=False)
            self.bar.update(seen - self.bar.n)
        else:
            rate = seen / (self.shown - self.start)
            print(
                f"{self.label}: {seen}/{self.total} images, loss {loss:.4f}, accuracy {accuracy:.2%}, "
                f"{rate:.0f} images/s",
                file=sys.stderr,
            )
