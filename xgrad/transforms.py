"""Functions that make derivatives of functions: `grad`, `vjp`, `jvp`, `jacobian`, `hessian` and their kin.

A transform calls the function with inputs of its own, which stand for the arguments: that is what tells the graph of
one transform from that of another within it or around it. The derivatives have a graph, to be differentiated in turn,
where they depend on anything outside that has one: an argument, or a tensor that the function uses besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, wraps
from operator import index
from typing import Any

import numpy as np

from xgrad import autograd
from xgrad.core.backward_spec import BackwardSpec
from xgrad.core.dtypes import SCALARS
from xgrad.core.function import Function
from xgrad.core.grad_mode import enable_grad, is_grad_enabled
from xgrad.core.graph import Edge, Leaf, Node, clock, record
from xgrad.core.tensor import Tensor, from_placement
from xgrad.ops import asarray, eye, ones_like, reshape, stack, zeros, zeros_like
from xgrad.support.docstrings import documented
from xgrad.support.hints import shown
from xgrad.support.trees import leaves, matched, rebuild

__all__ = ["grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]

Argnums = int | Sequence[int]


@documented()
def grad(fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes the gradient of a scalar function.

    fn : callable
        Returns a floating tensor of shape (). Its arguments that are differentiated are tensors, NumPy's arrays or
        Python's numbers, real or complex, or dicts, lists, tuples and named tuples of them, nested at will, with None
        for what is missing; any other argument is given to it as it is.
    argnums : int or sequence of int, default 0
        With respect to which positional arguments; a negative number counts from the last.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``, where `aux` is anything, and is not differentiated.
    returns callable
        Takes the arguments of `fn`, and returns the gradient: for an int of `argnums` in the containers of that
        argument, each tensor of the shape, dtype and device of what it belongs to; for a sequence a tuple of those.
        With `has_aux` it returns ``(gradient, aux)``.
    raises TypeError
        When called, if an argument that is differentiated is not floating, or `fn` does not return a real floating
        tensor. What it returns as a Python number has lost its history, and is refused.
    raises ValueError
        If the result is no scalar, or there is no such argument.

    No ``.grad`` is touched. What the result does not depend on has a gradient of zeros. Transforms nest freely, and
    see through tensors that have a graph: the gradient has one itself where it depends on such a tensor, unless it is
    computed under ``no_grad()``. For the gradient with respect to the parameters of a module see
    `xgrad.nn.utils.functional_call`. The gradient of a complex z is dL/d(Re z) + i dL/d(Im z), as PyTorch's.

    Names, arguments and results are those of JAX's transforms, and where they agree those of ``torch.func``. Where
    these two differ: `value_and_grad` returns the value first, and the function that `vjp` returns takes one argument,
    in the containers of the result, and returns a tuple.

    >>> def energy(state):
    ...     return (state["mass"] * state["speed"] ** 2).sum() / 2
    >>> xgrad.grad(energy)({"mass": 2.0, "speed": xgrad.asarray([1.0, 3.0])})
    {'mass': Tensor(5.), 'speed': Tensor([2., 6.])}
    >>> xgrad.grad(xgrad.grad(lambda x: x**4))(2.0)
    Tensor(48.)
    """

    _check_form("grad", fn, argnums)

    @wraps(fn, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        call = _Call("grad", fn, args, kwargs, argnums, has_aux)
        found = call.arranged(call.gradient())
        return (found, call.aux) if has_aux else found

    return gradient


@documented()
def value_and_grad(fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes a scalar function and its gradient.

    The parameters and errors are those of `grad`.

    returns callable
        Takes the arguments of `fn`, and returns ``(value, gradient)``; with `has_aux`, ``((value, aux), gradient)``.

    >>> xgrad.value_and_grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
    (Tensor(6.), (Tensor(3.), Tensor(2.)))
    """

    _check_form("value_and_grad", fn, argnums)

    @wraps(fn, updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        call = _Call("value_and_grad", fn, args, kwargs, argnums, has_aux)
        found = call.arranged(call.gradient())
        return ((call.result, call.aux) if has_aux else call.result), found

    return value_and_gradient


@documented()
def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the result of a function, and the function that multiplies with its transposed Jacobian.

    fn : callable
        Returns a tensor, or containers of tensors.
    *primals : Tensor, array, number or containers of them
        The arguments of `fn`, all of which are differentiated.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``.
    returns result : Tensor or containers of them
        Of `fn`.
    returns pullback : callable
        Takes the gradient of the result, in its containers, each tensor of its shape, dtype and device, with None for
        zeros; returns a tuple with the gradient of each of the `primals`. It can be called again.
    returns aux : object
        Only with `has_aux`.
    raises TypeError
        As `grad`; in the pullback, if the containers or the dtypes do not fit.
    raises ValueError
        In the pullback, if a shape or a device does not fit.

    >>> result, pullback = xgrad.vjp(lambda x, y: (x * y, x.sum()), xgrad.asarray([1.0, 2.0]), 3.0)
    >>> result
    (Tensor([3., 6.]), Tensor(3.))
    >>> pullback((xgrad.ones(2), 10.0))
    (Tensor([13., 13.]), Tensor(3.))
    """
    _check_form("vjp", fn)
    call = _Call("vjp", fn, primals, {}, range(len(primals)), has_aux)

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        given = call.fitting("cotangent", call.result, cotangents)
        create = is_grad_enabled() and (call.outside or _any_recorded(given))
        return tuple(call.arranged(_pull(call.outputs, given, call.inputs, create=create)))

    return (call.result, pullback, call.aux) if has_aux else (call.result, pullback)


@documented()
def jvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """Return the result of a function, and its derivative in a direction: the product of its Jacobian with `tangents`.

    fn : callable
        Returns a tensor, or containers of tensors.
    primals : tuple or list
        The arguments of `fn`, all of which are differentiated. What is neither is the only argument.
    tangents : tuple or list
        The direction: the same containers, tensors of the same shapes, dtypes and devices; None for zeros.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``.
    returns result : Tensor or containers of them
        Of `fn`.
    returns tangent : Tensor or containers of them
        The derivative, like the result.
    returns aux : object
        Only with `has_aux`.
    raises TypeError
        As `grad`, and if the containers or the dtypes do not fit.
    raises ValueError
        If a shape or a device does not fit.

    By reverse mode applied twice: the gradient is linear in the one that arrives, and its derivative by that is the
    transpose of a transpose. It takes a call of `fn` and two backward passes, whatever the number of inputs.

    J. Townsend, "A new trick for calculating Jacobian vector products", 2017.

    >>> xgrad.jvp(lambda x: x**3, (2.0,), (1.0,))
    (Tensor(8.), Tensor(12.))
    """
    _check_form("jvp", fn)
    primals, tangents = _as_arguments(primals), _as_arguments(tangents)
    call = _Call("jvp", fn, primals, {}, range(len(primals)), has_aux)
    given = call.fitting("tangent", primals, tangents)
    weights = [call.input(zeros_like(out)) for out in call.outputs]  # of which the gradients are linear functions
    transposed = _pull(call.outputs, weights, call.inputs, create=True)
    create = is_grad_enabled() and (call.outside or _any_recorded(given))
    tangent = rebuild(call.result, map(call.seen, _pull(transposed, given, weights, create=create)))
    return (call.result, tangent, call.aux) if has_aux else (call.result, tangent)


@documented()
def jacobian(fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes all derivatives of a function, by one backward pass for each result.

    fn : callable
        Returns a real floating tensor, or containers of them; its arguments are as those of `grad`.
    argnums : int or sequence of int, default 0
        With respect to which positional arguments.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``.
    returns callable
        Takes the arguments of `fn`, and returns the containers of its result, with those of the argument (a tuple of
        them for a sequence of `argnums`) in the place of each tensor, and in there tensors of shape
        ``result.shape + argument.shape``. With `has_aux` it returns ``(jacobian, aux)``.
    raises TypeError
        As `grad`, and if a result is complex: it has two derivatives, by the real and by the imaginary part. Of
        complex arguments each row is a gradient, as that of `grad`.
    raises ValueError
        If there is no such argument.

    >>> xgrad.jacobian(lambda x: x**2)(xgrad.asarray([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian("jacobian", fn, argnums, has_aux)


@documented()
def hessian(fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes all second derivatives of a function: the `jacobian` of its `jacobian`.

    The parameters and errors are those of `jacobian`; arguments are real.

    returns callable
        As that of `jacobian`, applied twice: of a scalar function of one tensor `x` the result has the shape
        ``x.shape + x.shape``; of containers, it is the containers of the argument within those of the argument. It
        takes one backward pass for each number in the arguments.

    >>> xgrad.hessian(lambda x: x[0] ** 2 * x[1])(xgrad.asarray([3.0, 5.0]))
    Tensor([[10.,  6.],
            [ 6.,  0.]])
    """
    return _jacobian("hessian", _jacobian("hessian", fn, argnums, has_aux), argnums, has_aux)


@documented()
def hvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """Return the product of the Hessian of a scalar function with a vector, without computing the Hessian.

    fn : callable
        Returns a floating tensor of shape ().
    primals : tuple or list
        The arguments of `fn`, all of which are differentiated. What is neither is the only argument.
    tangents : tuple or list
        The vector: the same containers, tensors of the same shapes, dtypes and devices; None for zeros.
    has_aux : bool, default False
        Whether `fn` returns ``(result, aux)``.
    returns Tensor or containers of them
        The product, in the containers of `primals`; with `has_aux`, ``(product, aux)``.
    raises TypeError, ValueError
        As `grad` and `jvp`.

    By reverse mode applied twice: a call of `fn`, a backward pass, and one back through both. It is what
    ``jvp(grad(fn), primals, tangents)`` returns second, for the Hessian is symmetric. The Hessian of a real function
    of complex arguments is that of a function of real and imaginary parts.

    >>> x = xgrad.asarray([3.0, 5.0])
    >>> xgrad.hvp(lambda x: x[0] ** 2 * x[1], (x,), (xgrad.asarray([1.0, 0.0]),))
    (Tensor([10.,  6.]),)
    """
    _check_form("hvp", fn)
    args, tangents = _as_arguments(primals), _as_arguments(tangents)
    call = _Call("hvp", fn, args, {}, range(len(args)), has_aux)
    given = call.fitting("tangent", args, tangents)
    create = is_grad_enabled() and (call.outside or _any_recorded(given))
    found = call.arranged(_pull(call.gradient(create=True), given, call.inputs, create=create))
    product = type(primals)(found) if type(primals) in (tuple, list) else found[0]
    return (product, call.aux) if has_aux else product


#: How each transform is called.
_FORMS = {
    "vjp": "result, pullback = xgrad.vjp(f, x)",
    "jvp": "xgrad.jvp(f, (x,), (tangent,))",
    "hvp": "xgrad.hvp(f, (x,), (tangent,))",
    "grad": "xgrad.grad(f)(x), or xgrad.autograd.grad(outputs, inputs) for tensors",
}


def _check_form(title: str, fn: Any, argnums: Any = 0) -> None:
    """Raise TypeError for calls in the form of PyTorch's: of a tensor, or with the arguments beside the function."""
    given = list(argnums) if isinstance(argnums, (tuple, list)) else [argnums]
    if callable(fn) and not any(isinstance(x, (Tensor, np.ndarray)) for x in given):
        return
    expected, got = ("argnums of int", argnums) if callable(fn) else ("a function", fn)
    form = _FORMS.get(title, f"xgrad.{title}(f)(x)")
    raise TypeError(f"{title}: expected {expected}, got {type(got).__name__}: write {form}")


def _jacobian(title: str, fn: Callable[..., Any], argnums: Argnums, has_aux: bool) -> Callable[..., Any]:
    _check_form(title, fn, argnums)

    @wraps(fn, updated=())
    def derivatives(*args: Any, **kwargs: Any) -> Any:
        call = _Call(title, fn, args, kwargs, argnums, has_aux)
        found = rebuild(call.result, [call.arranged(blocks) for blocks in call.jacobians()])
        return (found, call.aux) if has_aux else found

    return derivatives


class _Input(Node):
    """What stands for an argument in the graph of one call of a transform; it leads on to the graph outside, if any.

    As a leaf it is not freed, for the function may call `backward` itself.
    """

    __slots__ = ("_saved",)

    @property
    def saved(self) -> tuple[Any, ...] | None:
        return self._saved

    @saved.setter
    def saved(self, saved: tuple[Any, ...] | None) -> None:
        if saved is not None:
            self._saved = saved


class _Call:
    """A function that was called with inputs of its own, and what is asked of the graph that this has recorded.

    Attributes
    ----------
    inputs : list of Tensor
        Those that stand for the leaves of the arguments that are differentiated.
    outputs : list of Tensor
        The leaves of the result, with the graph that leads to the inputs.
    result, aux : object
        What the function has returned, as it is seen outside: with a graph only if it depends on one there.
    outside, shared : bool
        Whether the outputs, and what is in `aux`, depend on the graph outside.
    """

    def __init__(
        self,
        title: str,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        argnums: Argnums,
        has_aux: bool,
    ) -> None:
        self.title, self.recording, self.since = title, is_grad_enabled(), next(clock.numbers)
        self.own: set[Edge] = set()
        self.closed: set[Edge] = set()  # edges that are known to depend on nothing outside
        self.one = not isinstance(argnums, Iterable)
        given, positions = list(args), _positions(title, argnums, len(args))
        self.inputs, self.trees = [], [args[i] for i in positions]
        for i, tree in zip(positions, self.trees, strict=True):
            own = [self.input(_lifted(title, f"argument {i}{path}", x)) for path, x in leaves(tree)]
            self.inputs += own
            # Not the same tensors, for the function may assign to them.
            given[i] = rebuild(tree, [from_placement(x._data, x._placement, x._edge) for x in own])
        with enable_grad():
            result, aux = fn(*given, **kwargs), None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError(
                    f"{title}: expected (result, aux) of a function with has_aux=True, got {type(result).__name__}"
                )
            result, aux = result
        self.until = next(clock.numbers)
        self.outputs = [self._checked(path, out) for path, out in leaves(result)]
        self.outside = any(map(self._depends_on_outside, self.outputs))
        self.result = rebuild(result, [self.seen(out) for out in self.outputs])
        seen = [self.seen(x) if isinstance(x, Tensor) else x for _, x in leaves(aux)]
        self.aux, self.shared = rebuild(aux, seen), any(isinstance(x, Tensor) and x.requires_grad for x in seen)

    def input(self, x: Tensor) -> Tensor:
        """Return a tensor that stands for another in this call."""
        edge = x._edge if self.recording else None
        node = record(_Input(), _spec(edge is not None), (edge,), x._data.shape, x._placement)
        self.own.add(node)
        return from_placement(x._data, x._placement, node)

    def seen(self, x: Tensor) -> Tensor:
        """Return a tensor as it is seen outside: with its graph only if that leads out there."""
        return from_placement(x._data, x._placement, x._edge if self._depends_on_outside(x) else None)

    def arranged(self, gradients: Sequence[Tensor]) -> Any:
        """Return what there is for each input in the containers of the arguments, as it is seen outside."""
        values = map(self.seen, gradients)
        found = tuple([rebuild(tree, values) for tree in self.trees])
        return found[0] if self.one else found

    def gradient(self, create: bool = False) -> list[Tensor]:
        """Return the gradients of the one output, which must be a real scalar."""
        if not isinstance(self.result, Tensor):
            raise TypeError(
                f"{self.title}: expected a tensor of the function, got {type(self.result).__name__}: for functions of "
                "several results use jacobian or vjp; for a result with others beside it, has_aux=True"
            )
        (out,) = self.outputs
        self._check_real("", out)
        if out.shape != ():
            raise ValueError(
                f"{self.title}: expected a scalar of the function, got shape {out.shape}: sum it, or use jacobian or "
                "vjp"
            )
        retain = self.shared or not self.recording
        return _pull([out], [ones_like(out)], self.inputs, create=create or self.outside, retain=retain)

    def jacobians(self) -> Iterator[list[Tensor]]:
        """Return for each output its derivatives by each input, of shape ``output.shape + input.shape``."""
        for (path, _), out in zip(leaves(self.result), self.outputs, strict=True):
            self._check_real(path, out)
            rows = []
            for i in range(out.size):
                unit = reshape(eye(1, out.size, k=i, dtype=out.dtype, device=out.device), out.shape)
                rows.append(_pull([out], [unit], self.inputs, create=self.outside))
            blocks = []
            for k, x in enumerate(self.inputs):
                shape = out.shape + x.shape
                empty = zeros(shape, dtype=x.dtype, device=x.device)
                blocks.append(reshape(stack([row[k] for row in rows]), shape) if rows else empty)
            yield blocks

    def fitting(self, kind: str, tree: Any, given: Any) -> list[Tensor | None]:
        """Return the leaves of what was given for each leaf of `tree`, once its shapes, dtypes and devices fit."""
        likes = self.outputs if kind == "cotangent" else self.inputs
        title = f"{self.title}: {kind}"
        found = matched(title, tree, given)
        return [_fitting(f"{title}{path}", like, x) for like, (path, _, x) in zip(likes, found, strict=True)]

    def _checked(self, path: str, out: Any) -> Tensor:
        if not isinstance(out, Tensor):
            at = f" at {path}" if path else ""
            hint = "a number has no history: return the tensor" if type(out) in SCALARS else "return tensors"
            raise TypeError(f"{self.title}: expected a tensor of the function{at}, got {type(out).__name__}: {hint}")
        return out

    def _check_real(self, path: str, out: Tensor) -> None:
        if out.dtype.kind != "f":
            at, hint = f" at {path}" if path else "", "take real and imag apart" if out.dtype.kind == "c" else "cast it"
            raise TypeError(
                f"{self.title}: expected a real floating result of the function{at}, got {out.dtype}: {hint}"
            )

    def _depends_on_outside(self, x: Tensor) -> bool:
        """Return whether the graph of a tensor leads to what was there before, a leaf, or inputs of a later call."""
        seen: set[Edge] = set()
        stack: list[Edge | None] = [x._edge] if is_grad_enabled() else []
        while stack:
            edge = stack.pop()
            if edge is None or edge in seen or edge in self.closed:
                continue
            later = edge.order > self.until and edge not in self.own
            if edge.order < self.since or type(edge) is Leaf or (later and type(edge) is _Input):
                return True
            seen.add(edge)
            stack += edge.edges
        self.closed |= seen
        return False


@cache
def _spec(linked: bool) -> BackwardSpec:
    return BackwardSpec(Function.of("input", lambda xp, x: x, [lambda g: g]), [linked])


def _pull(
    outputs: Sequence[Tensor],
    cotangents: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    *,
    create: bool,
    retain: bool = True,
) -> list[Tensor]:
    """Return the gradients of `inputs`, given those of `outputs`; zeros where there is no way between them."""
    pairs = [(out, g) for out, g in zip(outputs, cotangents, strict=True) if g is not None and out.requires_grad]
    found: Sequence[Tensor | None] = [None] * len(inputs)
    if pairs:
        outs, gs = zip(*pairs, strict=True)
        found = autograd.grad(outs, inputs, gs, create_graph=create, retain_graph=retain or create, allow_unused=True)
    return [zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def _lifted(title: str, name: str, x: Any) -> Tensor:
    """Return an argument as a floating tensor."""
    try:
        tensor = x if isinstance(x, Tensor) else asarray(x, copy=True)
    except TypeError:
        hint = " and nn.utils.functional_call" if hasattr(x, "named_parameters") else ""
        raise TypeError(
            f"{title}: expected a tensor, an array or a number for {name}, got {type(x).__name__}: give tensors in "
            f"dicts, lists or tuples{hint}"
        ) from None
    if tensor.dtype.kind not in "fc":
        raise TypeError(
            f"{title}: expected a floating dtype for {name}, which is differentiated, got {tensor.dtype}: give "
            "floats, or choose other arguments by argnums, or by a lambda"
        )
    return tensor


def _fitting(title: str, like: Tensor, x: Any) -> Tensor | None:
    if x is None:
        return None
    if like.dtype.kind not in "fc":
        raise TypeError(f"{title}: expected None for {like.dtype}, which has no derivative, got {type(x).__name__}")
    tensor = x if isinstance(x, Tensor) else asarray(x, device=like.device, copy=True)
    if tensor is not x and (tensor.dtype.kind != "c" or like.dtype.kind == "c"):
        tensor = tensor.astype(like.dtype)
    if tensor.dtype != like.dtype:
        raise TypeError(f"{title}: expected {like.dtype}, got {tensor.dtype}")
    if (tensor.shape, tensor.device) != (like.shape, like.device):
        raise ValueError(
            f"{title}: expected shape {like.shape} on {like.device}, got {tensor.shape} on {tensor.device}"
        )
    return tensor


def _positions(title: str, argnums: Argnums, count: int) -> list[int]:
    """Return the numbers of the arguments that are differentiated."""
    try:
        asked = [index(n) for n in (argnums if isinstance(argnums, Iterable) else [argnums])]
    except TypeError:
        raise TypeError(f"{title}: expected argnums of an int or a sequence of them, got {shown(argnums)}") from None
    positions = [n + count if n < 0 else n for n in asked]
    if any(not 0 <= n < count for n in positions) or len(set(positions)) < len(positions):
        raise ValueError(f"{title}: expected argnums among the {count} positional arguments, each once, got {argnums}")
    return positions


def _as_arguments(given: Any) -> tuple[Any, ...]:
    return tuple(given) if type(given) in (tuple, list) else (given,)


def _any_recorded(tensors: Sequence[Tensor | None]) -> bool:
    return any(x is not None and x.requires_grad for x in tensors)
