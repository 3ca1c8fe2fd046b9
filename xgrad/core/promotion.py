"""Promotion: the dtype of a computation with mixed dtypes and kinds of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import NoneType
from typing import Any

import numpy as np

from xgrad.backend import Backend
from xgrad.backend.device import Device
from xgrad.core.dtypes import (
    BOOLEAN,
    COMPLEX,
    FLOATING,
    KINDS,
    NAMES,
    SCALAR_KINDS,
    SCALARS,
    complex64,
    defaults,
)
from xgrad.core.op import Op


def promote(op: Op, raws: list[Any], device: Device, exempt: tuple[int, ...] = ()) -> list[Any]:
    """Convert the arrays among the inputs of a call to one dtype, by the tables of the standard.

    The standard leaves arrays of different kinds undefined. Here the kind is the highest of the
    operands, at least ``op.lowest``: bools become integers, integers floats, reals complex. The
    dtype comes from the operands of the highest kind, or is the default one if these are Python
    scalars, so float32 stays float32 on every device; floats that become complex keep their
    precision. Inputs at `exempt`, for example indices and conditions, have no part in it. With
    ``op.scipy_promotion``, arrays of all kinds decide, by NumPy's table, in which float32 and int64
    make float64; those at `exempt` do, but are not converted.

    Raise TypeError if a kind is higher than the op takes.
    """
    what = tuple([getattr(raw, "dtype", type(raw)) for raw in raws])
    highest, casts = _casts(
        device.backend, what, exempt, op.lowest or BOOLEAN, op.scipy_promotion, defaults()
    )
    if highest > op.highest:
        taken = [raw for i, raw in enumerate(raws) if raw is not None and i not in exempt]
        got = [
            repr(x) if type(x) in SCALARS else str(device.backend.numpy_dtype(x.dtype))
            for x in taken
        ]
        raise TypeError(f"{op.name}: expected {NAMES[op.highest]}, got {', '.join(got)}")
    raws = list(raws)
    with device.active():
        for i, dtype in casts:
            raws[i] = int(raws[i]) if dtype is int else device.xp.astype(raws[i], dtype)
    return raws


def are_bools(raws: Sequence[Any], device: Device) -> bool:
    """Return whether all arrays and scalars of a call are bools."""
    arrays = [x for x in raws if type(x) is not bool]
    return all(
        hasattr(x, "dtype") and device.backend.numpy_dtype(x.dtype).kind == "b" for x in arrays
    )


@lru_cache(1 << 10)
def _casts(
    backend: Backend,
    what: tuple[Any, ...],
    exempt: tuple[int, ...],
    lowest: int,
    scipy_promotion: bool,
    default: tuple[np.dtype, ...],
) -> tuple[int, Any]:
    """Return the highest kind of some dtypes and types, and the casts that follow from it.

    A cast is a pair of an input and its new dtype.
    """
    scalars = {i: t for i, t in enumerate(what) if t in SCALARS and i not in exempt}
    others = {
        i: t for i, t in enumerate(what) if not (t in SCALARS or t is NoneType or i in exempt)
    }
    dtypes = {i: backend.numpy_dtype(t) for i, t in others.items()}
    highest = max(
        lowest,
        *[SCALAR_KINDS[t] for t in scalars.values()],
        *[KINDS[t.kind] for t in dtypes.values()],
    )
    decisive = [t for t in dtypes.values() if KINDS[t.kind] in (highest, FLOATING)]
    if scipy_promotion:
        every = [backend.numpy_dtype(t) for t in what if not (t in SCALARS or t is NoneType)]
        decisive = every if any(KINDS[t.kind] >= FLOATING for t in every) else []
    target = np.result_type(*decisive or [default[highest]], *[complex64] * (highest == COMPLEX))
    casts = [(i, int) for i, t in scalars.items() if t is bool and highest]
    if KINDS[target.kind] == highest:  # the standard has no common dtype of int64 and uint64
        casts += [(i, backend.dtype(target)) for i, t in dtypes.items() if t != target]
    return highest, casts
