"""`torch.nn.Module`: xgrad's, with PyTorch's arguments, and tensors of this namespace.

A layer is a class with two bases, `Module` and xgrad's layer, and PyTorch's signature of its
constructor; `Module` converts the arguments, and the tensors of the layer and its results.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import xgrad
from xgrad import nn as xnn
from xgrad.compat.torch.conversions import is_dtype
from xgrad.compat.torch.signatures import SIGNATURES, Signature, signature_of
from xgrad.compat.torch.tensor import as_argument, as_torch
from xgrad.nn.parameter import Parameter

#: The class of this namespace for each layer of xgrad.
ADAPTED: dict[type, type] = {}


class Module(xnn.Module):
    """The base class of layers and models, with PyTorch's methods: see `xgrad.nn.Module`."""

    def __init_subclass__(cls, signature: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if signature is not None:
            SIGNATURES[cls] = Signature(f"torch.nn.{cls.__name__}", signature)
            ADAPTED[cls.__mro__[cls.__mro__.index(Module) + 1]] = cls

    @property
    def _signature(self) -> Signature | None:
        """The signature of the constructor, None for a class of a program."""
        return signature_of(type(self))

    def __init__(self, *args: Any, **options: Any) -> None:
        signature = self._signature
        if signature is None:
            super().__init__(*args, **options)
            return
        inputs, chosen = signature.bind(args, options)
        if isinstance(chosen.get("device"), int):
            chosen["device"] = f"cuda:{chosen['device']}"
        super().__init__(*inputs, **chosen)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, xgrad.Tensor):
            as_torch(value)
        elif isinstance(value, xnn.Module) and not isinstance(value, Module):
            adopt(value)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute; programs call this method by its name, with a computed one."""
        if name in vars(self):
            return vars(self)[name]
        return as_torch(super().__getattr__(name))  # type: ignore[misc]  # a computed attribute

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        inputs = tuple([as_argument(x) for x in inputs])
        options = {name: as_argument(x) for name, x in options.items()}
        return as_torch(super().__call__(*inputs, **options))

    # Hooks, which get tensors of this namespace

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Any:
        """Call ``hook(module, args)`` before every call."""
        return super().register_forward_pre_hook(
            _of_tensors(hook), prepend=prepend, with_kwargs=with_kwargs
        )

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> Any:
        """Call ``hook(module, args, output)`` after every call."""
        if always_call:
            raise NotImplementedError(
                "register_forward_hook: always_call=True is not available in xgrad.compat.torch"
            )
        return super().register_forward_hook(
            _of_tensors(hook), prepend=prepend, with_kwargs=with_kwargs
        )

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Call ``hook(module, grad_input, grad_output)`` in every backward pass."""
        return super().register_full_backward_hook(_of_tensors(hook), prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Any:
        """Refuse PyTorch's deprecated hook."""
        raise NotImplementedError(
            "register_backward_hook is not available in xgrad.compat.torch: use"
            " register_full_backward_hook"
        )

    # Submodules, parameters and buffers

    def register_module(self, name: str, module: xnn.Module | None) -> None:
        """Set an attribute to a module."""
        self.add_module(name, module)

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Return this module and all nested modules, with their names."""
        if remove_duplicate and not memo:
            for name, module in super().named_modules():
                yield (f"{prefix}.{name}" if prefix and name else prefix or name), module
            return
        yield from _nested(self, set() if memo is None else memo, prefix, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Return this module and all nested modules."""
        return (m for _, m in self.named_modules(remove_duplicate=remove_duplicate))

    def _members(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        for path, module in (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        ):
            for name, value in vars(module).items():
                if kind == "parameter":
                    registered = isinstance(value, Parameter)
                else:
                    registered = name in module._buffers and value is not None
                if not registered or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Return the parameters of all modules, or of this one alone, with their names."""
        return self._members("parameter", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Return the parameters of all modules, or of this one alone."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Return the buffers of all modules, or of this one alone, with their names."""
        return self._members("buffer", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Return the buffers of all modules, or of this one alone."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_parameter(self, target: str) -> Any:
        """Return the parameter at a path of attributes."""
        return self._registered("parameter", target, dict(self.named_parameters()))

    def get_buffer(self, target: str) -> Any:
        """Return the buffer at a path of attributes."""
        return self._registered("buffer", target, dict(self.named_buffers()))

    def _registered(self, kind: str, path: str, known: Mapping[str, Any]) -> Any:
        value = self._at(path)
        if not any(value is tensor for tensor in known.values()):
            raise AttributeError(f"{type(self).__name__}: no {kind} {path!r} among {list(known)}")
        return value

    @property
    def _parameters(self) -> dict[str, Any]:
        """The parameters among the attributes, by name."""
        return {k: v for k, v in vars(self).items() if isinstance(v, Parameter)}

    @property
    def _modules(self) -> dict[str, Any]:
        """The modules among the attributes, by name."""
        return {k: v for k, v in vars(self).items() if isinstance(v, xnn.Module)}

    # Changes to all modules, parameters and buffers

    def to(self, *target: Any, **options: Any) -> Self:
        """Move floating parameters and buffers to a device or a dtype, as ``Tensor.to`` does."""
        device, dtype = options.pop("device", None), options.pop("dtype", None)
        for name in ("non_blocking", "memory_format"):  # which have no effect in xgrad
            options.pop(name, None)
        if options:
            raise TypeError(f"{type(self).__name__}.to: unknown arguments {sorted(options)}")
        for x in target:
            if isinstance(x, xgrad.Tensor):
                device, dtype = x.device, x.dtype
            elif isinstance(x, bool) or x is None:
                continue
            elif is_dtype(x):
                dtype = x
            else:
                device = f"cuda:{x}" if isinstance(x, int) else x
        return super().to(device, dtype)

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a GPU."""
        return self.to("cuda" if device is None else device)

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU."""
        return self.to("cpu")

    def type(self, dst_type: Any) -> Self:
        """Convert floating parameters and buffers to a dtype."""
        return self.to(dtype=dst_type)

    def bfloat16(self) -> Self:
        """Refuse a dtype that xgrad lacks."""
        raise NotImplementedError(
            "Module.bfloat16 is not available in xgrad.compat.torch: use half(), or float()"
        )

    # The state

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return views of all parameters and persistent buffers by name, as PyTorch does.

        They follow updates of the parameters: copy them, or save them, to keep their values.
        """
        if args:
            rest = [destination, prefix, keep_vars][len(args) :]
            destination, prefix, keep_vars = [*args, *rest]
        state = OrderedDict() if destination is None else destination
        for path, module in self.named_modules(prefix=prefix.rstrip("."), remove_duplicate=False):
            start = f"{path}." if path else prefix if module is self else ""
            own = [*Module._own(module, Parameter), *Module._own(module, None)]
            for name, value in own:
                state[start + name] = value if keep_vars else value.data
        return state

    def _own(self, kind: Any) -> list[tuple[str, Any]]:
        """Return the parameters among the attributes, or the persistent buffers."""
        items = vars(self).items()
        if kind is not None:
            return [(name, value) for name, value in items if isinstance(value, kind)]
        names = self._buffers - self._non_persistent
        return [(name, value) for name, value in items if name in names and value is not None]

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Set parameters and buffers from a `state_dict`; RuntimeError if one does not fit."""
        if assign:
            raise NotImplementedError(
                "load_state_dict: assign=True is not available in xgrad.compat.torch"
            )
        try:
            return super().load_state_dict(state_dict, strict)
        except ValueError as error:
            raise RuntimeError(str(error)) from error


def _nested(
    module: xnn.Module, memo: set[Any], prefix: str, remove_duplicate: bool
) -> Iterator[tuple[str, Any]]:
    """Return a module and all nested modules, which may be ones of xgrad, with their names."""
    if remove_duplicate and module in memo:
        return
    memo.add(module)
    yield prefix, module
    for name, child in vars(module).items():
        if isinstance(child, xnn.Module):
            path = f"{prefix}.{name}" if prefix else name
            yield from _nested(child, memo, path, remove_duplicate)


def adopt(module: xnn.Module) -> None:
    """Make a layer of xgrad, and all nested ones, layers of this namespace."""
    for part in list(module.modules()):
        kind = ADAPTED.get(type(part))
        if kind is not None:
            part.__class__ = kind
        for value in vars(part).values():
            if isinstance(value, xgrad.Tensor):
                as_torch(value)


def _of_tensors(hook: Any) -> Any:
    """Return a hook that gets tensors of this namespace."""
    if not callable(hook):
        return hook

    def call(module: Any, *args: Any) -> Any:
        return hook(module, *as_torch(args))

    return call
