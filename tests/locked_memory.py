"""A recorder that keeps known arrays read-only outside of array code.

Other writes raise ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import numpy as np

from xgrad.capture.program import Value
from xgrad.capture.proxies import Proxy
from xgrad.capture.recorder import Recorder
from xgrad.support.user_code import LIBRARIES

LIBRARIES.add(__name__)  # refusals name lines of the step, not of this module


class LockedRecorder(Recorder):
    """Records a step, and keeps NumPy's arrays that it knows read-only.

    They are read-only until the capture is refused or over. Array code is given array objects of
    its own, which are not locked.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._locked: dict[int, Any] = {}  # weak references, by id

    def _remember(self, array: Any, value: Value) -> None:
        super()._remember(array, value)
        if isinstance(array, np.ndarray) and array.flags.writeable and not self.refusal:
            self._locked[id(array)] = ref(array)
            array.flags.writeable = False

    def _own_locked(self, array: Any) -> list[Any]:
        """Return the locked arrays among an array and its bases.

        The owner of the memory comes first.
        """
        chain = []
        while isinstance(array, np.ndarray):
            if id(array) in self._locked and self._locked[id(array)]() is array:
                chain.append(array)
            array = array.base  # type: ignore[assignment]
        return chain[::-1]

    def proxy(self, array: Any) -> Proxy:
        locked = self._own_locked(array)
        for x in locked:
            x.flags.writeable = True
        made = super().proxy(array)
        for x in locked:
            x.flags.writeable = bool(self.refusal)
        return made

    def unlock(self) -> None:
        for reference in list(self._locked.values()):
            if (array := reference()) is not None:
                for x in self._own_locked(array):
                    x.flags.writeable = True
        self._locked.clear()

    def refuse(self, reason: str, line: str = "") -> None:
        super().refuse(reason, line)
        self.unlock()

    @contextmanager
    def paused(self, follow: Iterable[Any]) -> Iterator[None]:
        known = [array for reference in self._locked.values() if (array := reference()) is not None]
        self.unlock()
        with super().paused(follow):
            yield
        for array in known:
            if (value := self.value_of(array)) is not None:
                self._remember(array, value)

    @contextmanager
    def active(self) -> Iterator[None]:
        try:
            with super().active():
                yield
        finally:
            self.unlock()
