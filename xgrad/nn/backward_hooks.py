"""Backward hooks of modules, called by identity ops around the inputs and outputs of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xgrad.backend.recording import as_arrays
from xgrad.core.function import Function
from xgrad.core.modes import grad_enabled
from xgrad.core.tensor import Tensor, from_placement
from xgrad.support.hints import shown
from xgrad.support.user_code import warn_user

Gradients = tuple[Tensor | None, ...]


class BackwardHooks:
    """The backward hooks of one call of a module.

    A backward pass computes the output gradients first, and calls the hooks once it has the input
    gradients too. If no input requires a gradient, it calls them as soon as it has the output
    gradients. If gradients reach the inputs only by paths that bypass the outputs, no hook is
    called.
    """

    def __init__(self, module: Any, hooks: Sequence[Callable[..., Any]]) -> None:
        self.module, self.hooks = module, hooks
        self.grad_output: Gradients | None = None

    def inputs(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
        """Return the inputs of the call, whose gradients call the hooks, and arrays for `output`.

        The array is None for an input that requires no gradient.
        """
        watched = _watched(values, self._call)
        self.count, self.any_input = len(values), watched is not values
        return watched, [
            None if x is value else x._data for x, value in zip(watched, values, strict=True)
        ]

    def output(self, output: Any, inputs: tuple[Any, ...], arrays: list[Any]) -> Any:
        """Return the output of the call, whose gradients are passed to the hooks.

        Raise a RuntimeError if the call wrote to an input: the caller's tensor would not have the
        new values.
        """
        for i, (x, array) in enumerate(zip(inputs, arrays, strict=True)):
            if array is not None and x._data is not array:
                raise RuntimeError(
                    f"{type(self.module).__name__}: expected a call with backward hooks that does"
                    f" not write to its arguments, got a write to argument {i}: write to a copy"
                    " of it"
                )
        if isinstance(output, Tensor):
            return _watched((output,), self._keep)[0]
        if not isinstance(output, tuple):
            warn_user(
                f"{type(self.module).__name__}: expected a tensor or a tuple of them for backward"
                f" hooks, got {type(output).__name__}: they are not called",
                UserWarning,
            )
            return output
        watched = _watched(output, self._keep)
        return watched if type(output) is tuple else type(output)(*watched)  # a named tuple

    def _keep(self, gradients: Gradients) -> Gradients:
        self.grad_output = gradients
        if not self.any_input:
            self._call((None,) * self.count)
        return gradients

    def _call(self, gradients: Gradients) -> Gradients:
        if self.grad_output is None:
            return gradients
        for hook in self.hooks:
            new = hook(self.module, gradients, self.grad_output)
            gradients = gradients if new is None else self._checked(new, gradients)
        self.grad_output = None
        return gradients

    def _checked(self, new: Any, gradients: Gradients) -> Gradients:
        name = f"{type(self.module).__name__}.register_full_backward_hook"
        if not isinstance(new, (tuple, list)) or len(new) != len(gradients):
            raise TypeError(
                f"{name}: expected a hook to return None or a tuple of {len(gradients)} gradients,"
                f" one for each positional argument, got {shown(new)}"
            )
        for i, (changed, gradient) in enumerate(zip(new, gradients, strict=True)):
            if gradient is not None and changed is not None:
                gradient._check_gradient(f"{name}, argument {i}", changed)
            elif changed is not None:
                raise TypeError(
                    f"{name}: expected None for argument {i}, which has no gradient, got"
                    f" {shown(changed)}"
                )
        return tuple(new)


def _watched(values: tuple[Any, ...], see: Callable[[Gradients], Gradients]) -> tuple[Any, ...]:
    """Return values, with each one that requires a gradient passed through an identity.

    A backward pass calls `see` with the gradients of all values, which it may replace.
    """
    indices = [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]
    if not indices or not grad_enabled.get():
        return values
    count, placements = len(values), [values[i]._placement for i in indices]

    def backward(xp: Any, g: Any) -> list[Any]:
        recorded = isinstance(g[0], Tensor)
        gradients: list[Tensor | None] = [None] * count
        for i, part, placement in zip(indices, g, placements, strict=True):
            gradients[i] = part if recorded else from_placement(as_arrays(part), placement)
        new = see(tuple(gradients))
        return [x if recorded or x is None else x._data for x in (new[i] for i in indices)]

    identity = Function.of(
        "backward_hooks", lambda xp, *xs: xs, [backward], joint_backward=True, holomorphic=False
    )
    watched = list(values)
    for i, x in zip(indices, identity(*(values[i] for i in indices)), strict=True):
        watched[i] = x
    return tuple(watched)
