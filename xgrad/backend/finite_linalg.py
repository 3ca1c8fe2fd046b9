"""A check before LAPACK's SVD, which may not terminate for a matrix with an infinity."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


def finite_linalg(linalg: Any, to_host: Callable[[Any], np.ndarray]) -> SimpleNamespace:
    """Return a ``linalg`` namespace whose functions of singular values check for finite numbers.

    They raise LinAlgError for NaN and infinity.
    """

    def checked(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(x: Any, /, **options: Any) -> Any:
            if not np.isfinite(to_host(x)).all():
                raise np.linalg.LinAlgError("expected finite numbers, found NaN or infinity")
            return function(x, **options)

        return call

    names = ("matrix_rank", "pinv", "svd", "svdvals")
    return SimpleNamespace(
        **vars(linalg) | {name: checked(getattr(linalg, name)) for name in names}
    )
