"""Loading of a `state_dict`: names, shapes and dtypes are checked before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from xgrad.core.tensor import Tensor
from xgrad.ops import asarray
from xgrad.ops.writing import set_data


class IncompatibleKeys(NamedTuple):
    """The names that `Module.load_state_dict` ignored.

    Attributes
    ----------
    missing_keys : list of str
        Names of the module that were not given; their values are kept.
    unexpected_keys : list of str
        Names that were given, but that the module does not have.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Linear(2, 1).load_state_dict({"weight": xgrad.ones((1, 2))}, strict=False)
    IncompatibleKeys(missing_keys=['bias'], unexpected_keys=[])
    """

    missing_keys: list[str]
    unexpected_keys: list[str]


def load_state(
    title: str,
    own: Mapping[str, Tensor],
    first_name: Callable[[str], str | None],
    state: Any,
    strict: bool,
) -> IncompatibleKeys:
    """Set the values of tensors by name.

    `first_name` returns the name in `own` of a tensor that has several names.
    """
    if not isinstance(state, Mapping):
        raise TypeError(
            f"{title}: expected a mapping of names to tensors, got {type(state).__name__}: of a"
            " file, give what xgrad.load returns"
        )
    others = {name: first for name in state if name not in own and (first := first_name(str(name)))}
    state = {
        others.get(name, name): value
        for name, value in state.items()
        if others.get(name) not in state
    }
    result = IncompatibleKeys(
        [n for n in own if n not in state], [n for n in state if n not in own]
    )
    wrong = [f"{name!r}: missing" for name in result.missing_keys if strict]
    wrong += [
        f"{name!r}: unexpected{_nearest(name, own)}" for name in result.unexpected_keys if strict
    ]
    new = {name: as_state(title, name, state[name]) for name in own if name in state}
    for name, value in new.items():
        if value.shape != own[name].shape:
            wrong.append(f"{name!r}: expected shape {own[name].shape}, got {value.shape}")
        elif not np.can_cast(value.dtype, own[name].dtype, "same_kind"):
            wrong.append(f"{name!r}: expected {own[name].dtype}, got {value.dtype}")
    if wrong:
        raise ValueError("\n  ".join([f"{title}: nothing was loaded, because of", *wrong]))
    for name, value in new.items():
        set_data(
            own[name],
            Tensor(value._without_history(), dtype=own[name].dtype, device=own[name].device),
        )
    return result


def _nearest(name: Any, known: Mapping[str, Any]) -> str:
    found = import_module("xgrad.support.suggestions").nearest(str(name), known, cutoff=0.0)
    return f", the nearest is {found!r}" if found else ""


def as_state(title: str, name: str, value: Any) -> Tensor:
    """Return a value for a parameter or buffer as a tensor; a TypeError gives its name."""
    try:
        return value if isinstance(value, Tensor) else asarray(value)
    except TypeError as error:
        raise TypeError(f"{title}: expected a tensor for {name!r}: {error}") from error
