"""Progress of an epoch: a bar if tqdm is installed, else occasional lines."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

BAR_SECONDS, LINE_SECONDS = 0.2, 5.0  # between two updates


class Progress:
    """Progress of one epoch on standard error, updated rarely, since reading the figures waits for the device."""

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

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()

    def due(self) -> bool:
        """Return whether it is time for an update."""
        return not self.quiet and time.perf_counter() - self.shown >= self.interval

    def show(self, seen: int, loss: float, accuracy: float) -> None:
        """Show the figures of the first `seen` images."""
        self.shown = time.perf_counter()
        figures = f"loss {loss:.4f}, accuracy {accuracy:.2%}"
        if self.bar is not None:
            self.bar.set_postfix_str(figures, refresh=False)
            self.bar.update(seen - self.bar.n)
        else:
            rate = seen / (self.shown - self.start)
            print(f"{self.label}: {seen}/{self.total} images, {figures}, {rate:.0f} images/s", file=sys.stderr)
