"""Collections of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, overload

from xgrad.core.tensor import Tensor
from xgrad.nn.containers import Container, DictContainer, ListContainer
from xgrad.nn.parameter import Parameter


class _ParameterContainer(Container[Parameter]):
    _kind: ClassVar[Any] = Parameter
    _kinds: ClassVar[str] = "parameters"

    def _checked(self, value: Any, key: Any) -> Parameter:
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        return super()._checked(value, key)

    def extra_repr(self) -> str:
        lines = [
            f"({name}): Parameter of shape {p.shape}, {p.dtype}, on {p.device}"
            for name, p in self._items()
        ]
        return "\n".join(lines)


class ParameterList(_ParameterContainer, ListContainer[Parameter]):
    """A list of parameters that are registered, unlike parameters in a plain list.

    Parameters
    ----------
    parameters : iterable of Parameter or Tensor, optional
        The parameters in order; their names are their indices. Tensors are copied into new
        parameters.

    Raises
    ------
    TypeError
        If a value is not a tensor.

    Examples
    --------
    >>> import xgrad
    >>> scales = xgrad.nn.ParameterList([xgrad.ones(2), xgrad.ones(3)])
    >>> [(name, p.shape) for name, p in scales.named_parameters()]
    [('0', (2,)), ('1', (3,))]
    """

    def __init__(self, parameters: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.extend(parameters)

    @overload
    def __getitem__(self, index: int) -> Parameter: ...
    @overload
    def __getitem__(self, index: slice) -> ParameterList: ...
    def __getitem__(self, index: int | slice) -> Parameter | ParameterList:
        chosen = list(self)[index]
        return ParameterList(chosen) if isinstance(chosen, list) else chosen


class ParameterDict(_ParameterContainer, DictContainer[Parameter]):
    """A dictionary of parameters that are registered, unlike parameters in a plain dict.

    Parameters
    ----------
    parameters : mapping of str to Parameter or Tensor, or iterable of pairs, optional
        The parameters by name. Tensors are copied into new parameters.

    Raises
    ------
    TypeError
        If a value is not a tensor.
    ValueError
        If a name has a dot, is empty, or is an attribute of every module, such as "forward".

    Examples
    --------
    >>> import xgrad
    >>> scales = xgrad.nn.ParameterDict({"left": xgrad.ones(2)})
    >>> scales["right"] = xgrad.zeros(1)
    >>> scales["right"], list(scales.state_dict())
    (Parameter([0.], requires_grad=True), ['left', 'right'])
    """

    def __init__(
        self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] = ()
    ) -> None:
        super().__init__()
        self.update(parameters)
