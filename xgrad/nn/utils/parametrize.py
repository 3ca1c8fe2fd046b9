"""Parametrizations: parameters of a module as functions of other ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn.computed import ComputedAttribute
from xgrad.nn.containers import ModuleDict, ModuleList
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.support import hints
from xgrad.support.hints import shown

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
]
hints.install(__name__)


#: The values of parametrized tensors within `cached`, with their `ParametrizationList`s, by its id.
_cached: ContextVar[dict[int, tuple[Any, Tensor]] | None] = ContextVar("_cached", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor only once within a ``with`` block.

    An assignment to the tensor computes it again; a change of its originals, as by an optimizer,
    does not.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(xgrad.nn.Linear(3, 2))
    >>> layer.weight is layer.weight
    False
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    if _cached.get() is not None:
        yield
        return
    token = _cached.set({})
    try:
        yield
    finally:
        _cached.reset(token)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, as `register_parametrization` makes it.

    Attributes
    ----------
    original : Parameter or Tensor
        The tensor that the first parametrization takes; if it takes several, they are ``original0``
        and so on.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils import parametrizations
    >>> layer = parametrizations.weight_norm(xgrad.nn.Linear(3, 2))
    >>> len(layer.parametrizations.weight), layer.parametrizations.weight.original0.shape
    (1, (2, 1))
    """

    count: int | None  # of the originals; None for one that is not numbered
    unsafe: bool

    def forward(self) -> Tensor:
        """Return the value of the tensor."""
        first, *others = self
        value: Tensor = first(*self._originals())
        for parametrization in others:
            value = parametrization(value)
        return value

    def _names(self) -> list[str]:
        return ["original"] if self.count is None else [f"original{i}" for i in range(self.count)]

    def _originals(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._names()]

    @no_grad()
    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrizations return a value."""
        result: Any = value
        for parametrization in reversed(list(self)):
            inverse = getattr(parametrization, "right_inverse", None)
            if inverse is None:
                raise ValueError(
                    f"{type(parametrization).__name__}: expected a method right_inverse, which"
                    " assignments to a parametrized tensor call: define it"
                )
            result = inverse(result)
        values, originals = _parts(result), self._originals()
        got, expected = (", ".join(map(_form, parts)) for parts in (values, originals))
        if got != expected:
            raise ValueError(
                f"right_inverse: expected {expected} to set a parametrized tensor, got {got}"
            )
        for original, new in zip(originals, values, strict=True):
            original.data = new


def _parts(result: Any) -> list[Any]:
    """Return the results of a right_inverse as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _form(x: Any) -> str:
    """Return the shape and the dtype of a tensor as a text, or any other object as one."""
    return f"shape {x.shape} and {x.dtype}" if isinstance(x, Tensor) else shown(x)


class _Parametrized(ComputedAttribute):
    """An attribute that is computed by the `ParametrizationList` of its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, module: Any) -> Any:
        chain, values = module.parametrizations[self.name], _cached.get()
        if values is None:
            return chain()
        if id(chain) not in values:
            values[id(chain)] = chain, chain()  # the reference keeps the id in use
        return values[id(chain)][1]

    def assign(self, module: Any, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{type(module).__name__}.{self.name}: expected a Tensor for a parametrized"
                f" tensor, got {shown(value)}"
            )
        module.parametrizations[self.name].right_inverse(value)
        if (values := _cached.get()) is not None:
            values.pop(id(module.parametrizations[self.name]), None)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Replace a parameter or buffer of a module by a function of it.

    ``module.tensor_name`` is then the result of the parametrization, computed whenever it is read.
    The tensor itself is ``module.parametrizations.tensor_name.original``. If the parametrization
    has a method ``right_inverse``, the original is its result for the present value, unless it
    raises NotImplementedError; it may be a tuple, whose parts are ``original0`` and so on, and
    which the parametrization takes as arguments. A value that is assigned to
    ``module.tensor_name`` goes through it, too.

    Parameters
    ----------
    module : Module
        The module, which is changed.
    tensor_name : str
        The name of a parameter or buffer. If it has parametrizations already, the new one takes the
        result of the last one.
    parametrization : Module
        The function.
    unsafe : bool, default False
        Whether the parametrization may return another shape or dtype, which is not checked then.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    TypeError
        If an argument has another type, or the parametrization returns no tensor.
    ValueError
        If there is no tensor of this name, or a shape or dtype changes.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return xgrad.triu(x) + xgrad.triu(x, k=1).mT
    >>> layer = nn.Linear(3, 3)
    >>> layer = nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool(xgrad.all(layer.weight == layer.weight.mT))
    True
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original']
    """
    op = "register_parametrization"
    check_module(op, "module", module)
    check_module(op, "parametrization", parametrization)
    if not isinstance(tensor_name, str):
        raise TypeError(f"{op}: expected a str for tensor_name, got {shown(tensor_name)}")
    if is_parametrized(module, tensor_name):
        parametrizations: Any = vars(module)["parametrizations"]
        chain = parametrizations[tensor_name]
        if not unsafe:
            value = getattr(module, tensor_name)
            _check_result(op, tensor_name, value, parametrization(value))
        chain.append(parametrization)
        chain.unsafe = chain.unsafe or unsafe
        return module
    original = vars(module).get(tensor_name)
    is_buffer = tensor_name in module._buffers
    if not isinstance(original, Parameter) and not (is_buffer and isinstance(original, Tensor)):
        raise ValueError(
            f"{op}: expected the name of a parameter or buffer of {type(module).__name__}, got"
            f" {shown(tensor_name)}"
        )
    chain = ParametrizationList([parametrization])
    chain.unsafe = unsafe
    first: Any = original.detach()
    if (inverse := getattr(parametrization, "right_inverse", None)) is not None:
        with no_grad(), suppress(NotImplementedError):
            first = inverse(first)
    parts = _parts(first)
    for part in parts:
        if not isinstance(part, Tensor):
            raise TypeError(f"{op}: expected right_inverse to return tensors, got {shown(part)}")
    if not unsafe:  # before anything changes
        with no_grad():
            _check_result(op, tensor_name, original, parametrization(*parts))
    chain.count = len(parts) if isinstance(first, (tuple, list)) else None
    for name, part in zip(chain._names(), parts, strict=True):
        if is_buffer:
            chain.register_buffer(name, part)
        elif chain.count is None and part.shape == original.shape and part.dtype == original.dtype:
            original.data = part  # the same object, which optimizers know
            chain.original = original
        else:
            setattr(chain, name, Parameter(part, requires_grad=original.requires_grad))
    delattr(module, tensor_name)
    if "parametrizations" not in vars(module):
        module.parametrizations = ModuleDict()
    vars(module)["parametrizations"][tensor_name] = chain
    module._compute(tensor_name, _Parametrized(tensor_name))
    return module


def check_module(op: str, argument: str, value: Any) -> None:
    """Raise TypeError unless an argument is a module."""
    if not isinstance(value, Module):
        raise TypeError(f"{op}: expected a module for {argument}, got {shown(value)}")


def _check_result(op: str, name: str, before: Tensor, after: Any) -> None:
    if not isinstance(after, Tensor):
        raise TypeError(
            f"{op}: expected the parametrization to return a Tensor, got {shown(after)}"
        )
    if (after.shape, after.dtype) != (before.shape, before.dtype):
        raise ValueError(
            f"{op}: expected {name} of shape {before.shape} and {before.dtype} from the"
            f" parametrization, got {after.shape} and {after.dtype}: set unsafe=True to allow it"
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has parametrizations, of one tensor or of any.

    Parameters
    ----------
    module : Module
        The module; nested modules do not count.
    tensor_name : str, optional
        The name of a tensor; by default any.

    Returns
    -------
    bool
        Whether `register_parametrization` was called.

    Raises
    ------
    TypeError
        If `module` is not a module.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(xgrad.nn.Linear(3, 2))
    >>> parametrize.is_parametrized(layer), parametrize.is_parametrized(layer, "bias")
    (True, False)
    """
    check_module("is_parametrized", "module", module)
    names = [name for name, x in module._computed.items() if isinstance(x, _Parametrized)]
    return bool(names) if tensor_name is None else tensor_name in names


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor a parameter or buffer again.

    Parameters
    ----------
    module : Module
        The module, which is changed.
    tensor_name : str
        The name of the tensor.
    leave_parametrized : bool, default True
        Whether the tensor keeps its present value; if not, it is the original one, of which there
        must be only one.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ValueError
        If the tensor has no parametrizations, or there is no single original tensor to restore.
    TypeError
        If `module` is not a module.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(xgrad.nn.Linear(3, 2))
    >>> layer = parametrize.remove_parametrizations(layer, "weight")
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight']
    """
    op = "remove_parametrizations"
    check_module(op, "module", module)
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"{op}: expected the name of a parametrized tensor of {type(module).__name__}, got"
            f" {shown(tensor_name)}"
        )
    parametrizations: Any = vars(module)["parametrizations"]
    chain = parametrizations[tensor_name]
    if not leave_parametrized and chain.count is not None:
        raise ValueError(
            f"{op}: expected leave_parametrized=True for a tensor of {chain.count} originals, got"
            " False"
        )
    original = chain._originals()[0]
    if leave_parametrized:
        with no_grad():
            value = chain()
        if chain.count is None and value.dtype == original.dtype:
            original.data = value  # the same object, which optimizers know
        elif isinstance(original, Parameter):
            original = Parameter(value, requires_grad=original.requires_grad)
        else:
            original = value
    module._compute(tensor_name, None)
    del parametrizations[tensor_name]
    if not len(parametrizations):
        delattr(module, "parametrizations")
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module
