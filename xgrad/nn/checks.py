"""Checks of the inputs and the options of layers."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops.precision import is_cast
from xgrad.support.hints import shown


def of_dtype_of(weight: Tensor, input: Tensor, layer: str, name: str = "input") -> Tensor:
    """Return the input of a layer as a tensor; TypeError unless it has the weight's dtype.

    Nothing is promoted. In `xgrad.amp.autocast`, the input may be float16 while the weight is
    float32.
    """
    input = as_tensor(layer, name, input)
    if (
        input._placement is not weight._placement
        and input.dtype != weight.dtype
        and not is_cast(input, weight)
    ):
        hint = f"use {name}.astype(xgrad.{weight.dtype})"
        if input.dtype.kind in "fc":
            hint += f", or model.to(dtype=xgrad.{input.dtype})"
        raise TypeError(
            f"{layer}: expected {name} of {weight.dtype}, the dtype of weight, got {input.dtype}:"
            f" {hint}"
        )
    return input


def positive_int(layer: str, name: str, value: Any) -> int:
    """Return an option of a layer as an int; ValueError unless it is an integer above 0."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{layer}: expected an int above 0 for {name}, got {shown(value)}")
    return int(value)


def checked_flag(layer: str, name: str, value: Any) -> bool:
    """Return an option of a layer that is a bool; TypeError unless it is one."""
    if not isinstance(value, bool):
        raise TypeError(f"{layer}: expected True or False for {name}, got {shown(value)}")
    return value
