"""Products of derivatives with vectors: `vjp`, `jvp` and `hvp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from xgrad.core.arguments import ArrayLike
from xgrad.core.tensor import Tensor
from xgrad.support.trees import rebuild
from xgrad.transforms.call import TransformCall, pull_back
from xgrad.transforms.transformed import A, Aux, R, check_form


@overload
def vjp(
    fn: Callable[..., R], *primals: ArrayLike, has_aux: Literal[False] = False
) -> tuple[R, Callable[[R | ArrayLike | None], tuple[Tensor, ...]]]: ...
@overload
def vjp(
    fn: Callable[..., tuple[R, Aux]], *primals: ArrayLike, has_aux: Literal[True]
) -> tuple[R, Callable[[R | ArrayLike | None], tuple[Tensor, ...]], Aux]: ...
@overload
def vjp(
    fn: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool) -> Any: ...
def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    r"""Return the result of a function, and a function that multiplies by its transposed Jacobian.

    Parameters
    ----------
    fn : callable
        Returns a tensor, or containers of tensors.
    *primals : Tensor, array, number or containers of them
        The arguments of `fn`, all of which are differentiated.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.

    Returns
    -------
    result : Tensor or containers of them
        Of `fn`.
    pullback : callable
        Takes the gradient of the result, in the containers of the result: tensors of the same
        shapes, dtypes and devices, or None for zeros. It returns a tuple with the gradient of each
        of the `primals`, and can be called repeatedly.
    aux : object
        Only with `has_aux`.

    Raises
    ------
    TypeError
        As for `grad`; in the pullback, if the containers or the dtypes do not match.
    ValueError
        In the pullback, if a shape or a device does not match.

    Notes
    -----
    .. math:: f(x), \quad v \mapsto J^\top v, \quad J_{ij} = \frac{\partial f_i}{\partial x_j}

    Examples
    --------
    >>> import xgrad
    >>> result, pullback = xgrad.vjp(
    ...     lambda x, y: (x * y, x.sum()), xgrad.asarray([1.0, 2.0]), 3.0
    ... )
    >>> result
    (Tensor([3., 6.]), Tensor(3.))
    >>> pullback((xgrad.ones(2), 10.0))
    (Tensor([13., 13.]), Tensor(3.))
    """
    check_form("vjp", fn)
    call = TransformCall("vjp", fn, primals, {}, range(len(primals)), has_aux)

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        vectors = call.match("cotangent", call.result, cotangents)
        gradients = pull_back(call.outputs, vectors, call.inputs, create=call.is_recorded(vectors))
        return tuple(call.in_containers(gradients))

    return (call.result, pullback, call.aux) if has_aux else (call.result, pullback)


@overload
def jvp(
    fn: Callable[..., R], primals: Any, tangents: Any, *, has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(
    fn: Callable[..., tuple[R, Aux]], primals: Any, tangents: Any, *, has_aux: Literal[True]
) -> tuple[R, R, Aux]: ...
@overload
def jvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool) -> Any: ...
def jvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    r"""Return the result of a function, and its derivative in the direction of `tangents`.

    The derivative is the product of the Jacobian with `tangents`.

    Parameters
    ----------
    fn : callable
        Returns a tensor, or containers of tensors.
    primals : tuple or list
        The arguments of `fn`, all differentiated. Anything else is the only argument.
    tangents : tuple or list
        The direction: the same containers with tensors of the same shapes, dtypes and devices, or
        None for zeros.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.

    Returns
    -------
    result : Tensor or containers of them
        Of `fn`.
    tangent : Tensor or containers of them
        The derivative, like the result.
    aux : object
        Only with `has_aux`.

    Raises
    ------
    TypeError
        As for `grad`, and if the containers or the dtypes do not match.
    ValueError
        If a shape or a device does not match.

    Notes
    -----
    .. math:: f(x), \quad J v, \quad J_{ij} = \frac{\partial f_i}{\partial x_j}

    Reverse mode is applied twice [1]_: the gradient is linear in the incoming gradient, so that its
    derivative with respect to the incoming gradient is the transpose of a transpose. This takes one
    call of `fn` and two backward passes, for any number of inputs.

    References
    ----------
    .. [1] J. Townsend, "A new trick for calculating Jacobian vector products", 2017.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.jvp(lambda x: x**3, (2.0,), (1.0,))
    (Tensor(8.), Tensor(12.))
    """
    check_form("jvp", fn)
    primals, tangents = _as_arguments(primals), _as_arguments(tangents)
    call = TransformCall("jvp", fn, primals, {}, range(len(primals)), has_aux)
    vectors = call.match("tangent", primals, tangents)
    tangent = rebuild(call.result, map(call.visible, call.push_forward(vectors)))
    return (call.result, tangent, call.aux) if has_aux else (call.result, tangent)


@overload
def hvp(
    fn: Callable[..., Tensor], primals: A, tangents: A, *, has_aux: Literal[False] = False
) -> A: ...
@overload
def hvp(
    fn: Callable[..., tuple[Tensor, Aux]], primals: A, tangents: A, *, has_aux: Literal[True]
) -> tuple[A, Aux]: ...
@overload
def hvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any: ...
def hvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    r"""Return the product of a Hessian with a vector, without computing the Hessian.

    Parameters
    ----------
    fn : callable
        Returns a floating tensor of one element.
    primals : tuple or list
        The arguments of `fn`, all differentiated. Anything else is the only argument.
    tangents : tuple or list
        The vector: the same containers with tensors of the same shapes, dtypes and devices, or None
        for zeros.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.

    Returns
    -------
    Tensor or containers of them
        The product, in the containers of `primals`; with `has_aux`, ``(product,
        aux)``.

    Raises
    ------
    TypeError, ValueError
        As for `grad` and `jvp`.

    Notes
    -----
    .. math:: H v, \quad H_{ij} = \frac{\partial^2 f}{\partial x_i\, \partial x_j}

    Reverse mode is applied twice: one call of `fn`, one backward pass, and one pass back through
    both. The result equals the second result of ``jvp(grad(fn), primals, tangents)``, since the
    Hessian is symmetric. For a real function of complex arguments, the Hessian is with respect to
    real and imaginary parts.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([3.0, 5.0])
    >>> xgrad.hvp(lambda x: x[0] ** 2 * x[1], (x,), (xgrad.asarray([1.0, 0.0]),))
    (Tensor([10.,  6.]),)
    """
    check_form("hvp", fn)
    args, tangents = _as_arguments(primals), _as_arguments(tangents)
    call = TransformCall("hvp", fn, args, {}, range(len(args)), has_aux)
    vectors, gradients = call.match("tangent", args, tangents), call.gradient(create=True)
    products = call.in_containers(
        pull_back(gradients, vectors, call.inputs, create=call.is_recorded(vectors))
    )
    return call.with_aux(type(primals)(products) if type(primals) in (tuple, list) else products[0])


def _as_arguments(values: Any) -> tuple[Any, ...]:
    return tuple(values) if type(values) in (tuple, list) else (values,)
