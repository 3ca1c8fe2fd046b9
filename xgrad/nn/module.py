"""The base class of modules, which contain parameters, buffers and other modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from xgrad.backend.device import Device
from xgrad.core.dtypes import float16, float32, float64, standard
from xgrad.core.tensor import Tensor
from xgrad.nn.calls import CallableModule
from xgrad.nn.computed import ComputedAttributes
from xgrad.nn.parameter import Parameter
from xgrad.nn.state_dict import IncompatibleKeys, load_state
from xgrad.nn.summary import Summary, summarize
from xgrad.nn.unregistered import warn_of_unregistered
from xgrad.ops import asarray, zeros_like
from xgrad.support.hints import shown


class Edits:
    """A count of how often attributes of modules were set or deleted.

    Caches that depend on the attributes compare it.
    """

    number = 0


edits: Edits = Edits()


class Module(CallableModule, ComputedAttributes):
    """The base class of layers, models and losses: a function with state.

    Subclass it, call ``super().__init__()``, set attributes, and define ``forward``. Attributes of
    type `Parameter` or `Module` are registered, in the order in which they were first set. Their
    names are paths of attributes, joined by dots. Parameters and modules in lists or dicts are not
    registered: use `nn.ModuleList`. For type checkers, a call has the parameters and the result
    that `forward` declares.

    Attributes
    ----------
    training : bool
        Whether the module is in training mode, which matters to layers such as dropout: see
        `train` and `eval`.

    Warns
    -----
    UserWarning
        If parameters or buffers are collected while a list, tuple or dict among the attributes has
        modules or parameters that are not registered.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(2.0)
    ...
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> scale = Scale()
    >>> scale(xgrad.ones(2)).sum().backward()
    >>> dict(scale.named_parameters())
    {'factor': Parameter(2., requires_grad=True)}
    >>> scale.factor.grad
    Tensor(2.)
    """

    training: bool
    _buffers: set[str]
    _non_persistent: frozenset[str] = frozenset()  # the buffers that are not in `state_dict`

    def __init__(self) -> None:
        vars(self).update(_buffers=set(), _hooks=(), training=True)

    def __setattr__(self, name: str, value: Any) -> None:
        state = vars(self)
        if "_buffers" not in state:
            raise AttributeError(
                f"{type(self).__name__}: expected super().__init__() before attributes are set, got"
                f" {shown(name)}: call it first in __init__"
            )
        kind = (
            Parameter
            if isinstance(state.get(name), Parameter)
            else Tensor
            if name in self._buffers
            else None
        )
        if kind is not None and not (value is None or isinstance(value, kind)):
            role = "parameter" if kind is Parameter else "buffer"
            raise TypeError(
                f"{type(self).__name__}.{name}: expected a {kind.__name__} or None for a {role},"
                f" got {type(value).__name__}: to change its values, assign to .data"
            )
        edits.number += 1
        if name in self._computed:
            self._computed[name].assign(self, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        edits.number += 1
        super().__delattr__(name)
        self._buffers.discard(name)
        if name in self._non_persistent:
            self._non_persistent -= {name}

    def _check_name(self, method: str, name: Any, known: bool) -> None:
        """Raise a ValueError unless a name has no dot, and is free or `known`.

        A known name belongs to an attribute of the same kind.
        """
        if (
            not isinstance(name, str)
            or not name
            or "." in name
            or (hasattr(self, name) and not known)
        ):
            title = method or type(self).__name__
            raise ValueError(
                f"{title}: expected a name that is free and has no dot, got {shown(name)}"
            )

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set an attribute that is part of the state but not trained, such as a running mean.

        Parameters
        ----------
        name : str
            The name of the attribute, which can be assigned like any other.
        tensor : Tensor or None
            The value, of any shape, dtype and device.
        persistent : bool, default True
            Whether it is part of `state_dict`.

        Raises
        ------
        TypeError
            If `tensor` is neither a tensor nor None.
        ValueError
            If the name is taken, or contains a dot.

        Examples
        --------
        >>> import xgrad
        >>> module = xgrad.nn.Module()
        >>> module.register_buffer("mean", xgrad.zeros(2))
        >>> module.register_buffer("mask", xgrad.ones(2), persistent=False)
        >>> module.state_dict()
        {'mean': Tensor([0., 0.])}
        """
        self._check_name("register_buffer", name, name in self._buffers)
        self._buffers.add(name)
        self._non_persistent = (
            self._non_persistent - {name} if persistent else self._non_persistent | {name}
        )
        setattr(self, name, tensor)

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Set an attribute to a parameter, as an assignment does.

        Parameters
        ----------
        name : str
            The name of the attribute.
        parameter : Parameter or None
            The parameter, or None in place of one.

        Raises
        ------
        TypeError
            If `parameter` is neither a parameter nor None.
        ValueError
            If the name is taken, or contains a dot.

        Examples
        --------
        >>> import xgrad
        >>> module = xgrad.nn.Module()
        >>> module.register_parameter("scale", xgrad.nn.Parameter(1.0))
        >>> list(module.state_dict())
        ['scale']
        """
        self._check_name("register_parameter", name, isinstance(vars(self).get(name), Parameter))
        if not isinstance(parameter, (Parameter, type(None))):
            raise TypeError(
                f"register_parameter: expected a Parameter or None, got {type(parameter).__name__}:"
                " use nn.Parameter(tensor)"
            )
        setattr(self, name, parameter)

    def add_module(self, name: str, module: Module | None) -> None:
        """Set an attribute to a module, as an assignment does.

        Parameters
        ----------
        name : str
            The name of the attribute.
        module : Module or None
            The module, or None in place of one.

        Raises
        ------
        TypeError
            If `module` is neither a module nor None.
        ValueError
            If the name is taken, or contains a dot.

        Examples
        --------
        >>> import xgrad
        >>> module = xgrad.nn.Module()
        >>> module.add_module("head", xgrad.nn.Linear(3, 2))
        >>> module
        Module(
          (head): Linear(in_features=3, out_features=2, bias=True)
        )
        """
        self._check_name("add_module", name, isinstance(vars(self).get(name), Module))
        if not isinstance(module, (Module, type(None))):
            raise TypeError(f"add_module: expected a Module or None, got {type(module).__name__}")
        setattr(self, name, module)

    # Submodules, parameters and buffers

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Return the modules among the attributes, each once, with their names."""
        seen = set()
        for name, value in vars(self).items():
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def children(self) -> Iterator[Module]:
        """Return the modules among the attributes, each once."""
        return (child for _, child in self.named_children())

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Return this module, named "", and all nested modules, each once, with their names.

        Examples
        --------
        >>> import xgrad
        >>> [name for name, _ in xgrad.nn.MLP([3, 2, 1]).named_modules()]
        ['', '0', '1', '2']
        """
        seen = set()
        stack: list[tuple[str, Module]] = [("", self)]
        while stack:
            name, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            prefix = f"{name}." if name else ""
            stack += [
                (prefix + key, child) for key, child in reversed(list(module.named_children()))
            ]

    def modules(self) -> Iterator[Module]:
        """Return this module and all nested modules, each once."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, path: str) -> Module:
        """Return the module at a path of attributes, such as a name in `named_modules`.

        Parameters
        ----------
        path : str
            Names of attributes, joined by dots; "" is this module.

        Raises
        ------
        AttributeError
            If there is no module at the path.
        TypeError
            If the path is not a str.

        Examples
        --------
        >>> import xgrad
        >>> net = xgrad.nn.Sequential(xgrad.nn.MLP([3, 2]), xgrad.nn.ReLU())
        >>> net.get_submodule("0.0")
        Linear(in_features=3, out_features=2, bias=True)
        """
        if not isinstance(path, str):
            raise TypeError(
                f"{type(self).__name__}: expected the path of a module as a str, got {shown(path)}"
            )
        module = self._at(path) if path else self
        if not isinstance(module, Module):
            known = [name for name, _ in self.named_modules()]
            raise AttributeError(
                f"{type(self).__name__}: expected the path of a module of {known}, got"
                f" {shown(path)}"
            )
        return module

    def _at(self, path: str) -> Any:
        """Return the attribute at a path; None if there is none."""
        value: Any = self
        for name in path.split("."):
            value = vars(value).get(name) if isinstance(value, Module) else None
        return value

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Return the parameters of all modules, each once, with their first names.

        Examples
        --------
        >>> import xgrad
        >>> [(name, p.shape) for name, p in xgrad.nn.MLP([3, 2]).named_parameters()]
        [('0.weight', (2, 3)), ('0.bias', (2,))]
        """
        return (
            (name, tensor) for name, tensor in self._named_state() if isinstance(tensor, Parameter)
        )

    def parameters(self) -> Iterator[Parameter]:
        """Return the parameters of all modules, each once."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Return the buffers of all modules, each once, with their first names."""
        return (
            (name, tensor)
            for name, tensor in self._named_state()
            if not isinstance(tensor, Parameter)
        )

    def buffers(self) -> Iterator[Tensor]:
        """Return the buffers of all modules, each once."""
        return (buffer for _, buffer in self.named_buffers())

    def _named_state(self) -> Iterator[tuple[str, Tensor]]:
        seen = set()
        containers = []
        for prefix, module in self.named_modules():
            seen.add(id(module))
            items: Iterable[tuple[str, Any]] = vars(module).items()
            if module._buffers:  # after the parameters, as in PyTorch
                items = sorted(items, key=lambda item: item[0] in module._buffers)
            for name, value in items:
                registered = isinstance(value, Parameter) or (
                    name in module._buffers and value is not None
                )
                if registered and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{prefix}.{name}" if prefix else name, value
                elif isinstance(value, (list, tuple, dict)):
                    containers.append((f"{type(module).__name__}.{name}", value))
        for name, container in containers:
            warn_of_unregistered(name, container, seen)

    # Changes to all modules, parameters and buffers

    def train(self, mode: bool = True) -> Self:
        """Set training mode for this module and all nested ones, and return it.

        Evaluation mode if `mode` is False.
        """
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set evaluation mode for this module and all nested ones, and return it."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters, and return this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters, or set them to 0 unless `set_to_none`."""
        for parameter in self.parameters():
            if set_to_none or parameter.grad is not None:
                parameter.grad = None if set_to_none else zeros_like(parameter._without_history())

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` with each nested module and then with this one, and return this module.

        Examples
        --------
        >>> import xgrad
        >>> net = xgrad.nn.MLP([3, 2, 1]).apply(lambda module: print(type(module).__name__))
        Linear
        ReLU
        Linear
        MLP
        """
        stack, within = list[tuple[Module, Iterator[Module]]]([(self, self.children())]), {id(self)}
        while stack:
            module, children = stack[-1]
            child = next((child for child in children if id(child) not in within), None)
            if child is None:
                stack.pop()
                within.remove(id(module))
                fn(module)
            else:
                stack.append((child, child.children()))
                within.add(id(child))
        return self

    def to(
        self,
        device: str | Device | None = None,
        dtype: Any = None,
        non_blocking: bool = False,
    ) -> Self:
        """Move parameters and buffers to another device or dtype, and return this module.

        The parameters remain the same objects, so that optimizers keep working; their gradients
        move with them.

        Parameters
        ----------
        device : str or Device, optional
            The device.
        dtype : dtype, optional
            A floating dtype, for parameters and buffers of floating dtypes.
        non_blocking : bool, default False
            Without effect, as in `Tensor.to`: transfers are in order with the computation.

        Raises
        ------
        DeviceError
            If the device is unknown or cannot be used.
        TypeError
            If the dtype is not floating.

        Examples
        --------
        >>> import xgrad
        >>> xgrad.nn.MLP([3, 2]).to("cpu", xgrad.float64)[0].weight.dtype
        dtype('float64')
        """
        if not isinstance(device, (str, Device, type(None))):  # to(float64), as in PyTorch
            device, dtype = None, device
        target = None if device is None else Device(device)
        if dtype is not None and standard(dtype).kind != "f":
            raise TypeError(f"{type(self).__name__}.to: expected a floating dtype, got {dtype}")
        for _, tensor in self._named_state():
            cast = dtype if tensor.dtype.kind == "f" else None
            moved = tensor._without_history().to(target, cast, non_blocking)
            if moved.device is tensor.device and moved.dtype == tensor.dtype:
                continue
            tensor.data = moved  # moves the gradient too
        return self

    def half(self) -> Self:
        """Convert floating parameters and buffers to float16, and return this module."""
        return self.to(dtype=float16)

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32, and return this module."""
        return self.to(dtype=float32)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64, and return this module."""
        return self.to(dtype=float64)

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of all parameters and persistent buffers by name, without gradients.

        Later updates do not change them, unlike in PyTorch.

        Examples
        --------
        >>> import xgrad
        >>> list(xgrad.nn.MLP([3, 2]).state_dict())
        ['0.weight', '0.bias']
        """
        return {
            name: asarray(x._without_history(), copy=True)
            for name, x in self._persistent_state().items()
        }

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Set parameters and buffers from a `state_dict`: all of them, or none if one is wrong.

        Parameters
        ----------
        state : mapping of str to Tensor or array
            The values by name, on any device. They are copied to the device and the dtype of the
            values that they replace. A shared tensor may have any of its names.
        strict : bool, default True
            Whether the names must match this module's state exactly.

        Returns
        -------
        IncompatibleKeys
            The missing and the unexpected names: none if `strict`.

        Raises
        ------
        TypeError
            If `state` is not a mapping of names to arrays.
        ValueError
            If a name is missing or unexpected, or a shape or kind of dtype does not match; the
            message lists all problems.

        Examples
        --------
        >>> import xgrad
        >>> a, b = xgrad.nn.MLP([3, 2]), xgrad.nn.MLP([3, 2])
        >>> b.load_state_dict(a.state_dict())
        IncompatibleKeys(missing_keys=[], unexpected_keys=[])
        """
        own = self._persistent_state()
        names = {id(tensor): name for name, tensor in own.items()}
        title = f"{type(self).__name__}.load_state_dict"
        return load_state(title, own, lambda name: names.get(id(self._at(name))), state, strict)

    def _persistent_state(self) -> dict[str, Tensor]:
        state = dict(self._named_state())
        for prefix, module in self.named_modules():
            for name in module._non_persistent:
                state.pop(f"{prefix}.{name}" if prefix else name, None)
        return state

    # The representation

    def summary(self, *inputs: Any, **options: Any) -> Summary:
        """Return a table of the layers: output shapes, parameters, and memory.

        This module is called once, in evaluation mode and without gradients; modes and hooks are
        restored.

        Parameters
        ----------
        *inputs, **options : object
            The arguments of the call.

        Returns
        -------
        Summary
            Its text is the table; ``.layers`` are the rows, and ``.total("parameters")`` sums a
            column. The activations of a layer are the tensors that it returned, without views of
            other tensors.

        Examples
        --------
        >>> import xgrad
        >>> xgrad.nn.MLP([784, 128, 10]).summary(xgrad.zeros((32, 784)))
        layer  class   output     parameters    memory  activations
               MLP     (32, 10)
        0      Linear  (32, 128)     100,480  401.9 kB      16.4 kB
        1      ReLU    (32, 128)                            16.4 kB
        2      Linear  (32, 10)        1,290    5.2 kB       1.3 kB
        total: 101,770 parameters in 407.1 kB, activations of 34.0 kB
        """
        return summarize(self, inputs, options)

    def extra_repr(self) -> str:
        """Return the options to show in the representation, by default none."""
        return ""

    def __repr__(self) -> str:
        return _text(self, ())


def _text(module: Module, outer: tuple[Module, ...]) -> str:
    """Return the representation of a module.

    A module that is nested 50 deep, or in itself, is shown as "...".
    """
    name = type(module).__name__
    if module in outer or len(outer) == 50:
        return f"{name}(...)"
    lines = module.extra_repr().splitlines()
    inner = [(key, value) for key, value in vars(module).items() if isinstance(value, Module)]
    if not inner and len(lines) < 2:
        return f"{name}({''.join(lines)})"
    for key, value in inner:
        own = type(value).__repr__ is not Module.__repr__
        lines.append(f"({key}): {repr(value) if own else _text(value, (*outer, module))}")
    return "\n".join([f"{name}(", *("  " + line.replace("\n", "\n  ") for line in lines), ")"])
