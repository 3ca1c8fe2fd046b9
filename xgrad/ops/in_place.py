"""Functions whose result is written to their input, as with PyTorch's option ``inplace``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgrad.core.arguments import check_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops.writing import update


def in_place(function: Callable[..., Tensor], x: Any, *args: Any, **options: Any) -> Tensor:
    """Return `x` after it got the value of a function of it.

    The value replaces the array of `x`, and nothing is copied. What the function saves for backward
    is kept: this uses as much memory as the function itself.
    """
    name = getattr(function, "__name__", "inplace")
    return update(check_tensor(name, "x", x), lambda x, _: function(x, *args, **options), ())
