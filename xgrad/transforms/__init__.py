"""Transforms that compute derivatives of functions, such as `grad`, `vjp`, `jvp` and `jacobian`.

A transform calls the function with copies of the arguments, which separates its graph from the
graphs of transforms within it or around it. The derivatives have a graph of their own, and can be
differentiated again, if they depend on a tensor that has one: an argument, or another tensor that
the function uses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from xgrad.core.arguments import ArrayLike
from xgrad.core.tensor import Tensor
from xgrad.support.trees import rebuild
from xgrad.transforms.call import Argnums, TransformCall, pull_back
from xgrad.transforms.forward import forward_jacobian
from xgrad.transforms.mapping import vmap
from xgrad.transforms.scanning import scan

__all__ = [
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "scan",
    "value_and_grad",
    "vjp",
    "vmap",
]

P = ParamSpec("P")
# Arguments and results, tensors or containers of them. The bound lets the bodies of lambdas pass.
A = TypeVar("A", bound=Any)
B = TypeVar("B", bound=Any)
R = TypeVar("R", bound=Any)
Aux = TypeVar("Aux")


@overload
def grad(
    fn: Callable[Concatenate[A, P], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(
    fn: Callable[Concatenate[A, P], tuple[Tensor, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[A, P], tuple[A, Aux]]: ...
@overload
def grad(
    fn: Callable[Concatenate[A, B, P], Tensor],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[A, B, P], B]: ...
@overload
def grad(
    fn: Callable[Concatenate[A, B, P], Tensor],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[A, B, P], tuple[A, B]]: ...
@overload
def grad(
    fn: Callable[P, Any], argnums: Argnums, has_aux: bool = False
) -> Callable[P, Any]: ...
def grad(fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes the gradient of a scalar function.

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
    return _transformed(
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
) -> Callable[Concatenate[A, P], tuple[Tensor, A]]: ...
@overload
def value_and_grad(
    fn: Callable[Concatenate[A, P], tuple[Tensor, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[A, P], tuple[tuple[Tensor, Aux], A]]: ...
@overload
def value_and_grad(
    fn: Callable[Concatenate[A, B, P], Tensor],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[A, B, P], tuple[Tensor, B]]: ...
@overload
def value_and_grad(
    fn: Callable[Concatenate[A, B, P], Tensor],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[A, B, P], tuple[Tensor, tuple[A, B]]]: ...
@overload
def value_and_grad(
    fn: Callable[P, Any], argnums: Argnums, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]: ...
def value_and_grad(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes a scalar function and its gradient.

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

    Examples
    --------
    >>> import xgrad
    >>> xgrad.value_and_grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
    (Tensor(6.), (Tensor(3.), Tensor(2.)))
    """

    def derive(call: TransformCall) -> Any:
        gradient = call.in_containers(call.gradient())
        return call.with_aux(call.result), gradient

    return _transformed("value_and_grad", fn, argnums, has_aux, derive)


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
def vjp(
    fn: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[[Any], tuple[Any, ...]], Aux]: ...
def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the result of a function, and the function that multiplies by its transposed Jacobian.

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

    Examples
    --------
    >>> import xgrad
    >>> result, pullback = xgrad.vjp(lambda x, y: (x * y, x.sum()), xgrad.asarray([1.0, 2.0]), 3.0)
    >>> result
    (Tensor([3., 6.]), Tensor(3.))
    >>> pullback((xgrad.ones(2), 10.0))
    (Tensor([13., 13.]), Tensor(3.))
    """
    _check_form("vjp", fn)
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
def jvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """Return the result of a function, and its derivative in the direction of `tangents`.

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
    _check_form("jvp", fn)
    primals, tangents = _as_arguments(primals), _as_arguments(tangents)
    call = TransformCall("jvp", fn, primals, {}, range(len(primals)), has_aux)
    vectors = call.match("tangent", primals, tangents)
    tangent = rebuild(call.result, map(call.visible, call.push_forward(vectors)))
    return (call.result, tangent, call.aux) if has_aux else (call.result, tangent)


@overload
def jacobian(
    fn: Callable[Concatenate[A, P], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[A, P], A]: ...
@overload
def jacobian(
    fn: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, Any]: ...
def jacobian(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian, with one backward pass for each result.

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
) -> Callable[Concatenate[A, P], A]: ...
@overload
def jacrev(
    fn: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, Any]: ...
def jacrev(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian in reverse mode: `jacobian` by JAX's name.

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
) -> Callable[Concatenate[A, P], A]: ...
@overload
def jacfwd(
    fn: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, Any]: ...
def jacfwd(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian in forward mode, all directions at once.

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
    Its memory grows with the number of elements of the arguments, since all directions are computed
    together.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.jacfwd(lambda x: xgrad.stack([x, x**2]))(3.0)
    Tensor([1., 6.])
    """
    _check_form("jacfwd", fn, argnums)

    @wraps(fn, updated=())
    def transformed(*args: Any, **kwargs: Any) -> Any:
        return forward_jacobian(fn, args, kwargs, argnums, has_aux)

    return transformed


@overload
def hessian(
    fn: Callable[Concatenate[Tensor, P], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[Tensor, P], Tensor]: ...
@overload
def hessian(
    fn: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, Any]: ...
def hessian(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the Hessian: the `jacobian` of the `jacobian`.

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

    Examples
    --------
    >>> import xgrad
    >>> xgrad.hessian(lambda x: x[0] ** 2 * x[1])(xgrad.asarray([3.0, 5.0]))
    Tensor([[10.,  6.],
            [ 6.,  0.]])
    """
    return _jacobian("hessian", _jacobian("hessian", fn, argnums, has_aux), argnums, has_aux)


@overload
def hvp(
    fn: Callable[..., Tensor], primals: A, tangents: A, *, has_aux: Literal[False] = False
) -> A: ...
@overload
def hvp(
    fn: Callable[..., tuple[Tensor, Aux]], primals: A, tangents: A, *, has_aux: Literal[True]
) -> tuple[A, Aux]: ...
@overload
def hvp(
    fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False
) -> Any: ...
def hvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """Return the product of a Hessian with a vector, without computing the Hessian.

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
    _check_form("hvp", fn)
    args, tangents = _as_arguments(primals), _as_arguments(tangents)
    call = TransformCall("hvp", fn, args, {}, range(len(args)), has_aux)
    vectors, gradients = call.match("tangent", args, tangents), call.gradient(create=True)
    products = call.in_containers(
        pull_back(gradients, vectors, call.inputs, create=call.is_recorded(vectors))
    )
    return call.with_aux(type(primals)(products) if type(primals) in (tuple, list) else products[0])


#: How each transform is called.
_FORMS = {
    "vjp": "result, pullback = xgrad.vjp(f, x)",
    "jvp": "xgrad.jvp(f, (x,), (tangent,))",
    "hvp": "xgrad.hvp(f, (x,), (tangent,))",
    "grad": "xgrad.grad(f)(x), or xgrad.autograd.grad(outputs, inputs) for tensors",
}


def _check_form(title: str, fn: Any, argnums: Any = 0) -> None:
    """Raise TypeError for calls in PyTorch's form.

    In these, a tensor takes the place of the function, or the arguments follow the function.
    """
    numbers = argnums if isinstance(argnums, (tuple, list)) else [argnums]
    if callable(fn) and not any(isinstance(x, (Tensor, np.ndarray)) for x in numbers):
        return
    expected, got = ("argnums of int", argnums) if callable(fn) else ("a function", fn)
    form = _FORMS.get(title, f"xgrad.{title}(f)(x)")
    raise TypeError(f"{title}: expected {expected}, got {type(got).__name__}: write {form}")


def _jacobian(
    title: str, fn: Callable[..., Any], argnums: Argnums, has_aux: bool
) -> Callable[..., Any]:
    def derive(call: TransformCall) -> Any:
        return call.with_aux(
            rebuild(call.result, [call.in_containers(blocks) for blocks in call.jacobians()])
        )

    return _transformed(title, fn, argnums, has_aux, derive)


def _transformed(
    title: str,
    fn: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    derive: Callable[[TransformCall], Any],
) -> Callable[..., Any]:
    """Return a function that calls another, and passes the call to `derive`."""
    _check_form(title, fn, argnums)

    @wraps(fn, updated=())
    def transformed(*args: Any, **kwargs: Any) -> Any:
        return derive(TransformCall(title, fn, args, kwargs, argnums, has_aux))

    return transformed


def _as_arguments(values: Any) -> tuple[Any, ...]:
    return tuple(values) if type(values) in (tuple, list) else (values,)
