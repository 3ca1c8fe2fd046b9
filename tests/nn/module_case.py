"""One case of the table of modules: a class, its options, and the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Input = tuple[int, ...] | np.ndarray


@dataclass(frozen=True)
class ModuleCase:
    """One case.

    Attributes
    ----------
    name : str
        The class.
    args : tuple
        Its positional arguments, in both libraries.
    inputs : tuple of (tuple of int or ndarray)
        The arguments of the call: shapes, of normal random numbers, or arrays. Floating ones
        require gradients.
    options : mapping
        Its keyword arguments.
    torch_options : mapping
        Keyword arguments with another name in PyTorch, such as ``dim``, and None for the name that
        they replace.
    call : mapping
        Keyword arguments of the call, in both libraries; arrays become tensors.
    torch_tolerance : float
        The error of PyTorch in float64, where it is larger than rounding.
    """

    name: str
    args: tuple[Any, ...]
    inputs: tuple[Input, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    torch_options: Mapping[str, Any] = field(default_factory=dict)
    call: Mapping[str, Any] = field(default_factory=dict)
    torch_tolerance: float = 0.0

    def __str__(self) -> str:
        parts = [*map(str, self.args), *(f"{key}={value}" for key, value in self.options.items())]
        shapes = ",".join(str(x if isinstance(x, tuple) else x.shape) for x in self.inputs)
        return f"{self.name}({','.join(parts)}) of {shapes}".replace(" ", "")

    @property
    def is_loss(self) -> bool:
        return self.name.endswith("Loss")

    def named_for_torch(self) -> dict[str, Any]:
        """Return the keyword arguments of PyTorch's class."""
        options = {**self.options, **self.torch_options}
        return {
            key: value
            for key, value in options.items()
            if key not in self.torch_options or value is not None
        }


def case(
    name: str,
    *args: Any,
    of: tuple[Input, ...],
    torch: Mapping[str, Any] | None = None,
    call: Mapping[str, Any] | None = None,
    torch_tolerance: float = 0.0,
    **options: Any,
) -> ModuleCase:
    return ModuleCase(name, args, of, options, torch or {}, call or {}, torch_tolerance)
