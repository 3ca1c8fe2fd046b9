"""The transforms that compute whole Jacobians and Hessians."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Literal, overload

from xgrad.core.tensor import Tensor
from xgrad.support.trees import rebuild
from xgrad.transforms.call import Argnums, TransformCall
from xgrad.transforms.forward import forward_jacobian
from xgrad.transforms.transformed import A, P, Transformed, check_form, transformed_function


@overload
def jacobian(
    fn: Callable[Concatenate[A, P], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[A, P], A]: ...
@overload
def jacobian(
    fn: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Transformed[P, Any]: ...
def jacobian(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    r"""Return the function that computes the Jacobian, with one backward pass for each result.

    Parameters
    ----------
    fn : callable
        Returns a real floating tensor, or containers of them; takes arguments as for `grad`.
    argnums : int or sequence of int, default 0
        The positional arguments to differentiate with respect to; a negative number counts from the
        last.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.

    Returns
    -------
    callable
        Takes the arguments of `fn`, and returns the containers of its result. In place of each
        tensor of the result, they have the containers of the argument (a tuple of them for a
        sequence of `argnums`), with tensors of shape ``result.shape + argument.shape``. With
        `has_aux`, the function returns ``(jacobian, aux)``.

    Raises
    ------
    TypeError
        As for `grad`, and if a result is complex, since its real and its imaginary part have
        separate derivatives. For complex arguments, each row is a gradient as defined in `grad`.
    ValueError
        If there is no such argument.

    Notes
    -----
    .. math:: J_{ij} = \frac{\partial f_i}{\partial x_j}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.jacobian(lambda x: x**2)(xgrad.asarray([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian("jacobian", fn, argnums, has_aux)


@overload
def jacrev(
    fn: Callable[Concatenate[A, P], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[A, P], A]: ...
@overload
def jacrev(
    fn: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Transformed[P, Any]: ...
def jacrev(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    r"""Return the function that computes the Jacobian in reverse mode: `jacobian` by JAX's name.

    Parameters
    ----------
    fn : callable
        As for `jacobian`.
    argnums : int or sequence of int, default 0
        The positional arguments to differentiate with respect to; a negative number counts from the
        last.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.

    Returns
    -------
    callable
        As for `jacobian`.

    Raises
    ------
    TypeError, ValueError
        As for `jacobian`.

    Notes
    -----
    .. math:: J_{ij} = \frac{\partial f_i}{\partial x_j}

    JAX and ``torch.func`` use the name `jacrev`. It is faster than `jacfwd` if there are fewer
    results than arguments; the results are the same.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.jacrev(lambda x: (x**2).sum())(xgrad.asarray([1.0, 2.0]))
    Tensor([2., 4.])
    """
    return _jacobian("jacrev", fn, argnums, has_aux)


@overload
def jacfwd(
    fn: Callable[Concatenate[A, P], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[A, P], A]: ...
@overload
def jacfwd(
    fn: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Transformed[P, Any]: ...
def jacfwd(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    r"""Return the function that computes the Jacobian in forward mode, all directions at once.

    It is faster than `jacobian` if there are fewer arguments than results; the results are the
    same.

    Parameters
    ----------
    fn : callable
        As for `jacobian`, with real arguments. It runs under `vmap`, whose restrictions apply.
    argnums : int or sequence of int, default 0
        The positional arguments to differentiate with respect to; a negative number counts from the
        last.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.

    Returns
    -------
    callable
        As for `jacobian`.

    Raises
    ------
    TypeError
        As for `jacobian`, and if an argument is complex.
    ValueError
        If there is no such argument, and as for `vmap`.
    RuntimeError
        As for `vmap`.

    Notes
    -----
    .. math:: J_{ij} = \frac{\partial f_i}{\partial x_j}

    Its memory grows with the number of elements of the arguments, since all directions are computed
    together.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.jacfwd(lambda x: xgrad.stack([x, x**2]))(3.0)
    Tensor([1., 6.])
    """
    check_form("jacfwd", fn, argnums)

    @wraps(fn, updated=())
    def transformed(*args: Any, **kwargs: Any) -> Any:
        return forward_jacobian(fn, args, kwargs, argnums, has_aux)

    return transformed


@overload
def hessian(
    fn: Callable[Concatenate[Tensor, P], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Transformed[Concatenate[Tensor, P], Tensor]: ...
@overload
def hessian(
    fn: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Transformed[P, Any]: ...
def hessian(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    r"""Return the function that computes the Hessian: the `jacobian` of the `jacobian`.

    It raises the same errors as `jacobian`.

    Parameters
    ----------
    fn : callable
        As for `jacobian`, with real arguments.
    argnums : int or sequence of int, default 0
        The positional arguments to differentiate with respect to; a negative number counts from the
        last.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.

    Returns
    -------
    callable
        As for `jacobian`, applied twice. For a scalar function of one tensor `x`, the result has
        the shape ``x.shape + x.shape``. For an argument in containers, the result has these
        containers, each with the same containers inside. It takes one backward pass for each number
        in the arguments.

    Notes
    -----
    .. math:: H_{ij} = \frac{\partial^2 f}{\partial x_i\, \partial x_j}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.hessian(lambda x: x[0] ** 2 * x[1])(xgrad.asarray([3.0, 5.0]))
    Tensor([[10.,  6.],
            [ 6.,  0.]])
    """
    return _jacobian("hessian", _jacobian("hessian", fn, argnums, has_aux), argnums, has_aux)


def _jacobian(
    title: str, fn: Callable[..., Any], argnums: Argnums, has_aux: bool
) -> Callable[..., Any]:
    def derive(call: TransformCall) -> Any:
        return call.with_aux(
            rebuild(call.result, [call.in_containers(blocks) for blocks in call.jacobians()])
        )

    return transformed_function(title, fn, argnums, has_aux, derive)
