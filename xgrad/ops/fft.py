"""Discrete Fourier transforms: linear maps, whose derivative rules are their transposes.

A transform multiplies by a symmetric matrix, after its input was cut or filled up with zeros: so its transpose is the
same transform, after which comes what cuts where zeros were added. Those of real numbers to half a spectrum are the
first part of a whole one. Those from half a spectrum are linear in real and imaginary parts alone, and so the rules
are in PyTorch's convention themselves (`Function`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.core.dtypes import FLOATING, get_default_dtype, standard
from xgrad.core.function import Function
from xgrad.core.op import Rule
from xgrad.core.tensor import Tensor
from xgrad.ops.conversion import asarray
from xgrad.ops.declare import call_op, derivative, make_callable
from xgrad.support.hints import shown

_DOC = """{summary}

Parameters
----------
x : Tensor
    {input}, with at least one axis.
{options}
norm : {{"backward", "ortho", "forward"}}, default "backward"
    What is scaled by 1/n, n being the number of points: the transforms with a positive exponent, both by the root
    of it, or those with a negative one.

Returns
-------
Tensor
    {output}; from float32 or complex64 numbers of the same precision.

Raises
------
ValueError
    If an axis does not exist or is named twice, a length is not positive, or `norm` is none of the above.
{raises}
Notes
-----
Differentiable to any order. Python array API standard, Fourier transform functions: ``{name}``.

Examples
--------
>>> from xgrad import asarray, fft
>>> fft.{name}(asarray({given}))
Tensor({value}{dtype})
"""
_ONE = """n : int, optional
    {length}; the input is cut or filled up with zeros. By default {default}.
axis : int, default -1
    Along what to transform."""
_MANY = """s : sequence of int, optional
    {length}, for each of the axes; the input is cut or filled up with zeros, and -1 leaves
    a length as it is. By default {default}.
axes : sequence of int, optional
    Along what to transform, the last of them first; by default all, or the last ``len(s)``."""
_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
_COMPLEX, _REAL = "Complex; real numbers count as such", "Real; integers count as float32"
_HALF = "Complex, half a spectrum: what is not there is the conjugate of what is; real numbers count as complex"


def _lengths(shape: Sequence[int], s: Sequence[int] | None, axes: Sequence[int] | None) -> dict[int, int]:
    """Return by axis, counted from the front, how many points are transformed; the input's own where `s` says -1."""
    if axes is None:
        if s is not None and len(s) > len(shape):
            raise ValueError(
                f"expected as many lengths in s as the input has axes, {len(shape)}, or less, got {tuple(s)}"
            )
        axes = range(len(shape) - (len(shape) if s is None else len(s)), len(shape))
    if s is not None and len(s) != len(axes):
        raise ValueError(f"expected as many lengths in s as axes, got {tuple(s)} for {tuple(axes)}")
    if any(not -len(shape) <= a < len(shape) for a in axes):
        raise ValueError(f"expected axes of an input with {len(shape)}, got {tuple(axes)}")
    front = [a % len(shape) for a in axes]
    if len(set(front)) < len(front):
        raise ValueError(f"expected different axes, got {tuple(axes)}")
    sizes = [shape[a] for a in front] if s is None else s
    return {a: shape[a] if n == -1 else n for a, n in zip(front, sizes, strict=True)}


def _resize(xp: Any, x: Any, shape: Sequence[int], axes: Iterable[int]) -> Any:
    """Cut axes of `x`, or fill them up with zeros, to their lengths in `shape`: the transpose of itself."""
    for axis in axes:
        axis, have, want = axis % len(shape), x.shape[axis], shape[axis]
        if want < have:
            x = x[(slice(None),) * axis + (slice(0, want), ...)]
        elif want > have:
            missing = (*x.shape[:axis], want - have, *x.shape[axis + 1 :])
            x = xp.concat([x, xp.zeros(missing, dtype=x.dtype, device=x.device)], axis=axis)
    return x


def _twice(xp: Any, spectrum: Any, n: int, axis: int) -> Any:
    """Double what counts twice of half a spectrum of `n` points: all but the first, and the middle if there is one."""
    k = xp.arange(spectrum.shape[axis], device=spectrum.device)
    k = xp.reshape(k, (-1,) + (1,) * (len(spectrum.shape) - 1 - axis % len(spectrum.shape)))
    return xp.where((k == 0) | (2 * k == n), spectrum, 2 * spectrum)


# The rules. They call the ops, not the namespace, for the sake of arrays without elements.


def _fft(g: Any, xp: Any, x_shape: Any, axis: int, norm: str) -> Any:
    return _resize(xp, call_op(fft, xp, g, axis=axis, norm=norm), x_shape, (axis,))


def _ifft(g: Any, xp: Any, x_shape: Any, axis: int, norm: str) -> Any:
    return _resize(xp, call_op(ifft, xp, g, axis=axis, norm=norm), x_shape, (axis,))


def _rfft(g: Any, xp: Any, x_shape: Any, n: int | None, axis: int, norm: str) -> Any:
    g = call_op(fft, xp, g, n=x_shape[axis] if n is None else n, axis=axis, norm=norm)  # the other half being zeros
    return _resize(xp, g, x_shape, (axis,))


def _ihfft(g: Any, xp: Any, x_shape: Any, n: int | None, axis: int, norm: str) -> Any:
    g = call_op(ifft, xp, g, n=x_shape[axis] if n is None else n, axis=axis, norm=norm)
    return _resize(xp, g, x_shape, (axis,))


def _irfft(g: Any, xp: Any, x_shape: Any, axis: int, norm: str) -> Any:
    half = _twice(xp, call_op(rfft, xp, g, axis=axis, norm=_OPPOSITE[norm]), g.shape[axis], axis)
    return _resize(xp, half, x_shape, (axis,))


def _hfft(g: Any, xp: Any, x_shape: Any, axis: int, norm: str) -> Any:
    half = _twice(xp, call_op(ihfft, xp, g, axis=axis, norm=_OPPOSITE[norm]), g.shape[axis], axis)
    return _resize(xp, half, x_shape, (axis,))


def _fftn(g: Any, xp: Any, x_shape: Any, s: Any, axes: Any, norm: str) -> Any:
    lengths = _lengths(x_shape, s, axes)
    return _resize(xp, call_op(fftn, xp, g, axes=tuple(lengths), norm=norm), x_shape, lengths)


def _ifftn(g: Any, xp: Any, x_shape: Any, s: Any, axes: Any, norm: str) -> Any:
    lengths = _lengths(x_shape, s, axes)
    return _resize(xp, call_op(ifftn, xp, g, axes=tuple(lengths), norm=norm), x_shape, lengths)


def _rfftn(g: Any, xp: Any, x_shape: Any, s: Any, axes: Any, norm: str) -> Any:
    lengths = _lengths(x_shape, s, axes)
    g = call_op(fftn, xp, g, s=tuple(lengths.values()), axes=tuple(lengths), norm=norm)
    return _resize(xp, g, x_shape, lengths)


def _irfftn(g: Any, xp: Any, x_shape: Any, s: Any, axes: Any, norm: str) -> Any:
    lengths = _lengths(x_shape, s, axes)
    last = tuple(lengths)[-1]
    half = call_op(rfftn, xp, g, axes=tuple(lengths), norm=_OPPOSITE[norm])
    return _resize(xp, _twice(xp, half, g.shape[last], last), x_shape, lengths)


def _check(norm: str, lengths: dict[int, int]) -> None:
    if norm not in _OPPOSITE:
        raise ValueError(f"expected a norm of 'backward', 'ortho' or 'forward', got {shown(norm)}")
    if any(n < 1 for n in lengths.values()):
        raise ValueError(f"expected at least one point along each axis, got {tuple(lengths.values())}")


_OF_REALS = ("rfft", "rfftn", "ihfft")
_OF_HALVES = ("irfft", "irfftn", "hfft")  # from the length of half a spectrum, that of the whole does not follow


def _prepared(xp: Any, x: Any, name: str) -> Any:
    """Return the input as a transform wants it."""
    if xp.isdtype(x.dtype, "complex floating"):
        if name in _OF_REALS:
            raise TypeError(f"expected real numbers, got {x.dtype}: use {'ifft' if name == 'ihfft' else name[1:]}")
        return x
    return x if name in _OF_REALS else x + 0j


def _of_nothing(xp: Any, x: Any, name: str, lengths: dict[int, int]) -> Any:
    """Return the transform of no elements, which PyTorch and CuPy refuse to make."""
    shape = [lengths.get(a, m) for a, m in enumerate(x.shape)]
    if name in _OF_REALS:
        last = tuple(lengths)[-1]
        shape[last] = lengths[last] // 2 + 1
    zeros = xp.zeros(tuple(shape), dtype=x.dtype, device=x.device)
    return zeros + 0j if name in _OF_REALS else xp.real(zeros) if name in _OF_HALVES else zeros


def _along_one(name: str, rule: Rule, **words: str) -> Callable[..., Tensor]:
    """Declare a transform along one axis."""

    def forward(xp: Any, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        ((only_axis, length),) = _lengths(x.shape, None, (axis,)).items()
        points = n if n is not None else 2 * (length - 1) if name in _OF_HALVES else length
        _check(norm, {only_axis: points})
        x = _prepared(xp, x, name)
        if 0 in x.shape:
            return _of_nothing(xp, x, name, {only_axis: points})
        return getattr(xp.fft, name)(x, n=points, axis=axis, norm=norm)

    return _declared(name, forward, rule, _ONE, words)


def _along_many(name: str, rule: Rule, **words: str) -> Callable[..., Tensor]:
    """Declare a transform along several axes."""

    def forward(
        xp: Any,
        x: Any,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Any:
        lengths = _lengths(x.shape, s, axes)
        if not lengths and name in _OF_REALS + _OF_HALVES:
            raise ValueError("expected at least one axis to transform along, got none")
        if name in _OF_HALVES and (s is None or s[-1] == -1):
            last = tuple(lengths)[-1]
            lengths[last] = 2 * (x.shape[last] - 1)
        _check(norm, lengths)
        x = _prepared(xp, x, name)
        if 0 in x.shape:
            return _of_nothing(xp, x, name, lengths)
        return getattr(xp.fft, name)(x, s=tuple(lengths.values()), axes=tuple(lengths), norm=norm)

    return _declared(name, forward, rule, _MANY, words)


def _declared(
    name: str, forward: Callable[..., Any], rule: Rule, options: str, words: dict[str, str]
) -> Callable[..., Tensor]:
    function = Function.of(name, forward, (rule,), lowest=FLOATING, holomorphic=name not in _OF_HALVES)
    given, _, value = words["example"].partition(" -> ")
    result = "2 * (m - 1) from m numbers" if name in _OF_HALVES else "that of the input"
    length = "How many numbers the result has" if name in _OF_HALVES else "How many numbers to transform"
    doc = _DOC.format(
        name=name,
        summary=words["doc"],
        input=_HALF if name in _OF_HALVES else _REAL if name in _OF_REALS else _COMPLEX,
        options=options.format(
            length=length, default=result + (", along the last axis" if "s :" in options and name in _OF_HALVES else "")
        ),
        output=words["output"],
        given=given,
        raises="TypeError\n    If `x` is complex.\n" if name in _OF_REALS else "",
        value=value,
        dtype=", dtype=complex64" if "j" in value else "",
    )
    return make_callable(function, doc, "xgrad.fft")


_SAME = "Complex, of the shape of `x` but for lengths that are given"
_REALS = "Real, of the shape of `x` but for the length along the last of the axes, and lengths that are given"
_HALVES = "Complex, of the shape of `x` but for lengths that are given, and n // 2 + 1 along the last of the axes"

# fmt: off
fft = _along_one("fft", _fft, output=_SAME,
    doc="Return the discrete Fourier transform.", example="[1.0, 0.0, 0.0] -> [1.+0.j, 1.+0.j, 1.+0.j]")
ifft = _along_one("ifft", _ifft, output=_SAME,
    doc="Return the inverse of `fft`.", example="[3.0, 0.0, 0.0] -> [1.+0.j, 1.+0.j, 1.+0.j]")
fftn = _along_many("fftn", _fftn, output=_SAME,
    doc="Return the discrete Fourier transform along several axes.", example="[[1.0, 1.0]] -> [[2.+0.j, 0.+0.j]]")
ifftn = _along_many("ifftn", _ifftn, output=_SAME,
    doc="Return the inverse of `fftn`.", example="[[2.0, 0.0]] -> [[1.+0.j, 1.+0.j]]")
rfft = _along_one("rfft", _rfft, output=_HALVES,
    doc="Return the first half of the discrete Fourier transform of real numbers.",
    example="[1.0, 0.0, 0.0] -> [1.+0.j, 1.+0.j]")
irfft = _along_one("irfft", _irfft, output=_REALS,
    doc="Return the inverse of `rfft`.", example="[2.0, 0.0] -> [1., 1.]")
rfftn = _along_many("rfftn", _rfftn, output=_HALVES,
    doc="Return the first half of the discrete Fourier transform of real numbers along several axes.",
    example="[[1.0, 1.0]] -> [[2.+0.j, 0.+0.j]]")
irfftn = _along_many("irfftn", _irfftn, output=_REALS,
    doc="Return the inverse of `rfftn`.", example="[[2.0, 0.0]] -> [[1., 1.]]")
hfft = _along_one("hfft", _hfft, output=_REALS,
    doc="Return the discrete Fourier transform, which is real, of half a signal.", example="[1.0, 0.0] -> [1., 1.]")
ihfft = _along_one("ihfft", _ihfft, output=_HALVES,
    doc="Return the inverse of `hfft`.", example="[2.0, 0.0] -> [1.-0.j, 1.-0.j]")
# fmt: on


@derivative(lambda g, xp, axes: xp.fft.ifftshift(g, axes=axes))
def fftshift(xp: Any, x: Any, /, *, axes: int | Sequence[int] | None = None) -> Any:
    """Move the frequency 0 from the front to the middle.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axes : int or sequence of int, optional
        Along what; by default all.

    Returns
    -------
    Tensor
        Of the same shape and dtype.

    Notes
    -----
    Differentiable to any order. Python array API standard, Fourier transform functions: ``fftshift``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.fftshift(asarray([0.0, 1.0, -2.0, -1.0]))
    Tensor([-2., -1.,  0.,  1.])
    """
    return xp.fft.fftshift(x, axes=axes)


@derivative(lambda g, xp, axes: xp.fft.fftshift(g, axes=axes))
def ifftshift(xp: Any, x: Any, /, *, axes: int | Sequence[int] | None = None) -> Any:
    """Move the frequency 0 back from the middle to the front: the inverse of `fftshift`.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axes : int or sequence of int, optional
        Along what; by default all.

    Returns
    -------
    Tensor
        Of the same shape and dtype.

    Notes
    -----
    Differentiable to any order. Python array API standard, Fourier transform functions: ``ifftshift``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.ifftshift(asarray([-2.0, -1.0, 0.0, 1.0]))
    Tensor([ 0.,  1., -2., -1.])
    """
    return xp.fft.ifftshift(x, axes=axes)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """Return the frequencies of `fft`: those from 0 on first, then the negative ones.

    Parameters
    ----------
    n : int
        The number of points.
    d : float, default 1
        The distance of two points, so that frequencies are in cycles for each unit of it.
    dtype : dtype, optional
        A real floating one; by default float32, the default dtype.
    device : str or Device, optional
        By default the `default_device`.

    Returns
    -------
    Tensor
        Of shape (n,); the same numbers on every device.

    Raises
    ------
    ValueError
        If `n` is not positive.
    TypeError
        If `dtype` is not real and floating.

    Notes
    -----
    Python array API standard, Fourier transform functions: ``fftfreq``.

    Examples
    --------
    >>> from xgrad import fft
    >>> fft.fftfreq(4)
    Tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies("fftfreq", np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | Device | None = None) -> Tensor:
    """Return the frequencies of `rfft`.

    Parameters
    ----------
    n : int
        The number of points.
    d : float, default 1
        The distance of two points, so that frequencies are in cycles for each unit of it.
    dtype : dtype, optional
        A real floating one; by default float32, the default dtype.
    device : str or Device, optional
        By default the `default_device`.

    Returns
    -------
    Tensor
        Of shape (n // 2 + 1,); the same numbers on every device.

    Raises
    ------
    ValueError
        If `n` is not positive.
    TypeError
        If `dtype` is not real and floating.

    Notes
    -----
    Python array API standard, Fourier transform functions: ``rfftfreq``.

    Examples
    --------
    >>> from xgrad import fft
    >>> fft.rfftfreq(4)
    Tensor([0.  , 0.25, 0.5 ])
    """
    return _frequencies("rfftfreq", np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(
    name: str, function: Callable[[int, float], Any], n: int, d: float, dtype: Any, device: str | Device | None
) -> Tensor:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"{name}: expected an int for n, got {shown(n)}")
    if n < 1:
        raise ValueError(f"{name}: expected a positive n, got {n}")
    if dtype is not None and standard(dtype).kind != "f":
        raise TypeError(f"{name}: expected a real floating dtype, got {dtype}")
    return asarray(function(int(n), d), dtype=get_default_dtype() if dtype is None else dtype, device=device)
