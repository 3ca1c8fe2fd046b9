"""Checks of derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xgrad import autograd
from xgrad.core.modes import enable_grad, no_grad
from xgrad.core.tensor import Tensor
from xgrad.ops import asarray
from xgrad.support import hints
from xgrad.support.trees import leaves, rebuild

__all__ = ["gradcheck", "gradgradcheck"]
hints.install(__name__)


def gradcheck(
    fn: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    fast_mode: bool = True,
    complex_step: bool = False,
    seed: int = 0,
) -> bool:
    """Compare the derivatives of a function with finite differences.

    Parameters
    ----------
    fn : callable
        Takes the inputs, and returns a tensor or containers of tensors. It must depend on nothing
        else.
    inputs : Tensor, or list or tuple of the arguments
        Tensors on any device, containers of them, and any other arguments. Tensors that require a
        gradient are checked, and must be float64 or complex128, because differences need this
        precision. Real and imaginary parts of complex numbers are checked separately.
    eps : float, default 1e-6
        The step of the central differences.
    atol, rtol : float
        The tolerances of a derivative: ``atol + rtol * abs(difference)``. The defaults are
        PyTorch's.
    raise_exception : bool, default True
        Whether to raise an error if a check fails; if not, False is returned.
    nondet_tol : float, default 0
        The tolerance for differences of results and gradients between two calls.
    fast_mode : bool, default True
        Whether to check only one random direction of each input, with random weights for the
        elements of a result. For each result, this takes one backward pass, and two calls for each
        input. False checks every entry of every Jacobian, and also finds errors that are small
        relative to other entries. If a direction is out of tolerance, the entries are checked in
        any case, so that the error can name one.
    complex_step : bool, default False
        Whether to take the imaginary part of ``fn(x + ih)`` instead of a difference. It is exact to
        rounding, so that tolerances may be tight and float32 suffices. Use it for analytic
        functions of real inputs, composed of ops that also take complex numbers.
    seed : int, default 0
        The seed of the directions and weights.

    Returns
    -------
    bool
        True; False if a check failed and `raise_exception` is False.

    Raises
    ------
    AssertionError
        If a derivative is out of tolerance, or has the wrong shape, dtype or device, or if two
        calls differ. The message names the result, the input, the entry and both values, and a kink
        or jump of the function.
    TypeError
        If an input that requires a gradient has another dtype, if no input requires a gradient, or
        if `fn` returns anything but tensors, or no floating tensor.
    RuntimeError
        If a rule returns a gradient whose shape does not match its input.

    Notes
    -----
    J. Martins, P. Sturdza, J. Alonso, "The complex-step derivative approximation", ACM TOMS 29(3),
    2003.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([0.5, 2.0], dtype=xgrad.float64, requires_grad=True)
    >>> xgrad.testing.gradcheck(xgrad.log, x)
    True
    >>> xgrad.testing.gradcheck(lambda x: x.detach() * x, x)
    Traceback (most recent call last):
        ...
    AssertionError: gradcheck: the derivative of result(1,) by inputs[0](1,) is 2 by
    backward, 4 by differences: off by 2, tolerated are 0.00401; 2 of 4 entries are off
    """
    check = _Check(
        "gradcheck", *_flattened(fn, inputs), eps, atol, rtol, nondet_tol, complex_step, seed
    )
    return check.run(fast_mode, raise_exception)


def gradgradcheck(
    fn: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    fast_mode: bool = True,
    seed: int = 0,
) -> bool:
    """Compare the second derivatives of a function with finite differences.

    These include the derivatives with respect to the incoming gradients.

    Parameters
    ----------
    fn, inputs, eps, atol, rtol, raise_exception, nondet_tol, fast_mode, seed
        See `gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        The incoming gradients, one for each result that has a gradient; random by default.

    Returns
    -------
    bool
        See `gradcheck`.

    Raises
    ------
    AssertionError, TypeError
        See `gradcheck`. In messages, the results are the gradients of the inputs of `fn`, in order;
        the inputs are the inputs of `fn` and, as ``grad_outputs``, the incoming gradients.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([0.5, 2.0], dtype=xgrad.float64, requires_grad=True)
    >>> xgrad.testing.gradgradcheck(xgrad.log, x)
    True
    """
    flat, xs, names = _flattened(fn, inputs)
    title, count = "gradgradcheck", len(xs)
    first_order = _Check(title, flat, xs, names, eps, atol, rtol, nondet_tol, False, seed)
    with enable_grad():
        outs = [out for _, out in first_order.call() if out.requires_grad]
    if grad_outputs is None:
        gradients = [
            _from_reals(first_order.random(len(_as_reals(out)), 2, k), out)
            for k, out in enumerate(outs)
        ]
    else:
        gradients = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
        if len(gradients) != len(outs):
            raise TypeError(
                f"{title}: expected grad_outputs for {len(outs)} results, got {len(gradients)}"
            )

    def backward_pass(*values: Any) -> tuple[Tensor, ...]:
        xs, gs = values[:count], values[count:]
        results = [out for _, out in first_order.call(xs) if out.requires_grad]
        wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        gradients = (
            autograd.grad(results, wanted, gs, create_graph=True, allow_unused=True)
            if results
            else ()
        )
        return tuple([g for g in gradients if g is not None])

    xs = [*xs, *[g.detach().requires_grad_() for g in gradients]]
    names = [*names, *[f"grad_outputs[{i}]" for i in range(len(gradients))]]
    check = _Check(title, backward_pass, xs, names, eps, atol, rtol, nondet_tol, False, seed)
    return check.run(fast_mode, raise_exception)


_Outputs = list[tuple[str, Tensor]]


@dataclass(frozen=True)
class _Check:
    """A function, its inputs, and the tolerances of its derivatives."""

    title: str
    fn: Callable[..., Any]
    inputs: list[Any]
    names: list[str]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    complex_step: bool
    seed: int

    def run(self, fast_mode: bool, raise_exception: bool) -> bool:
        self._check_inputs()
        try:
            with enable_grad():
                self._check_repeats()
                self._check_derivatives(fast_mode)
        except AssertionError:
            if raise_exception:
                raise
            return False
        return True

    @property
    def wanted(self) -> list[int]:
        """The indices of the inputs that require a gradient."""
        return [i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad]

    def random(self, size: int, *salt: int) -> np.ndarray:
        """Return random weights of either sign, away from 0."""
        generator = np.random.default_rng([self.seed, *salt])
        weights: np.ndarray = generator.uniform(0.5, 1, size) * generator.choice([-1.0, 1.0], size)
        return weights

    def call(self, inputs: Sequence[Any] | None = None) -> _Outputs:
        """Return the results, each with its path."""
        outs = list(leaves(self.fn(*(self.inputs if inputs is None else inputs))))
        for path, out in outs:
            if not isinstance(out, Tensor):
                raise TypeError(
                    f"{self.title}: expected tensors of the function, got {type(out).__name__} for"
                    f" {_title(path)}"
                )
        return outs

    def _check_inputs(self) -> None:
        if not self.wanted:
            raise TypeError(f"{self.title}: expected an input that requires a gradient, got none")
        good = ("float32", "float64") if self.complex_step else ("float64", "complex128")
        for i in self.wanted:
            if (dtype := self.inputs[i].dtype).name not in good:
                hint = (
                    "complex_step is for real inputs"
                    if self.complex_step
                    else "use dtype=xgrad.float64"
                )
                coarse = (
                    ", too coarse for differences"
                    if dtype.name in ("float16", "float32", "complex64")
                    else ""
                )
                raise TypeError(
                    f"{self.title}: expected {' or '.join(good)} for {self.names[i]}, got"
                    f" {dtype}{coarse}: {hint}"
                )

    def _check_repeats(self) -> None:
        """Check that a second call returns the same results and gradients."""
        runs = []
        for _ in range(2):
            outs = self.call()
            values = [(_title(path), _as_reals(out)) for path, out in outs]
            if weighted := [
                (out, self._weights(k, out)) for k, (_, out) in enumerate(outs) if out.requires_grad
            ]:
                gradients = self._gradients(*map(list, zip(*weighted, strict=True)))
                values += [
                    (f"the gradient of {self.names[i]}", g)
                    for i, g in zip(self.wanted, gradients, strict=True)
                ]
            runs.append(values)
        for (name, first), (_, second) in zip(*runs, strict=True):
            if first.shape == second.shape and np.array_equal(first, second, equal_nan=True):
                continue
            size = np.abs(first - second).max() if first.shape == second.shape else np.inf
            if not size <= self.nondet_tol:
                raise AssertionError(
                    f"{self.title}: the function is not deterministic: {name} differs by {size:.3g}"
                    f" between two calls with the same inputs, tolerated are {self.nondet_tol}: fix"
                    " its seed, or raise nondet_tol"
                )

    def _check_derivatives(self, fast_mode: bool) -> None:
        outs = self.call()
        if all(out.dtype.kind not in "fc" for _, out in outs):
            raise TypeError(
                f"{self.title}: expected a floating result of the function, got {outs or None}:"
                " return it"
            )
        for k, (path, out) in enumerate(outs):
            if out.dtype.kind not in "fc":
                continue
            suspects = (
                self._wrong_along_direction(k, path, out)
                if fast_mode
                else dict.fromkeys(self.wanted, "")
            )
            if not suspects:
                continue
            jacobians = self._jacobians(out)
            for i, message in suspects.items():
                self._check_entries(k, path, out, i, jacobians[i])
                if message:
                    raise AssertionError(f"{message}: each entry by itself is within the tolerance")

    def _wrong_along_direction(self, k: int, path: str, out: Tensor) -> dict[int, str]:
        """Return an error for each input by which a result has a wrong derivative.

        The derivatives are taken along a random direction.
        """
        weights, messages = self._weights(k, out), {}
        for i, g in zip(self.wanted, self._gradients([out], [weights]), strict=True):
            direction = self.random(len(g), 1, i)
            a, b = g @ direction, self._derivative_along(i, k, direction) @ _as_reals(weights)
            if self._out_of_tolerance(a, b):
                messages[i] = (
                    f"{self.title}: the derivative of {_title(path)}, weighted at random, by"
                    f" {self.names[i]} in a random direction is"
                    f" {self._comparison(a, b)}{self._kink(i, k, direction, _as_reals(weights))}"
                )
        return messages

    def _jacobians(self, out: Tensor) -> dict[int, np.ndarray]:
        """Return the derivatives of a result by each wanted input, one row for each real number.

        The rows are the real numbers of the result.
        """
        rows = [
            self._gradients([out], [_from_reals(unit, out)]) for unit in np.eye(len(_as_reals(out)))
        ]
        return {
            i: (
                np.array([row[position] for row in rows]).reshape(
                    len(rows), len(_as_reals(self.inputs[i]))
                )
            )
            for position, i in enumerate(self.wanted)
        }

    def _check_entries(
        self, k: int, path: str, out: Tensor, i: int, by_backward: np.ndarray
    ) -> None:
        """Compare every derivative of a result with respect to an input."""
        units = np.eye(by_backward.shape[1])
        by_differences = np.zeros_like(by_backward)
        for column, unit in enumerate(units):
            by_differences[:, column] = self._derivative_along(i, k, unit)
        off = self._out_of_tolerance(by_backward, by_differences)
        if not off.any():
            return
        size = np.abs(by_backward - by_differences)
        worst = np.where(off, np.where(np.isnan(size), np.inf, size), -1).argmax()
        row, column = (int(n) for n in np.unravel_index(worst, off.shape))
        a, b = by_backward[row, column], by_differences[row, column]
        raise AssertionError(
            f"{self.title}: the derivative of {_title(path)}{_entry_name(row, out)} by"
            f" {self.names[i]}{_entry_name(column, self.inputs[i])} is {self._comparison(a, b)};"
            f" {int(off.sum())} of {off.size} entries are"
            f" off{self._kink(i, k, units[column], np.eye(len(off))[row])}{_coarse(out)}"
        )

    def _gradients(self, outs: list[Tensor], weights: list[Tensor]) -> list[np.ndarray]:
        """Return the gradient of each wanted input by a backward pass, as rows of real numbers."""
        xs = [self.inputs[i] for i in self.wanted]
        gradients: Sequence[Tensor | None] = [None] * len(xs)
        if outs[0].requires_grad:
            gradients = autograd.grad(outs, xs, weights, retain_graph=True, allow_unused=True)
        for i, x, g in zip(self.wanted, xs, gradients, strict=True):
            if g is not None and (g.shape, g.dtype, g.device) != (x.shape, x.dtype, x.device):
                raise AssertionError(
                    f"{self.title}: expected a gradient of shape {x.shape}, {x.dtype} on {x.device}"
                    f" for {self.names[i]}, got {g.shape}, {g.dtype} on {g.device}"
                )
        return [
            0 * _as_reals(x) if g is None else _as_reals(g)
            for x, g in zip(xs, gradients, strict=True)
        ]

    def _derivative_along(self, i: int, k: int, direction: np.ndarray) -> np.ndarray:
        """Return the derivative of the reals of result `k` by input `i` along a direction."""
        if not self.complex_step:
            up, down = (self._value(i, k, by * direction) for by in (self.eps, -self.eps))
            difference: np.ndarray = (up - down) / (2 * self.eps)
            return difference
        with no_grad():
            out = self.call(self._perturbed(i, 1e-20j * direction))[k][1]
        if out.dtype.kind != "c":
            raise TypeError(
                f"{self.title}: complex_step: expected a complex result of a complex input, got"
                f" {out.dtype}: the function does not take complex numbers all the way"
            )
        imaginary: np.ndarray = _as_reals(out)[1::2] / 1e-20
        return imaginary

    def _value(self, i: int, k: int, by: np.ndarray) -> np.ndarray:
        return _as_reals(self.call(self._perturbed(i, by))[k][1])

    def _perturbed(self, i: int, by: np.ndarray) -> list[Any]:
        """Return the inputs with one of them perturbed."""
        x = self.inputs[i]
        reals = _as_reals(x) + by
        if by.dtype.kind == "c":
            dtype = np.result_type(x.dtype, np.complex64)
            value = asarray(reals.astype(dtype).reshape(x.shape), device=x.device)
        else:
            value = _from_reals(reals, x).requires_grad_()
        return [*self.inputs[:i], value, *self.inputs[i + 1 :]]

    def _weights(self, k: int, out: Tensor) -> Tensor:
        return _from_reals(self.random(len(_as_reals(out)), 0, k), out)

    def _out_of_tolerance(self, by_backward: Any, by_differences: Any) -> Any:
        return ~np.isclose(
            by_backward, by_differences, rtol=self.rtol, atol=self.atol, equal_nan=True
        )

    def _comparison(self, a: Any, b: Any) -> str:
        how = "the complex step" if self.complex_step else "differences"
        tolerated = self.atol + self.rtol * abs(b)
        return (
            f"{a:.9g} by backward, {b:.9g} by {how}: off by {abs(a - b):.3g}, tolerated are"
            f" {tolerated:.3g}"
        )

    def _kink(self, i: int, k: int, direction: np.ndarray, weights: np.ndarray) -> str:
        """Return a hint if the slopes on both sides differ, and still differ at smaller steps."""
        if self.complex_step:
            return ""
        slopes = []
        for eps in (self.eps, self.eps / 8):
            up, here, down = (self._value(i, k, by * direction) @ weights for by in (eps, 0, -eps))
            slopes.append(((up - here) / eps, (here - down) / eps))
        (right, left), (nearer_right, nearer_left) = slopes
        rounding = (
            np.finfo(np.float64).eps
            * (np.abs(self._value(i, k, 0 * direction)) @ np.abs(weights))
            / self.eps
        )
        if self._out_of_tolerance(right + rounding, right):
            return (
                f"; the values are too large for differences over {self.eps:g}: give a larger eps"
            )
        if (
            not self._out_of_tolerance(right, left)
            or abs(nearer_right - nearer_left) < abs(right - left) / 2
        ):
            return ""
        return (
            f"; the function has a kink or a jump there, for its slope is {right:.6g} on the right,"
            f" {left:.6g} on the left: check it elsewhere"
        )


def _flattened(
    fn: Callable[..., Any], inputs: Any
) -> tuple[Callable[..., Any], list[Any], list[str]]:
    """Return a function of the leaves of the inputs, the leaves, and their names."""
    tree = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    named = list(leaves(tree))
    names = [f"inputs{path}" for path, _ in named]
    return lambda *xs: fn(*rebuild(tree, xs)), _independent([x for _, x in named]), names


def _independent(inputs: Sequence[Any]) -> list[Any]:
    """Return the inputs as different leaves, because they are perturbed one at a time."""
    independent: list[Any] = []
    for x in inputs:
        if (
            isinstance(x, Tensor)
            and x.requires_grad
            and (not x.is_leaf or any(x is other for other in independent))
        ):
            x = x.detach().requires_grad_()
        independent.append(x)
    return independent


def _title(path: str) -> str:
    return f"result{path}"


def _coarse(out: Tensor) -> str:
    return (
        f"; the result is {out.dtype}, too coarse for differences"
        if out.dtype.itemsize // _reals_per_element(out) < 8
        else ""
    )


def _reals_per_element(x: Tensor) -> int:
    return 2 if x.dtype.kind == "c" else 1


def _as_reals(x: Tensor) -> np.ndarray:
    """Return the elements in one row; complex ones as alternating real and imaginary parts."""
    row = np.ravel(x.detach().cpu().numpy())
    return row.view(row.real.dtype)


def _from_reals(reals: np.ndarray, x: Tensor) -> Tensor:
    """Return a tensor like `x` with the given `_as_reals`."""
    return asarray(reals.astype(_as_reals(x).dtype).view(x.dtype).reshape(x.shape), device=x.device)


def _entry_name(position: int, x: Tensor) -> str:
    """Return the name of one of the entries of `_as_reals` of a tensor."""
    element, part = divmod(position, _reals_per_element(x))
    if x.ndim == 0:
        return ", the imaginary part" if part else ""
    entry = ", ".join(str(int(n)) for n in np.unravel_index(element, x.shape))
    return f"({entry}{',' if x.ndim == 1 else ''}){', the imaginary part,' if part else ''}"
