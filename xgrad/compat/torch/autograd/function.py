"""`torch.autograd.Function`: functions with a context, ``forward(ctx, ...)`` and ``backward``.

xgrad's own `Function` has rules without a context. Here the forward pass runs on tensors without
history, and an op that returns its results unchanged has the program's `backward` as its rule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import xgrad
from xgrad.backend.recording import as_arrays
from xgrad.compat.torch.tensor import Tensor, as_torch
from xgrad.core import function as core
from xgrad.core.modes import no_grad
from xgrad.core.tensor import from_placement
from xgrad.support.hints import shown


class FunctionCtx:
    """The context of one call: what `forward` saves for `backward`."""

    def __init__(self, inputs: tuple[Any, ...], detached: list[Any]) -> None:
        self.needs_input_grad = tuple(
            isinstance(x, xgrad.Tensor) and x.requires_grad for x in inputs
        )
        self._originals = {
            id(own): x for own, x in zip(detached, inputs, strict=True) if own is not x
        }
        self._saved: tuple[Any, ...] = ()
        self._constants: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors, or None, for `backward`."""
        self._saved = tuple(self._originals.get(id(x), x) for x in tensors)

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors; inputs of the call among them have their graph."""
        return self._saved

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Let results require no gradient."""
        self._constants = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Accept an option: gradients that nothing depends on are zeros in any case."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Refuse functions that write to their inputs."""
        raise NotImplementedError(
            "ctx.mark_dirty is not available in xgrad.compat.torch: return a new tensor"
        )


class Function:
    """A differentiable function with its own `backward`: ``MyFunction.apply(x, ...)``.

    For a function of second order, `backward` must compute with `ctx.saved_tensors` alone.
    """

    @staticmethod
    def forward(*args: Any, **options: Any) -> Any:
        """Return the results; each subclass defines it."""
        raise NotImplementedError("Function: expected a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return a gradient, or None, for each argument of `forward`."""
        raise NotImplementedError("Function: expected a static method backward(ctx, ...)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save values for `backward`, for a `forward` without a context."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Return the results of `forward`, with the recorded call behind them."""
        detached = [_constant(x) for x in args]
        ctx = FunctionCtx(args, detached)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                result = cls.forward(ctx, *detached)
            else:
                result = cls.forward(*detached)
                cls.setup_context(ctx, tuple(detached), result)
        results = result if isinstance(result, tuple) else (result,)
        if not (xgrad.is_grad_enabled() and any(ctx.needs_input_grad)):
            return result
        constants = {id(x) for x in ctx._constants}
        indices = [
            i
            for i, x in enumerate(results)
            if isinstance(x, xgrad.Tensor) and x.dtype.kind in "fc" and id(x) not in constants
        ]
        linked = list(results)
        found = cls._recorded(ctx, args, results, indices)
        for i, x in zip(indices, found, strict=True):
            linked[i] = x
        saved = {id(x): new for x, new in zip(results, linked, strict=True)}
        ctx._saved = tuple(saved.get(id(x), x) for x in ctx._saved)
        return tuple(linked) if isinstance(result, tuple) else linked[0]

    @classmethod
    def _recorded(
        cls, ctx: FunctionCtx, args: tuple[Any, ...], results: tuple[Any, ...], indices: list[int]
    ) -> tuple[Any, ...]:
        """Return results that depend on the arguments by the rule `backward`."""
        inputs = [i for i, needed in enumerate(ctx.needs_input_grad) if needed]
        values = [results[i] for i in indices]
        placements = [x._placement for x in values]

        def rule(xp: Any, g: Any) -> list[Any]:
            parts = g if isinstance(g, (tuple, list)) else (g,)
            recorded = isinstance(parts[0], xgrad.Tensor)
            gradients: list[Any] = [None] * len(results)
            for i, part, placement in zip(indices, parts, placements, strict=True):
                gradients[i] = part if recorded else from_placement(as_arrays(part), placement)
            new = cls.backward(ctx, *as_torch(gradients))
            new = new if isinstance(new, (tuple, list)) else (new,)
            if len(new) < len(args):
                raise RuntimeError(
                    f"{cls.__name__}.backward: expected {len(args)} gradients, one for each"
                    f" argument of forward, got {len(new)}"
                )
            chosen = []
            for i in inputs:
                value = _checked(cls.__name__, i, new[i], args[i])
                chosen.append(value if recorded or value is None else value._data)
            return chosen + [None] * len(values)

        count = len(inputs)
        op = core.Function.of(
            cls.__name__,
            lambda xp, *xs: xs[count:],
            [rule],
            joint_backward=True,
            holomorphic=False,
        )
        found = op(*(args[i] for i in inputs), *values)
        return tuple(as_torch(found))


def _constant(x: Any) -> Any:
    """Return a tensor without history, which is another object than the argument."""
    return as_torch(x._without_history()) if isinstance(x, xgrad.Tensor) else x


def _checked(name: str, index: int, value: Any, x: Any) -> Any:
    """Return the gradient of an argument; ValueError unless its shape fits."""
    if value is None:
        return None
    if not isinstance(value, xgrad.Tensor):
        raise TypeError(
            f"{name}.backward: expected a tensor or None for argument {index}, got {shown(value)}"
        )
    if tuple(value.shape) != tuple(x.shape):
        raise ValueError(
            f"{name}.backward: expected a gradient of shape {tuple(x.shape)} for argument {index},"
            f" got {tuple(value.shape)}"
        )
    return value


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Let a `backward` record no graph."""

    @wraps(backward)
    def call(ctx: Any, *gradients: Any) -> Any:
        with no_grad():
            return backward(ctx, *gradients)

    return call


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Tensor:
    """Return a view without history: variables and tensors are the same since PyTorch 0.4."""
    return as_torch(data.data.requires_grad_(requires_grad))  # type: ignore[no-any-return]
