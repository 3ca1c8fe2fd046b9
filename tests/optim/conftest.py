"""A fixture that sets PyTorch's default dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def pytorch_dtype(torch: Any) -> Iterator[Callable[[str], None]]:
    """Return a function that sets PyTorch's default dtype for one test.

    NAdam's state has this dtype.
    """
    yield lambda name: torch.set_default_dtype(getattr(torch, name))
    torch.set_default_dtype(torch.float32)
