"""The ways through a step that are kept: for each key a few, of which the one that was used last is tried first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xgrad.capturing.frame import Frame

_OF_A_KEY = 4  # ways at most, such as with and without gradients from before, training and evaluating


class Ways:
    """Frames by what a call is like; the ones that were used last are the last to go.

    Parameters
    ----------
    limit : int
        How many there may be.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._frames: dict[Any, list[Frame]] = {}  # the key that was used last is the last, its frame the first

    def __len__(self) -> int:
        return sum(map(len, self._frames.values()))

    def __iter__(self) -> Iterator[Frame]:
        for frames in self._frames.values():
            yield from frames

    def __contains__(self, key: Any) -> bool:
        return key in self._frames

    def of(self, key: Any) -> list[Frame]:
        """Return the frames of a key in the order in which to try them."""
        return [*self._frames.get(key, ())]

    def use(self, key: Any, frame: Frame) -> None:
        """Note that a frame is the last that was used."""
        frames = self._frames.pop(key)
        frames.remove(frame)
        self._frames[key] = [frame, *frames]

    def add(self, key: Any, frame: Frame) -> bool:
        """Keep a frame; return whether another had to go, for there are as many as there may be."""
        frames = self._frames.pop(key, [])
        if len(frames) >= _OF_A_KEY:
            frames.pop().release()
        full = len(self) + len(frames) >= self._limit
        if full and self._frames:
            least = next(iter(self._frames))
            self.drop(least, self._frames[least][-1])
        elif full:
            frames.pop().release()
        self._frames[key] = [frame, *frames]
        return full

    def drop(self, key: Any, frame: Frame) -> None:
        """Let go of a frame."""
        self._frames[key].remove(frame)
        if not self._frames[key]:
            del self._frames[key]
        frame.release()

    def clear(self) -> None:
        """Let go of all frames."""
        for frame in self:
            frame.release()
        self._frames.clear()
