"""Random functions under random nested transforms, compared with PyTorch or differences: `check`.

A function of a vector is a list of instructions: arithmetic, `detach` and straight-through
estimators, blocks under `no_grad`, writes in place, modules, `checkpoint` and `scan`, functions
with derivative rules of their own, and transforms of closures. Up to three transforms are nested
around it. Each returns a vector again, so they can be nested in any order. The same program runs on
xgrad and on PyTorch, with ``torch.func``. Where PyTorch refuses it or is missing, the outermost
transform is compared with finite differences, or with a loop, of the function that it transforms.
This leaves out functions with detached values, which differences do not know.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import xgrad
from xgrad.parity.run_op import quiet

RTOL, DIFFERENCES_RTOL = 1e-8, 1e-5  # relative to the largest element or 1
STEPS = (1e-3, 1e-4, 1e-5)  # of finite differences of fourth order
LARGEST_VALUE = 1e6  # of results
SIZE = 3  # of vectors
ORDERS = 4  # of derivatives in all, at most

Function = Callable[[Any], Any]
Body = Callable[["Library", list[Any]], Any]
# the Jacobian of a function at an argument, by differences
Slopes = Callable[[Function, np.ndarray], np.ndarray]


class GradientTimes(xgrad.Function):
    """The identity, with a gradient that is multiplied by a number."""

    @staticmethod
    def forward(xp: Any, x: Any, *, factor: float) -> Any:
        return x * 1

    @staticmethod
    def backward(xp: Any, g: Any, factor: float) -> Any:
        return factor * g


class StraightThrough(xgrad.Function):
    """The sign of the first input, and the second input.

    The sign has the gradient of the identity, the second result none.
    """

    @staticmethod
    def forward(xp: Any, x: Any, y: Any) -> Any:
        return xp.sign(x), y * 1

    @staticmethod
    def backward(xp: Any, g: Any) -> Any:
        return g[0], None


class Library:
    """The functions of xgrad that a program calls, and its modules, which are made before."""

    xp: Any = xgrad

    def __init__(self) -> None:
        self.modules: list[Any] = []

    def constant(self, x: np.ndarray) -> Any:
        return xgrad.asarray(x, copy=True)

    def numpy(self, x: Any) -> np.ndarray:
        return np.array(x.detach().numpy())

    def copy(self, x: Any) -> Any:
        return xgrad.asarray(x, copy=True)

    def take(self, x: Any, indices: list[int]) -> Any:
        return x[indices]

    def no_grad(self) -> Any:
        return xgrad.no_grad()

    def constant_of(self, x: Any) -> Any:
        """Return a result of a block under `no_grad` as a constant.

        In PyTorch, it is a constant in reverse mode only.
        """
        return x

    def data(self, x: Any) -> Any:
        return x.data

    def write_to_data(self, x: Any, k: int, value: Any) -> None:
        x.data[k] = value

    def pullback(self, function: Function, x: Any) -> Function:
        """Return the function of a cotangent."""
        pull = xgrad.vjp(function, x)[1]
        return lambda u: pull(u)[0]

    def own_rule(self, x: Any, factor: float) -> Any:
        return GradientTimes(factor=factor)(x)

    def straight_through(self, x: Any, y: Any) -> tuple[Any, Any]:
        result: tuple[Any, Any] = StraightThrough()(x, y)
        return result

    def checkpoint(self, function: Callable[..., Any], *args: Any) -> Any:
        return xgrad.autograd.checkpoint(function, *args)

    def scan(self, step: Any, init: Any, xs: Any, **options: Any) -> tuple[Any, Any]:
        return xgrad.scan(step, init, xs, **options)

    def module(self, kind: str, weights: np.ndarray) -> Any:
        """Return a module of a kind of `MODULES` with values of its parameters and buffers."""
        module = _modules(xgrad.nn)[kind].to(xgrad.float64)
        state = [*module.named_parameters(), *module.named_buffers()]
        _fill(state, weights, lambda x, value: setattr(x, "data", xgrad.asarray(value)))
        return module.eval()

    def call_with(self, module: Any, params: dict[str, Any], x: Any) -> Any:
        """Call a module with parameters in the place of its own."""
        return xgrad.nn.utils.functional_call(module, params, x)

    def softmax(self, x: Any) -> Any:
        return xgrad.nn.functional.softmax(x)

    def value_and_grad(self, function: Function, x: Any) -> tuple[Any, Any]:
        value, gradient = xgrad.value_and_grad(function)(x)
        return value, gradient

    def jvp(self, function: Function, x: Any, tangent: Any) -> tuple[Any, Any]:
        value, out = xgrad.jvp(function, (x,), (tangent,))
        return value, out

    def hvp(self, function: Function, x: Any, vector: Any) -> Any:
        return xgrad.hvp(function, (x,), (vector,))[0]

    def vjp(self, function: Function, x: Any, cotangent: Any) -> Any:
        return xgrad.vjp(function, x)[1](cotangent)[0]

    def vmap(
        self, function: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0
    ) -> Callable[..., Any]:
        return xgrad.vmap(function, in_axes, out_axes)

    grad = staticmethod(xgrad.grad)
    jacobian = staticmethod(xgrad.jacobian)
    jacfwd = staticmethod(xgrad.jacfwd)
    hessian = staticmethod(xgrad.hessian)


class TorchLibrary(Library):
    """The functions of PyTorch that a program calls."""

    def __init__(self) -> None:
        super().__init__()
        self.torch: Any = import_module("torch")
        self.func: Any = import_module("torch.func")
        self.xp = import_module("array_api_compat.torch")
        self.grad = self.func.grad
        # whether to compute all in reverse mode: forward mode records under `no_grad`
        self.reverse = False
        self.looped = False  # whether to loop in the place of `vmap`, which refuses some functions

    def jacobian(self, function: Function) -> Function:
        def rows(x: Any) -> Any:
            value, pullback = self.func.vjp(function, x)
            units = self.torch.eye(value.numel(), dtype=value.dtype).reshape(-1, *value.shape)
            found = self.torch.stack([pullback(unit)[0] for unit in units])
            return found.reshape(*value.shape, *x.shape)

        transformed: Function = rows if self.looped else self.func.jacrev(function)
        return transformed

    def jacfwd(self, function: Function) -> Function:
        forward = not (self.reverse or self.looped)
        transformed: Function = self.func.jacfwd(function) if forward else self.jacobian(function)
        return transformed

    def hessian(self, function: Function) -> Function:
        return self.jacfwd(self.jacobian(function))

    def constant(self, x: np.ndarray) -> Any:
        return self.torch.tensor(x)

    def copy(self, x: Any) -> Any:
        return x.clone()

    def take(self, x: Any, indices: list[int]) -> Any:
        return x[self.torch.tensor(indices)]

    def no_grad(self) -> Any:
        return self.torch.no_grad()

    def constant_of(self, x: Any) -> Any:
        return x.detach()

    def data(self, x: Any) -> Any:
        return x.detach()

    def write_to_data(self, x: Any, k: int, value: Any) -> None:
        with self.torch.no_grad():
            x[k] = value.detach()

    def pullback(self, function: Function, x: Any) -> Function:
        pull = self.func.vjp(function, x)[1]
        return lambda u: pull(u)[0]

    def own_rule(self, x: Any, factor: float) -> Any:
        return factor * x + ((1 - factor) * x).detach()

    def straight_through(self, x: Any, y: Any) -> tuple[Any, Any]:
        return x + (self.torch.sign(x) - x).detach(), y.detach()

    def checkpoint(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def scan(
        self, step: Any, init: Any, xs: Any, *, reverse: bool = False, **options: Any
    ) -> tuple[Any, Any]:
        outs, order = [], range(len(xs))
        for i in reversed(order) if reverse else order:
            init, out = step(init, xs[i])
            outs.append(out)
        return init, self.torch.stack(outs[::-1] if reverse else outs)

    def module(self, kind: str, weights: np.ndarray) -> Any:
        module = _modules(self.torch.nn)[kind].to(self.torch.float64)
        state = [*module.named_parameters(), *module.named_buffers()]
        _fill(state, weights, lambda x, value: setattr(x, "data", self.torch.tensor(value)))
        if kind == "layer norm":  # third derivatives of PyTorch's own are wrong
            return partial(
                self._layer_norm, module.weight.detach(), module.bias.detach(), module.eps
            )
        return module.eval()

    def _layer_norm(self, weight: Any, bias: Any, eps: float, x: Any) -> Any:
        centered = x - x.mean()
        return centered / self.torch.sqrt((centered**2).mean() + eps) * weight + bias

    def call_with(self, module: Any, params: dict[str, Any], x: Any) -> Any:
        return self.func.functional_call(module, params, (x,))

    def softmax(self, x: Any) -> Any:
        return self.torch.softmax(x, -1)

    def value_and_grad(self, function: Function, x: Any) -> tuple[Any, Any]:
        gradient, value = self.func.grad_and_value(function)(x)
        return value, gradient

    def jvp(self, function: Function, x: Any, tangent: Any) -> tuple[Any, Any]:
        if self.reverse:
            value, pullback = self.func.vjp(function, x)
            return value, self.func.vjp(lambda u: pullback(u)[0], self.torch.zeros_like(value))[1](
                tangent
            )[0]
        value, out = self.func.jvp(function, (x,), (tangent,))
        return value, out

    def hvp(self, function: Function, x: Any, vector: Any) -> Any:
        return self.jvp(self.grad(function), x, vector)[1]

    def vjp(self, function: Function, x: Any, cotangent: Any) -> Any:
        return self.func.vjp(function, x)[1](cotangent)[0]

    def vmap(
        self, function: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0
    ) -> Callable[..., Any]:
        def loop(*args: Any) -> Any:
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
            columns = [
                None if axis is None else x.unbind(axis) for x, axis in zip(args, axes, strict=True)
            ]
            count = next(len(column) for column in columns if column is not None)
            rows = [
                [x if c is None else c[i] for x, c in zip(args, columns, strict=True)]
                for i in range(count)
            ]
            return self.torch.stack([function(*row) for row in rows], out_axes)

        mapped: Callable[..., Any] = loop
        return (
            mapped if self.looped else self.func.vmap(function, in_dims=in_axes, out_dims=out_axes)
        )


def _modules(nn: Any) -> dict[str, Any]:
    """Return modules of a vector, by name.

    Both libraries give them the same names, parameters and buffers.
    """
    return {
        "mlp": nn.Sequential(nn.Linear(SIZE, 4), nn.Tanh(), nn.Linear(4, SIZE)),
        "linear": nn.Linear(SIZE, SIZE),
        "layer norm": nn.LayerNorm(SIZE),
        "batch norm": nn.BatchNorm1d(SIZE),
        "group norm": nn.GroupNorm(1, SIZE),
        "gelu": nn.Sequential(nn.Linear(SIZE, SIZE), nn.GELU(), nn.Softplus()),
        "pool": nn.MaxPool1d(2, 1),
        "conv": nn.Sequential(nn.Conv1d(1, 2, 2), nn.SiLU(), nn.Conv1d(2, 1, 2, padding=1)),
    }


MODULES = tuple(_modules(xgrad.nn))


def _fill(
    state: list[tuple[str, Any]], weights: np.ndarray, assign: Callable[[Any, Any], None]
) -> None:
    values = np.ravel(weights)
    for name, x in state:
        if "num_batches" not in name:
            value = np.resize(values, tuple(x.shape))
            assign(x, np.abs(value) + 0.5 if "running_var" in name else value)
            values = np.roll(values, 1)


# Instructions: each is drawn with indices of earlier values, and numbers


@dataclass
class Draw:
    """Operands of an instruction: two earlier values, numbers, a module of `Library.modules`."""

    r: random.Random
    i: int
    j: int
    weights: np.ndarray
    module: str
    place: int

    def index(self) -> int:
        return self.r.randrange(SIZE)


Maker = Callable[[Draw], Body]

INSTRUCTIONS: dict[str, Maker] = {}
DETACHING: set[str] = set()  # instructions whose gradients are not the slopes of their values
HIDDEN: set[str] = set()  # they write under `no_grad`, which PyTorch's forward mode records


def instruction(
    name: str, *, detaching: bool = False, hidden: bool = False, share: int = 1
) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        for n in range(share):  # so that it is drawn more often
            INSTRUCTIONS[f"{name}{' again' * n}"] = make
            if detaching or hidden:
                DETACHING.add(f"{name}{' again' * n}")
            if hidden:
                HIDDEN.add(f"{name}{' again' * n}")
        return make

    return add


def _simple(name: str, form: Callable[[Library, Any, Any], Any]) -> None:
    instruction(name)(lambda d: lambda lib, v: form(lib, v[d.i], v[d.j]))


_simple("sin", lambda lib, x, y: lib.xp.sin(x) + 0.3 * y)
_simple("product", lambda lib, x, y: x * lib.xp.tanh(y))
_simple("quotient", lambda lib, x, y: x / (1 + y * y))
_simple("exp", lambda lib, x, y: lib.xp.exp(-x * x) - y)
_simple("where", lambda lib, x, y: lib.xp.where(x > 0.123, x * y, lib.xp.sin(y)))
_simple("maximum", lambda lib, x, y: lib.xp.maximum(x, 0.77 * y + 0.1))
_simple("max", lambda lib, x, y: lib.xp.max(x, axis=0) * y)
_simple("clip", lambda lib, x, y: lib.xp.clip(x, -0.71, 0.83) + y * y)
_simple("sort", lambda lib, x, y: lib.xp.sort(x) * y)
_simple("argsort", lambda lib, x, y: lib.xp.take(y, lib.xp.argsort(x), axis=0))
_simple("cumulative", lambda lib, x, y: lib.xp.cumulative_sum(x) * y)
_simple("prod", lambda lib, x, y: lib.xp.prod(1 + 0.1 * x) + y)
_simple("flip", lambda lib, x, y: lib.xp.flip(x) - lib.xp.roll(y, 1))
_simple("outer", lambda lib, x, y: (x[:, None] * y) @ lib.xp.tanh(x))
_simple("moments", lambda lib, x, y: (x - lib.xp.mean(x)) / lib.xp.sqrt(lib.xp.var(x) + 0.5) * y)
_simple("norm", lambda lib, x, y: y / lib.xp.linalg.vector_norm(x + 2))
_simple("softmax", lambda lib, x, y: lib.softmax(x) + 0.1 * y)
_simple("stack", lambda lib, x, y: lib.xp.sum(lib.xp.stack([x, y, lib.xp.sin(x * y)]), axis=0))
_simple("concat", lambda lib, x, y: lib.xp.concat([x[:1], y[1:]]) * lib.xp.concat([y[2:], x[:2]]))
_simple("sum", lambda lib, x, y: lib.xp.sum(x * y) * x)


@instruction("matrix")
def _matrix(d: Draw) -> Body:
    return lambda lib, v: lib.constant(d.weights) @ v[d.i] + v[d.j]


@instruction("take")
def _take(d: Draw) -> Body:
    indices = [d.index() for _ in range(SIZE)]
    return lambda lib, v: lib.take(v[d.i], indices) + v[d.j]


@instruction("detach", detaching=True, share=3)
def _detach(d: Draw) -> Body:
    forms: list[Callable[[Library, Any, Any], Any]] = [
        lambda lib, x, y: (x - (2 * x).detach()) * y,
        lambda lib, x, y: x.detach() * y,
        lambda lib, x, y: x + (lib.xp.sign(x) - x).detach() * y,
        lambda lib, x, y: lib.xp.sin(lib.data(x) * y),
        lambda lib, x, y: (x * y).detach() - x * y + lib.xp.sin(y),
    ]
    form = d.r.choice(forms)
    return lambda lib, v: form(lib, v[d.i], v[d.j])


@instruction("no_grad", detaching=True, share=2)
def _no_grad(d: Draw) -> Body:
    inner = d.r.choice(["value", "grad", "vmap", "jvp"])

    def run(lib: Library, v: list[Any]) -> Any:
        x, y = v[d.i], v[d.j]
        with lib.no_grad():
            if inner == "value":
                c = lib.xp.sin(x) * y
            elif inner == "grad":
                c = lib.grad(lambda z: lib.xp.sum(z**3 * y))(x)
            elif inner == "vmap":
                c = lib.vmap(lambda z: lib.xp.sum(z * x))(lib.xp.stack([x, y, x * y]))
            else:
                c = lib.jvp(lambda z: lib.xp.sin(z) * y, x, y)[1]
            c = lib.constant_of(c)
        return c * x + y

    return run


@instruction("own rule", detaching=True, share=2)
def _own_rule(d: Draw) -> Body:
    factor = d.r.choice([-1.0, 0.5, 3.0])

    def run(lib: Library, v: list[Any]) -> Any:
        x, y = v[d.i], v[d.j]
        if factor != 3.0:
            return lib.own_rule(lib.xp.sin(x), factor) * y
        first, second = lib.straight_through(x, y)
        return first * y + second * x

    return run


@instruction("write", share=3)
def _write(d: Draw) -> Body:
    k, m = d.index(), d.index()
    forms: list[Callable[[Library, Any, Any, Any], None]] = [
        lambda lib, z, x, y: z.__setitem__(k, lib.xp.sin(y[m])),
        lambda lib, z, x, y: z.__setitem__(slice(1, None), y[:2] * x[1:]),
        lambda lib, z, x, y: z.__iadd__(y * x),
        lambda lib, z, x, y: z.__imul__(lib.xp.sin(y)),
        lambda lib, z, x, y: z.mul_(y).add_(1.5),
        lambda lib, z, x, y: z.__setitem__(slice(None), y * x[k]),
        lambda lib, z, x, y: z.__setitem__(k, 0.25),
        lambda lib, z, x, y: z.copy_(y),
    ]
    chosen = [d.r.choice(forms) for _ in range(d.r.choice([1, 1, 2, 3]))]

    def run(lib: Library, v: list[Any]) -> Any:
        z = lib.copy(v[d.i]) if k else v[d.i] * 1
        for form in chosen:
            form(lib, z, v[d.i], v[d.j])
        return z * v[d.i]

    return run


@instruction("write to a constant")
def _write_to_constant(d: Draw) -> Body:
    k, made = d.index(), d.r.randrange(3)

    def run(lib: Library, v: list[Any]) -> Any:
        z = lib.constant(np.full(SIZE, 0.5))  # PyTorch refuses to write to it in a vmap
        z = (z, z * 2, lib.copy(z))[made]
        z[k] = lib.xp.sum(v[d.i] * v[d.j])
        z += v[d.j]
        return z * v[d.i]

    return run


@instruction("hidden write", hidden=True)
def _hidden_write(d: Draw) -> Body:
    k, form = d.index(), d.r.randrange(4)

    def run(lib: Library, v: list[Any]) -> Any:
        z = v[d.i] * 1
        if form == 3:
            lib.write_to_data(z, k, v[d.j][k] * 2)
            return lib.xp.sin(z) * v[d.j]
        with lib.no_grad():
            if form == 0:
                z += v[d.j]
            elif form == 1:
                z[k] = 0.5
            else:
                z.mul_(0.5)
        return lib.xp.sin(z) * v[d.j]

    return run


@instruction("module", share=4)
def _module(d: Draw) -> Body:
    def run(lib: Library, v: list[Any]) -> Any:
        module, x = lib.modules[d.place], v[d.i]
        if d.module == "batch norm" or d.module == "group norm":
            out = module(x[None])[0, ...]
        elif d.module == "pool":
            out = module(lib.xp.concat([x, v[d.j][:1]])[None, None])[0, 0, ...]
        elif d.module == "conv":
            out = module(x[None, None])[0, 0, ...]
        else:
            out = module(x)
        return 0.5 * out + v[d.j]

    return run


@instruction("functional call")
def _functional_call(d: Draw) -> Body:
    d.module = "linear"

    def run(lib: Library, v: list[Any]) -> Any:
        x, y = v[d.i], v[d.j]
        params = {"weight": x[:, None] * lib.xp.tanh(y), "bias": lib.xp.sin(y)}
        return lib.call_with(lib.modules[d.place], params, x)

    return run


@instruction("checkpoint", share=2)
def _checkpoint(d: Draw) -> Body:
    kind = d.r.randrange(3)

    def run(lib: Library, v: list[Any]) -> Any:
        x, y = v[d.i], v[d.j]
        if kind == 0:
            return lib.checkpoint(lambda x: lib.xp.sin(x) * y + lib.xp.max(x, axis=0), x)
        if kind == 1:
            return lib.checkpoint(
                lambda x, y: lib.xp.sin(lib.checkpoint(lambda z: z * y, x * y)), x, y
            )
        return lib.checkpoint(lambda x: {"a": [x * y, lib.xp.sort(x)]}, x)["a"][1] * y

    return run


@instruction("scan", share=2)
def _scan(d: Draw) -> Body:
    options = {"checkpoint": d.r.choice([False, True, 2]), "reverse": d.r.random() < 0.3}

    def run(lib: Library, v: list[Any]) -> Any:
        x, y = v[d.i], v[d.j]

        def step(state: Any, element: Any) -> Any:
            new = lib.xp.sin(state * element) + lib.xp.max(y, axis=0)
            return new, new * x[0]

        last, outs = lib.scan(step, lib.xp.sum(x), y * 1, **options)
        return outs * last

    return run


@instruction("closure", share=4)
def _closure(d: Draw) -> Body:
    kind = d.r.randrange(10)

    def run(lib: Library, v: list[Any]) -> Any:
        xp, x, y = lib.xp, v[d.i], v[d.j]
        if kind == 0:
            return lib.grad(lambda z: xp.sum(xp.sin(z) * x * z))(y)
        if kind == 1:
            return lib.vmap(lambda s: xp.sum(xp.sin(s * x) * y))(y)
        if kind == 2:
            return lib.jvp(lambda z: xp.sin(z) * x, y, x)[1]
        if kind == 3:
            return lib.jacfwd(lambda z: xp.sum(z * z * x) * y)(x) @ y
        if kind == 4:
            return lib.jacobian(lambda z: xp.sin(z * y))(x) @ x
        if kind == 5:
            return lib.hvp(lambda z: xp.sum(z**3 * x), y, xp.sin(x))
        if kind == 6:
            return lib.vmap(lib.grad(lambda s: xp.sum(s**3 * x)))(y)
        if kind == 7:
            return lib.vjp(lambda z: xp.sort(z) * x, y, xp.cos(x))
        if kind == 8:  # a Jacobian by a mapped pullback
            pull = lib.pullback(
                lambda z: (
                    xp.sin(z) * xp.sum(z * x) + lib.checkpoint(lambda z: xp.max(z, axis=0) * z, z)
                ),
                y,
            )
            return x @ lib.vmap(pull)(lib.constant(np.eye(SIZE)))
        return lib.vmap(lambda a: lib.vmap(lambda b: xp.sum(a * b * x))(y))(x) @ y

    return run


# Transforms of a function of a vector to another


@dataclass(frozen=True)
class Transform:
    """A transform, and its reference by differences or by a loop.

    `orders` is the number of orders of derivatives that it takes.
    """

    # of a function, the weights of results, and the argument
    apply: Callable[[Library, Function, Any, Any], Any]
    reference: Callable[[Slopes, Function, np.ndarray, np.ndarray], np.ndarray]
    orders: int = 1


def _jacobian(step: float, f: Function, x: np.ndarray) -> np.ndarray:
    """Return derivatives by finite differences of fourth order."""
    columns = []
    for i in range(x.size):
        e = np.zeros(x.size)
        e[i] = step
        columns.append((8 * (f(x + e) - f(x - e)) - f(x + 2 * e) + f(x - 2 * e)) / (12 * step))
    return np.stack(columns, -1)


def _pull(lib: Library, f: Function, w: Any, x: Any) -> Any:
    return lib.vjp(f, x, w * lib.xp.sin(x))


def _mapped_pullback(lib: Library, f: Function, w: Any, x: Any) -> Any:
    return w @ lib.vmap(lib.pullback(f, x))(lib.constant(np.eye(SIZE)))


def _value_and_grad(lib: Library, f: Function, w: Any, x: Any) -> Any:
    value, gradient = lib.value_and_grad(lambda x: lib.xp.sum(f(x) * w), x)
    return value * gradient


def _rows(xp: Any, w: Any, x: Any) -> Any:
    return xp.stack([x, xp.sin(x) * 1.5, x * w, w * 0.5 + 0 * x])


def _vmap(lib: Library, f: Function, w: Any, x: Any) -> Any:
    return lib.xp.sum(lib.vmap(f)(_rows(lib.xp, w, x)), axis=0)


def _vmap_of_columns(lib: Library, f: Function, w: Any, x: Any) -> Any:
    return lib.xp.sum(lib.vmap(f, in_axes=1, out_axes=1)(_rows(lib.xp, w, x).T), axis=1)


def _vmap_of_scales(lib: Library, f: Function, w: Any, x: Any) -> Any:
    return lib.vmap(lambda s, x: lib.xp.sum(f(x * s) * w), in_axes=(0, None))(w, x)


def _vmap_of_closure(lib: Library, f: Function, w: Any, x: Any) -> Any:
    return lib.xp.sum(lib.vmap(lambda s: f(x) * s + f(s * w))(x), axis=0)


def _vmap_of_grad(lib: Library, f: Function, w: Any, x: Any) -> Any:
    return lib.xp.sum(
        lib.vmap(lib.grad(lambda x: lib.xp.sum(f(x) * w)))(_rows(lib.xp, w, x)), axis=0
    )


def _looped(d: Slopes, f: Function, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.asarray(sum(f(row) for row in _rows(np, w, x)))


TRANSFORMS: dict[str, Transform] = {
    "grad": Transform(
        lambda lib, f, w, x: lib.grad(lambda x: lib.xp.sum(f(x) * w))(x),
        lambda d, f, w, x: w @ d(f, x),
    ),
    "value_and_grad": Transform(_value_and_grad, lambda d, f, w, x: (w @ f(x)) * (w @ d(f, x))),
    "jacobian": Transform(
        lambda lib, f, w, x: lib.jacobian(f)(x) @ w, lambda d, f, w, x: d(f, x) @ w
    ),
    "jacfwd": Transform(lambda lib, f, w, x: lib.jacfwd(f)(x) @ w, lambda d, f, w, x: d(f, x) @ w),
    "jvp": Transform(
        lambda lib, f, w, x: lib.jvp(f, x, lib.xp.sin(x) * w)[1],
        lambda d, f, w, x: d(f, x) @ (np.sin(x) * w),
    ),
    "vjp": Transform(_pull, lambda d, f, w, x: (w * np.sin(x)) @ d(f, x)),
    "vmap of a pullback": Transform(_mapped_pullback, lambda d, f, w, x: w @ d(f, x)),
    "vmap": Transform(_vmap, _looped, orders=0),
    "vmap of columns": Transform(_vmap_of_columns, _looped, orders=0),
    "vmap of scales": Transform(
        _vmap_of_scales, lambda d, f, w, x: np.stack([np.sum(f(x * s) * w) for s in w]), orders=0
    ),
    "vmap of a closure": Transform(
        _vmap_of_closure,
        lambda d, f, w, x: np.asarray(sum(f(x) * s + f(s * w) for s in x)),
        orders=0,
    ),
    "vmap of grad": Transform(
        _vmap_of_grad, lambda d, f, w, x: np.asarray(sum(w @ d(f, row) for row in _rows(np, w, x)))
    ),
    "checkpoint": Transform(
        lambda lib, f, w, x: lib.checkpoint(f, x), lambda d, f, w, x: f(x), orders=0
    ),
    "hessian": Transform(
        lambda lib, f, w, x: lib.hessian(lambda x: lib.xp.sum(f(x) * w))(x) @ w,
        lambda d, slope, w, x: (
            d(slope, x) @ w
        ),  # of the gradient, for differences of differences are inexact
        orders=2,
    ),
    "hvp": Transform(
        lambda lib, f, w, x: lib.hvp(lambda x: lib.xp.sum(f(x) * w), x, w),
        lambda d, slope, w, x: (
            d(slope, x) @ w
        ),  # of the gradient, for differences of differences are inexact
        orders=2,
    ),
}


# Programs


@dataclass
class Program:
    """A function of a vector, and the transforms around it, the outermost last."""

    seed: int
    x: np.ndarray
    weights: np.ndarray
    draws: list[Draw]
    bodies: list[Body]
    descriptions: list[str]
    nest: list[str]

    def function(self, lib: Library, x: Any) -> Any:
        """Return the result of the function without transforms."""
        values = [x]
        for body in self.bodies:
            values.append(body(lib, values))
        return values[-1] + 0.5 * values[len(values) // 2]

    def transformed(self, lib: Library, depth: int) -> Function:
        """Return the function under the innermost transforms."""
        lib.modules = [lib.module(draw.module, draw.weights) for draw in self.draws]
        weights = lib.constant(self.weights)

        def of(function: Function, transform: Transform) -> Function:
            return lambda x: transform.apply(lib, function, weights, x)

        function: Function = lambda x: self.function(lib, x)  # noqa: E731
        for name in self.nest[:depth]:
            function = of(function, TRANSFORMS[name])
        return function

    def evaluate(self, lib: Library, x: np.ndarray, depth: int | None = None) -> np.ndarray:
        """Return the result of the program, or of a part of its transforms, at an argument."""
        function = self.transformed(lib, len(self.nest) if depth is None else depth)
        return lib.numpy(function(lib.constant(x)))


def generate(seed: int) -> Program:
    """Return the program of a seed."""
    r, rng = random.Random(seed), np.random.default_rng(seed)
    draws: list[Draw] = []
    bodies: list[Body] = []
    descriptions = []
    names = list(INSTRUCTIONS)
    for count in range(r.randint(1, 5)):
        name = r.choice(names)
        numbers = 0.5 * rng.normal(size=(SIZE, SIZE))
        draw = Draw(r, r.randint(0, count), r.randint(0, count), numbers, r.choice(MODULES), count)
        draws.append(draw)
        bodies.append(INSTRUCTIONS[name](draw))
        detail = f" {draw.module}" if name.startswith("module") else ""
        descriptions.append(f"v{count + 1} = {name}{detail} of v{draw.i}, v{draw.j}")
    nest: list[str] = []
    for _ in range(r.choice([1, 2, 2, 3, 3, 3])):
        left = ORDERS - sum(TRANSFORMS[name].orders for name in nest)
        nest.append(
            r.choice([name for name, transform in TRANSFORMS.items() if transform.orders <= left])
        )
    x, weights = rng.normal(size=SIZE), rng.normal(size=SIZE)
    return Program(seed, x, weights, draws, bodies, descriptions, nest)


@cache
def _torch() -> TorchLibrary | None:
    if find_spec("torch") is None or find_spec("array_api_compat") is None:
        return None
    lib = TorchLibrary()
    lib.torch.set_num_threads(1)
    return lib


@contextmanager
def _without_warnings() -> Iterator[None]:
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _is_moderate(x: np.ndarray) -> bool:
    return bool(np.isfinite(x).all() and np.max(np.abs(x)) <= LARGEST_VALUE)


def difference(x: np.ndarray, y: np.ndarray) -> float:
    """Return the largest difference, relative to the largest element or 1."""
    return (
        float(np.max(np.abs(x - y)) / max(1.0, float(np.max(np.abs(y)))))
        if x.shape == y.shape
        else np.inf
    )


def check(seed: int, peer: bool = True) -> str:
    """Run the program of a seed, and return how it was compared, or describe the mismatch."""
    with _without_warnings():
        program, lib = generate(seed), Library()
        expected, refusal = None, "PyTorch is not used"
        names = {line.split(" = ")[1].partition(" of ")[0] for line in program.descriptions}
        if peer and (torch := _torch()) is not None:
            torch.reverse = bool(names & HIDDEN)
            for torch.looped in (False, True):
                try:
                    expected = program.evaluate(torch, program.x)
                    break
                except (RuntimeError, TypeError, IndexError, ValueError) as error:
                    refusal = f"{type(error).__name__}: {str(error).strip().splitlines()[0]:.100}"
        try:
            got = program.evaluate(lib, program.x)
        except Exception as error:
            return _report(program, f"an error, {type(error).__name__}: {error}")
        detaching = bool(names & DETACHING)
        if not _is_moderate(got) and (expected is None or not _is_moderate(expected)):
            return "not finite, or too large"
        if expected is not None:
            error = difference(got, expected)
            if error <= RTOL:
                return "agrees"
            if not detaching and _from_differences(program, got) <= DIFFERENCES_RTOL:
                return "agrees by differences, where PyTorch does not"
            return (
                "ill-conditioned"
                if _sensitive(program, got, error)
                else _report(program, f"PyTorch by {error:.2g}")
            )
        if detaching:
            return f"not compared, as PyTorch refuses it: {refusal}"
        error = _from_differences(program, got)
        if error <= DIFFERENCES_RTOL:
            return "agrees by differences alone"
        return (
            "ill-conditioned"
            if _sensitive(program, got, error)
            else _report(program, f"differences by {error:.2g}")
        )


def _by_differences(program: Program, step: float) -> np.ndarray:
    """Return the outermost transform's result, by differences of its function."""
    lib, depth = Library(), len(program.nest) - 1
    transform, function = TRANSFORMS[program.nest[-1]], program.transformed(lib, depth)
    if transform.orders == 2:
        weights, value = xgrad.asarray(program.weights), function
        function = xgrad.grad(lambda x: (value(x) * weights).sum())

    def inner(x: np.ndarray) -> np.ndarray:
        return lib.numpy(function(lib.constant(x)))

    return transform.reference(partial(_jacobian, step), inner, program.weights, program.x)


def _from_differences(program: Program, got: np.ndarray) -> float:
    """Return the smallest difference from finite differences of several steps."""
    return min(difference(got, _by_differences(program, step)) for step in STEPS)


def _sensitive(program: Program, got: np.ndarray, error: float) -> bool:
    """Return whether rounding of the argument explains an error.

    It does if it changes the result by at least a tenth of the error.
    """
    moved = program.evaluate(
        Library(), program.x + 1e-13 * np.random.default_rng(0).normal(size=SIZE)
    )
    return not difference(moved, got) < error / 10


def _report(program: Program, what: str) -> str:
    lines = "\n  ".join(program.descriptions)
    nest = " of ".join(program.nest[::-1])
    return f"MISMATCH with {what}, seed {program.seed}: {nest} of the function\n  {lines}"
