"""Random number generators: seeded ones, and the default one of each thread or task."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar

import numpy as np

from xgrad.backend import philox
from xgrad.backend.device import Device, batching
from xgrad.backend.devices import current_device
from xgrad.backend.recording import active_recorder, check_true, refuse, run_array_code
from xgrad.core import providers
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import float32, float64, get_default_dtype, int64, standard
from xgrad.core.tensor import Tensor, from_array
from xgrad.random import variates
from xgrad.support.hints import shown

Shape = int | tuple[int, ...]


class Generator:
    """A stream of random numbers that a seed determines.

    Each call draws from its own part of the sequence of Philox4x64-10 [1]_ under the seed: its
    numbers depend on the seed and on the number of earlier calls, not on their sizes. Equal seeds
    give bit-identical numbers on every device, since they are computed from Philox's bits by
    exactly rounded operations. Uniform numbers and the masks of dropout are generated on the
    device, all others on the host.

    Parameters
    ----------
    seed : int, optional
        An int from 0 to 2**64 - 1; by default one from the operating system.

    Raises
    ------
    TypeError
        If the seed is not an int.
    ValueError
        If the seed is out of range.

    References
    ----------
    .. [1] J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as
       1, 2, 3", SC 2011.

    Examples
    --------
    >>> import xgrad
    >>> a, b = xgrad.random.Generator(7), xgrad.random.Generator(7)
    >>> bool(xgrad.all(a.rand(3) == b.rand(3)))
    True
    """

    __slots__ = ("_state",)
    _state: tuple[int, int]  # the seed, and the number of calls so far

    def __init__(self, seed: int | None = None) -> None:
        self._state = _fresh_state() if seed is None else (_as_seed("Generator", seed), 0)
        if seed is not None and (recorder := active_recorder()) is not None:
            recorder.add_generator(self)

    @property
    def seed(self) -> int:
        """The seed that the stream began with."""
        return self._state[0]

    def get_state(self) -> dict[str, int]:
        """Return the seed and the number of calls so far: see `get_state`."""
        _refuse_trace("get_state")
        seed, calls = self._state
        return {"seed": seed, "calls": calls % 2**64}

    def set_state(self, state: Mapping[str, int]) -> None:
        """Continue from a result of `get_state`: see `set_state`."""
        _refuse_trace("set_state")
        if not isinstance(state, Mapping) or state.keys() != {"seed", "calls"}:
            raise TypeError(
                "set_state: expected a mapping with 'seed' and 'calls', as of get_state, got"
                f" {shown(state)}"
            )
        calls = state["calls"]
        if not _is_int(calls) or not 0 <= calls < 2**64:
            raise ValueError(
                f"set_state: expected a number of calls from 0 to 2**64 - 1, got {shown(calls)}"
            )
        self._restart(_as_seed("set_state", state["seed"]), int(calls))

    def _restart(self, seed: Any, calls: int) -> None:
        self._state = seed, calls

    def __repr__(self) -> str:
        return f"{type(self).__name__}(seed={self.seed})"

    def _next_call(self) -> tuple[int, int]:
        """Return the seed and the number of this call."""
        if batching.get() is not None:
            raise RuntimeError(
                "vmap: random numbers are drawn in the function: draw them before, and pass them as"
                " an argument with an axis of the batch, or with in_axes=None for the same numbers"
            )
        state = self._state
        seed, call = state
        if (draws := _draws.get()) is not None:
            draws.setdefault(self, state)
        self._state = after = seed, call + 1
        return (
            state if (recorder := active_recorder()) is None else recorder.draw(self, state, after)
        )

    def _uniform(
        self,
        shape: tuple[int, ...],
        kind: np.dtype,
        scale: float,
        low: float,
        device: str | Device | None,
        grad: bool,
    ) -> Tensor:
        chosen = _target_device(device)
        with chosen.active():
            width, count = (32 if kind == float32 else 64), math.prod(shape)
            seed, call = self._next_call()
            raw = run_array_code(
                chosen, variates.drawn_uniform, seed, call, width, count, kind, scale, low, shape
            )
            tensor = from_array(raw, chosen)
        return tensor.requires_grad_() if grad else tensor

    def _normal(
        self,
        shape: tuple[int, ...],
        kind: np.dtype,
        std: float,
        mean: float,
        device: str | Device | None,
        grad: bool,
    ) -> Tensor:
        count = math.prod(shape)

        def make(words: np.ndarray) -> np.ndarray:
            numbers = variates.normal(words, kind)
            numbers = numbers if len(numbers) == count else numbers[:count]
            return numbers if std == 1 and mean == 0 else numbers * std + mean

        tensor = self._from_host(make, count + count % 2, shape, device)
        return tensor.requires_grad_() if grad else tensor

    def _from_host(
        self,
        make: Callable[[np.ndarray], np.ndarray],
        count: int,
        shape: tuple[int, ...],
        device: str | Device | None,
    ) -> Tensor:
        chosen = _target_device(device)
        seed, call = self._next_call()
        return from_array(
            run_array_code(chosen, variates.drawn_on_host, seed, call, make, count, shape), chosen
        )

    def rand(
        self,
        shape: Shape,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Return uniform numbers over [0, 1): see `rand`."""
        size, kind = as_shape("rand", shape), _floating_dtype("rand", dtype)
        return self._uniform(size, kind, 1.0, 0.0, device, requires_grad)

    def randn(
        self,
        shape: Shape,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Return numbers from the standard normal distribution: see `randn`."""
        size, kind = as_shape("randn", shape), _floating_dtype("randn", dtype)
        return self._normal(size, kind, 1.0, 0.0, device, requires_grad)

    def uniform(
        self,
        shape: Shape,
        low: float = 0.0,
        high: float = 1.0,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Return uniform numbers from `low` to `high`: see `uniform`."""
        size, kind = as_shape("uniform", shape), _floating_dtype("uniform", dtype)
        low, high = float(low), float(high)
        if not 0 <= high - low < math.inf:
            raise ValueError(
                f"uniform: expected low <= high, both finite and their difference, got {low} and"
                f" {high}"
            )
        return self._uniform(size, kind, high - low, low, device, requires_grad)

    def normal(
        self,
        shape: Shape,
        mean: float = 0.0,
        std: float = 1.0,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Return numbers from a normal distribution: see `normal`."""
        size, kind = as_shape("normal", shape), _floating_dtype("normal", dtype)
        mean, std = float(mean), float(std)
        if not std >= 0:
            raise ValueError(f"normal: expected std >= 0, got {std}")
        return self._normal(size, kind, std, mean, device, requires_grad)

    def exponential(
        self,
        shape: Shape,
        rate: float = 1.0,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Return numbers from an exponential distribution: see `exponential`."""
        size, kind = as_shape("exponential", shape), _floating_dtype("exponential", dtype)

        def make(words: np.ndarray) -> np.ndarray:
            return (variates.exponential(words) / rate).astype(kind)

        tensor = self._from_host(make, math.prod(size), size, device)
        return tensor.requires_grad_() if requires_grad else tensor

    def randint(
        self, low: int, high: int, shape: Shape, *, device: str | Device | None = None
    ) -> Tensor:
        """Return integers from `low` up to `high`, which is excluded: see `randint`."""
        size = as_shape("randint", shape)
        for name, value in (("low", low), ("high", high)):
            if not _is_int(value):
                raise TypeError(f"randint: expected an int for {name}, got {shown(value)}")
        if not -(2**63) <= low < high <= 2**63:
            raise ValueError(
                f"randint: expected low < high, both in the range of int64, got {low} and {high}"
            )
        make = partial(variates.integers, int(low), int(high))
        return self._from_host(make, 2 * math.prod(size), size, device)

    def randperm(self, n: int, *, device: str | Device | None = None) -> Tensor:
        """Return the integers below `n` in random order: see `randperm`."""
        if not _is_int(n) or n < 0:
            raise ValueError(f"randperm: expected a number of integers n >= 0, got {shown(n)}")
        return self._from_host(variates.permutation, int(n), (int(n),), device)

    def multinomial(self, weights: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
        """Return indices drawn with probabilities proportional to weights: see `multinomial`."""
        weights = _checked_weights(weights, num_samples, replacement)
        xp = providers.module("functions")
        rows: Tensor = xp.reshape(weights, (-1, weights.shape[-1]))
        draws = (self._with_replacement if replacement else self._without_replacement)(
            rows, int(num_samples)
        )
        indices: Tensor = xp.reshape(draws, (*weights.shape[:-1], int(num_samples)))
        return indices

    def _with_replacement(self, weights: Tensor, count: int) -> Tensor:
        """Divide the integers up to 2**62 among the elements, and look up random integers.

        Sums of integers are identical on every device, in any order.
        """
        xp, (rows, n) = providers.module("functions"), weights.shape
        bits = 62 - (rows * n).bit_length()
        parts = xp.astype(weights / xp.max(weights, axis=-1, keepdims=True) * 2.0**bits, int64)
        totals = xp.sum(parts, axis=-1, keepdims=True)
        ends = xp.cumulative_sum(xp.reshape(parts, (rows * n,)))
        draws = xp.astype(
            self._uniform((rows, count), float64, 1.0, 0.0, weights.device, False) * totals, int64
        )
        draws = xp.minimum(draws, totals - 1) + xp.reshape(ends, (rows, n))[:, -1:] - totals
        first = xp.arange(rows, dtype=int64, device=weights.device)[:, None] * n
        drawn: Tensor = xp.searchsorted(ends, draws, side="right") - first
        return drawn

    def _without_replacement(self, weights: Tensor, count: int) -> Tensor:
        """Draw an exponential waiting time for each element, and take the first ones.

        P. S. Efraimidis, P. G. Spirakis, "Weighted random sampling with a reservoir", Information
        Processing Letters 97, 2006.
        """
        xp, some = providers.module("functions"), weights > 0
        times = self._from_host(variates.exponential, weights.size, weights.shape, weights.device)
        # Weights are taken relative to the largest, and as at least 2**-1000: all times are then
        # finite, and before the infinite times of zero weights.
        relative = xp.maximum(weights / xp.max(weights, axis=-1, keepdims=True), 2.0**-1000)
        times = xp.where(some, times / relative, math.inf)
        first: Tensor = xp.argsort(times, axis=-1)[:, :count]
        return first


#: The generators that are drawn from within `replaying`, and their states before that.
_draws: ContextVar[dict[Generator, tuple[int, int]] | None] = ContextVar(
    "xgrad_random_draws", default=None
)


@contextmanager
def replaying(
    states: dict[Generator, tuple[int, int]] | None = None,
) -> Iterator[dict[Generator, tuple[int, int]]]:
    """Collect the states of generators before they are drawn from.

    Given `states` that were collected before, draw the same numbers again. The generators then
    continue afterwards as if they had not been drawn from.
    """
    before = {generator: generator._state for generator in states or ()}
    draws: dict[Generator, tuple[int, int]] = {}
    outer = _draws.get()
    try:
        _draws.set(draws)
        for generator, state in (states or {}).items():
            generator._state = state
        yield draws
    finally:
        _draws.set(outer)
        for generator, state in before.items():
            generator._state = state
        if outer is not None and states is None:
            outer.update(draws | outer)


context_state: ContextVar[tuple[int, int] | None] = ContextVar("xgrad_random_state", default=None)


class _Stream:
    """The stream of a context.

    Copies of the context share it until they draw: then each starts its own stream.

    A token of a context variable tells whether the stream belongs to this context: only the context
    that made the token can reset it.
    """

    __slots__ = ("_copies", "_token")
    _probe: ClassVar[ContextVar[None]] = ContextVar("xgrad_random_probe", default=None)

    def __init__(self) -> None:
        self._token, self._copies = self._probe.set(None), itertools.count()

    def is_of_this_context(self) -> bool:
        token = self._probe.set(None)
        try:
            self._probe.reset(self._token)
        except ValueError:  # another context made the token
            return False
        except RuntimeError:  # already reset: an interrupt came before `_token` was replaced
            pass
        self._token = token
        return True

    def copied_seed(self, seed: int) -> int:
        """Return the seed of the next copy that draws.

        It consists of random bits from calls that the stream itself does not reach.
        """
        return int(philox.words(seed, 2**64 - 1 - next(self._copies), 1)[0])


_stream: ContextVar[_Stream | None] = ContextVar("xgrad_random_stream", default=None)


class ContextGenerator(Generator):
    """The generator of the current thread or task.

    Its state is a value in a context variable, not an object: a task starts with a copy of the
    context, and would share the object.
    """

    __slots__ = ()

    def __init__(self) -> None:
        pass

    @property
    def _state(self) -> tuple[int, int]:
        state, stream = context_state.get(), _stream.get()
        if state is None or stream is None:
            self._restart(*(state or _fresh_state()))
        elif not stream.is_of_this_context():
            self._restart(stream.copied_seed(state[0]), 0)
        else:
            return state
        return context_state.get()  # type: ignore[return-value]

    @_state.setter
    def _state(self, state: tuple[int, int]) -> None:
        context_state.set(state)

    def _restart(self, seed: Any, calls: int) -> None:
        _stream.set(_Stream())
        context_state.set((seed, calls))

    def __reduce__(self) -> str:
        return "default_generator"


default_generator = ContextGenerator()
"""The generator that functions without a `generator` use, with a state for each thread or task."""


def manual_seed(seed: int) -> Generator:
    """Seed the generator of this thread or task, and return it.

    Equal seeds give the same bits on every device. A thread that has not called this function has a
    seed from the operating system. A task, and anything else that runs in a copy of this context,
    draws from its own stream, which depends on the seed and on how many other copies of the context
    have drawn before. Draws from other streams do not affect it.

    Parameters
    ----------
    seed : int
        An int from 0 to 2**64 - 1.

    Returns
    -------
    Generator
        The default generator, which uses the stream of the current thread or task.

    Raises
    ------
    TypeError
        If the seed is not an int.
    ValueError
        If the seed is out of range.

    Examples
    --------
    >>> import xgrad
    >>> _ = xgrad.manual_seed(7)
    >>> first = xgrad.random.rand(3)
    >>> _ = xgrad.manual_seed(7)
    >>> bool(xgrad.all(first == xgrad.random.rand(3)))
    True
    """
    default_generator._restart(_as_seed("manual_seed", seed), 0)
    return default_generator


def get_state() -> dict[str, int]:
    """Return the state of the generator of this thread or task.

    There is one state for all devices, since equal seeds give the same bits on each.

    Returns
    -------
    dict
        ``"seed"``, and ``"calls"``: the number of calls so far that drew numbers.

    Examples
    --------
    >>> import xgrad
    >>> _ = xgrad.manual_seed(7)
    >>> first = xgrad.random.rand(3)
    >>> xgrad.random.get_state()
    {'seed': 7, 'calls': 1}
    """
    return default_generator.get_state()


def set_state(state: Mapping[str, int]) -> None:
    """Continue the generator of this thread or task from a result of `get_state`, on any device.

    Parameters
    ----------
    state : mapping
        From the function `get_state`, or from `Generator.get_state`.

    Raises
    ------
    TypeError
        If it is not a mapping of this form, or the seed is not an int.
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import xgrad
    >>> state = xgrad.random.get_state()
    >>> first = xgrad.random.rand(3)
    >>> xgrad.random.set_state(state)
    >>> bool(xgrad.all(first == xgrad.random.rand(3)))
    True
    """
    default_generator.set_state(state)


def _refuse_trace(name: str) -> None:
    refuse(f"{name}: the state of a generator is read or set in the step: do it before or after")


def _checked_weights(values: Any, num_samples: Any, replacement: bool) -> Tensor:
    """Return the weights of `multinomial`, checked, as float64 and without a graph."""
    weights = as_tensor("multinomial", "weights", values).detach()
    if weights.dtype.kind == "c":
        raise TypeError(f"multinomial: expected real numbers for weights, got {weights.dtype}")
    if not _is_int(num_samples):
        raise TypeError(f"multinomial: expected an int for num_samples, got {shown(num_samples)}")
    if weights.ndim not in (1, 2) or not weights.size:
        raise ValueError(
            f"multinomial: expected weights of shape (n,) or (rows, n), got shape {weights.shape}"
        )
    if num_samples < 0 or (num_samples > weights.shape[-1] and not replacement):
        most = (
            "on"
            if replacement
            else f"to {weights.shape[-1]}, as there are weights and no replacement"
        )
        raise ValueError(f"multinomial: expected num_samples from 0 {most}, got {num_samples}")
    xp = providers.module("functions")
    exact: Tensor = xp.astype(weights, float64)
    backend, check = exact.device.backend, xp.isfinite(exact) & (exact >= 0)
    if not backend.asynchronous:
        if not check_true(exact.device, xp.all(check)._data):
            raise ValueError("multinomial: expected finite weights of at least 0, got others")
        needed = 1 if replacement else max(1, int(num_samples))
        if not check_true(exact.device, xp.all(xp.count_nonzero(exact, axis=-1) >= needed)._data):
            raise ValueError(
                f"multinomial: expected {needed} or more weights above 0 in each row, got fewer"
            )
    return exact


def next_call(name: str, generator: Generator | None) -> tuple[Any, Any]:
    """Return the seed of a generator and the number of its next call.

    By default, this is the generator of this thread or task.
    """
    return generator_of(name, generator)._next_call()


def _target_device(device: str | Device | None) -> Device:
    return current_device() if device is None else Device(device)


def generator_of(name: str, generator: Generator | None) -> Generator:
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{name}: expected an xgrad.random.Generator, got {type(generator).__name__}: make one"
            " with xgrad.random.Generator(seed)"
        )
    return generator


def _fresh_state() -> tuple[int, int]:
    return int.from_bytes(os.urandom(8)), 0


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _as_seed(name: str, seed: Any) -> Any:
    if not _is_int(seed):
        raise TypeError(f"{name}: expected an int as the seed, got {shown(seed)}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"{name}: expected a seed from 0 to 2**64 - 1, got {seed}")
    return int(seed)


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of ints of 0 or more; `name` is for errors."""
    lengths = shape if type(shape) is tuple else (shape,) if _is_int(shape) else shape
    if type(lengths) is tuple:
        for n in lengths:
            if type(n) is not int or n < 0:
                break
        else:
            return lengths
    if not isinstance(lengths, (tuple, list)) or not all(map(_is_int, lengths)):
        raise TypeError(
            f"{name}: expected an int or a tuple of ints as the shape, got {shown(shape)}"
        )
    if any(n < 0 for n in lengths):
        raise ValueError(f"{name}: expected a shape without negative lengths, got {shown(shape)}")
    return tuple(map(int, lengths))


def _floating_dtype(name: str, dtype: Any) -> Any:
    if dtype is None:
        return get_default_dtype()
    try:
        kind = standard(dtype)
    except TypeError:
        kind = int64
    if kind not in (float32, float64):
        got = dtype if isinstance(dtype, str) else shown(dtype)
        raise TypeError(f"{name}: expected a dtype of xgrad.float32 or xgrad.float64, got {got}")
    return kind
