"""Addition to elements of an array by index, once for each repeated index."""

from __future__ import annotations

from typing import Any

import numpy as np

# Dtypes with atomic addition, and wider dtypes for the others: a sum in float16 stays at 2048.
_ADDABLE = frozenset(map(np.dtype, ("int32", "int64", "uint32", "uint64", "float32", "float64")))
_WIDER = {
    np.dtype(f"{kind}{bits}"): np.dtype(f"{kind}32") for kind in ("int", "uint") for bits in (8, 16)
}
_WIDER[np.dtype("float16")] = np.dtype("float32")


def index_add(cp: Any, x: Any, key: Any, values: Any) -> Any:
    """Add `values` to ``x[key]`` in place, once for each repeated index, and return `x`."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, cp.ndarray) and part.dtype.kind in "iu" for part in parts):
        x[key] += values  # no index repeats
    elif not x.size:
        return x  # CuPy's kernel would divide by zero
    elif x.dtype in _ADDABLE:
        cp.add.at(x, key, values)
    elif x.dtype.kind == "c":
        cp.add.at(x.real, key, values.real)
        cp.add.at(x.imag, key, values.imag)
    elif x.dtype in _WIDER:
        sums = x.astype(_WIDER[x.dtype])
        cp.add.at(sums, key, values.astype(sums.dtype))
        x[...] = sums
    else:
        raise TypeError(
            f"index_add: expected integers, or floats or complex numbers of NumPy's, got {x.dtype}:"
            " cast to float32"
        )
    return x
