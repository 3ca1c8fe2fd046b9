"""Containers of modules and parameters, and `DataParallel`."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import xgrad
from xgrad import nn as xnn
from xgrad.compat.torch.nn.module import Module

__all__ = [
    "DataParallel",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


class _List(Module):
    """A container whose slices are containers of the same class."""

    _items: Any
    __iter__: Any
    extend: Any

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            items = [(name, value) for name, value in self._items()][index]
            if isinstance(self, xnn.Sequential):
                return type(self)(OrderedDict(items))
            return type(self)([value for _, value in items])
        return super().__getitem__(int(index))  # type: ignore[misc]

    def __iadd__(self, others: Any) -> Any:
        return self.extend(others)

    def __add__(self, others: Any) -> Any:
        if isinstance(self, xnn.Sequential):
            return type(self)(*self, *others)
        return type(self)([*self, *others])


class Sequential(_List, xnn.Sequential, signature=""):
    """A chain of modules."""

    def __init__(self, *args: Any) -> None:
        xnn.Sequential.__init__(self, *args)


class ModuleList(_List, xnn.ModuleList, signature=""):
    """A list of modules."""

    def __init__(self, modules: Any = None) -> None:
        xnn.ModuleList.__init__(self, () if modules is None else modules)


class ModuleDict(Module, xnn.ModuleDict, signature=""):
    """A dictionary of modules."""

    def __init__(self, modules: Any = None) -> None:
        xnn.ModuleDict.__init__(self, () if modules is None else modules)


class ParameterList(_List, xnn.ParameterList, signature=""):
    """A list of parameters."""

    def __init__(self, values: Any = None) -> None:
        xnn.ParameterList.__init__(self, () if values is None else values)


class ParameterDict(Module, xnn.ParameterDict, signature=""):
    """A dictionary of parameters."""

    def __init__(self, parameters: Any = None) -> None:
        xnn.ParameterDict.__init__(self, () if parameters is None else parameters)


class DataParallel(Module):
    """A module on one device: the wrapper passes its arguments on."""

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        count = sum(xgrad.Device(name).type == "cuda" for name in xgrad.devices())
        if (count if device_ids is None else len(device_ids)) > 1:
            raise NotImplementedError(
                "torch.nn.DataParallel: several devices are not available in xgrad.compat.torch:"
                " give device_ids with one, or see xgrad.distributed"
            )
        self.module = module

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return the result of the module."""
        return self.module(*inputs, **options)
