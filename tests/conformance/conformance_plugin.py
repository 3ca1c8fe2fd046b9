"""Plugin of pytest that corrects one comparison in the standard's own suite: see `run.py`.

`test_can_cast` compares None, for pairs that its table of promotions does not have, with the dtype
to cast to. NumPy says that None equals ``np.dtype("float64")``, and the test then expects that
complex numbers can be cast to float64. Here the table gives an object that equals no dtype instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest


@pytest.fixture(autouse=True, scope="session")
def _absent_promotions_equal_no_dtype() -> Iterator[None]:
    table: Any = import_module("array_api_tests.dtype_helpers").EqualityMapping
    get, absent = table.get, object()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "get", lambda self, key, default=absent: get(self, key, default))
        yield
