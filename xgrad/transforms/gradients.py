"""The transforms `grad` and `value_and_grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Literal, overload

from xgrad.core.tensor import Tensor
from xgrad.transforms.call import Argnums, TransformCall
from xgrad.transforms.transformed import A, Aux, B, P, Transformed, transformed_function


@overload
def grad(
    fn: Callable[Concatenate[A, P], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[A, P], A]: ...
@overload
def grad(
    fn: Callable[Concatenate[A, P], tuple[Tensor, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Transformed[Concatenate[A, P], tuple[A, Aux]]: ...
@overload
def grad(
    fn: Callable[Concatenate[A, B, P], Tensor],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[A, B, P], B]: ...
@overload
def grad(
    fn: Callable[Concatenate[A, B, P], Tensor],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[A, B, P], tuple[A, B]]: ...
@overload
def grad(fn: Callable[P, Any], argnums: Argnums, has_aux: bool = False) -> Transformed[P, Any]: ...
def grad(fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    r"""Return the function that computes the gradient of a scalar function.

    Parameters
    ----------
    fn : callable
        Returns a floating tensor of one element. Differentiated arguments are tensors, NumPy arrays
        or Python numbers, real or complex, or nested dicts, lists, tuples and named tuples of them,
        with None for missing ones; other arguments are passed on unchanged.
    argnums : int or sequence of int, default 0
        The positional arguments to differentiate with respect to; a negative number counts from the
        last.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.

    Returns
    -------
    callable
        Takes the arguments of `fn`, and returns the gradient. If `argnums` is an int, the gradient
        has the containers of that argument, and each tensor has the shape, dtype and device of its
        counterpart. If `argnums` is a sequence, the gradients are in a tuple. With `has_aux`, the
        function returns ``(gradient, aux)``.

    Raises
    ------
    TypeError
        When called, if a differentiated argument is not floating, or `fn` does not return a real
        floating tensor. A Python number as a result is refused, since it has no graph.
    ValueError
        If the result does not have one element, or there is no such argument.

    Notes
    -----
    .. math:: \nabla f(x)_i = \frac{\partial f}{\partial x_i}

    No ``.grad`` changes. Arguments on which the result does not depend have gradients of zeros.
    Transforms nest freely. The gradient has a graph if it depends on tensors with one, unless it is
    computed under ``no_grad()``. For the gradient with respect to the parameters of a module, see
    `xgrad.nn.utils.functional_call`. The gradient of a complex z is dL/d(Re z) + i dL/d(Im z), as
    in PyTorch.

    Names, arguments and results match JAX's transforms, and mostly ``torch.func``. Where the two
    differ, xgrad follows JAX: `value_and_grad` returns the value first, and the function that `vjp`
    returns takes one argument, in the containers of the result, and returns a tuple. A result of
    one element may have any shape, such as (1,), as in `Tensor.backward`; JAX and ``torch.func``
    require the shape ().

    Examples
    --------
    >>> import xgrad
    >>> def energy(state):
    ...     return (state["mass"] * state["speed"] ** 2).sum() / 2
    >>> xgrad.grad(energy)({"mass": 2.0, "speed": xgrad.asarray([1.0, 3.0])})
    {'mass': Tensor(5.), 'speed': Tensor([2., 6.])}
    >>> xgrad.grad(xgrad.grad(lambda x: x**4))(2.0)
    Tensor(48.)
    """
    return transformed_function(
        "grad",
        fn,
        argnums,
        has_aux,
        lambda call: call.with_aux(call.in_containers(call.gradient())),
    )


@overload
def value_and_grad(
    fn: Callable[Concatenate[A, P], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[A, P], tuple[Tensor, A]]: ...
@overload
def value_and_grad(
    fn: Callable[Concatenate[A, P], tuple[Tensor, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Transformed[Concatenate[A, P], tuple[tuple[Tensor, Aux], A]]: ...
@overload
def value_and_grad(
    fn: Callable[Concatenate[A, B, P], Tensor],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[A, B, P], tuple[Tensor, B]]: ...
@overload
def value_and_grad(
    fn: Callable[Concatenate[A, B, P], Tensor],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[A, B, P], tuple[Tensor, tuple[A, B]]]: ...
@overload
def value_and_grad(
    fn: Callable[P, Any], argnums: Argnums, has_aux: bool = False
) -> Transformed[P, tuple[Any, Any]]: ...
def value_and_grad(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    r"""Return the function that computes a scalar function and its gradient.

    It raises the same errors as `grad`.

    Parameters
    ----------
    fn : callable
        As for `grad`.
    argnums : int or sequence of int, default 0
        The positional arguments to differentiate with respect to; a negative number counts from the
        last.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.

    Returns
    -------
    callable
        Takes the arguments of `fn`, and returns ``(value, gradient)``; with `has_aux`, ``((value,
        aux), gradient)``.

    Notes
    -----
    .. math:: f(x), \quad \nabla f(x)_i = \frac{\partial f}{\partial x_i}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.value_and_grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
    (Tensor(6.), (Tensor(3.), Tensor(2.)))
    """

    def derive(call: TransformCall) -> Any:
        gradient = call.in_containers(call.gradient())
        return call.with_aux(call.result), gradient

    return transformed_function("value_and_grad", fn, argnums, has_aux, derive)
