"""Kernels of layers on `cuda`, compared with formulas that NumPy computes in float64.

Sizes are at the boundaries of warps, blocks and chunks, and layouts are all that tensors may have.
They run on CUDA emulated on the host, or on a GPU.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import xgrad
from xgrad import nn
from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.ops import convolution as convolution_rules
from xgrad.ops import pooling as pooling_rules
from xgrad.ops.dropout import dropout_mask
from xgrad.ops.windows import Window

F = nn.functional
DTYPES = ["float32", "float64"]
Arrays = list[np.ndarray]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape)


def _contiguous(cp: Any, x: Any) -> Any:
    return x


def _transposed(cp: Any, x: Any) -> Any:
    return cp.asfortranarray(x)


def _with_gaps(cp: Any, x: Any) -> Any:
    wide = cp.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), x.dtype)
    wide[..., 1::2] = x
    return wide[..., 1::2]


def _reversed(cp: Any, x: Any) -> Any:
    return cp.flip(cp.ascontiguousarray(cp.flip(x)))


def _unaligned(cp: Any, x: Any) -> Any:
    """Return an array that begins one element after the start of a block of memory."""
    flat = cp.empty(x.size + 1, x.dtype)[1:].reshape(x.shape)
    flat[...] = x
    return flat


LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "with gaps": _with_gaps,
    "reversed": _reversed,
    "unaligned": _unaligned,
}


def on_cuda(x: np.ndarray, dtype: str, layout: str = "contiguous") -> Any:
    """Return a tensor on `cuda` of a layout."""
    cp: Any = pytest.importorskip("cupy")
    array = cp.asarray(x.astype(dtype))
    array = LAYOUTS[layout](cp, array) if x.ndim else array
    return xgrad.asarray(array, device="cuda", copy=False)


def gradients(
    function: Callable[..., Any],
    inputs: Sequence[np.ndarray],
    g: np.ndarray,
    dtype: str,
    layout: str = "contiguous",
) -> Arrays:
    """Return the result of a function of tensors, and the gradients of all inputs, given `g`."""
    tensors = [on_cuda(x, dtype, layout).requires_grad_() for x in inputs]
    out = function(*tensors)
    out.backward(on_cuda(g, dtype, layout))
    return [out.detach().cpu().numpy(), *[x.grad.cpu().numpy() for x in tensors]]


def assert_close(got: Sequence[np.ndarray], expected: Sequence[Any], dtype: str) -> None:
    """Compare results with exact ones, relative to the largest element of each array.

    An array of zeros has errors relative to the largest element of all.
    """
    assert len(got) == len(expected)
    rtol = 400 * np.finfo(dtype).eps
    scale = max(np.max(np.abs(x), initial=0, where=np.isfinite(x)) for x in expected)
    for x, exact in zip(got, expected, strict=True):
        assert x.dtype == dtype and x.shape == np.shape(exact)
        largest = np.max(np.abs(exact), initial=0.01 * scale, where=np.isfinite(exact))
        np.testing.assert_allclose(x, exact, rtol=rtol, atol=rtol * largest)


def sum_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over the axes along which an array of a shape was broadcast."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    axes = tuple([i for i, n in enumerate(shape) if n == 1])
    return x.sum(axis=axes, keepdims=True)


# Normalization


def normalized(
    x: np.ndarray,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    g: np.ndarray,
    axes: tuple[int, ...],
    eps: float = 1e-5,
    centered: bool = True,
) -> Arrays:
    """Return the normalized values, and the gradients of the input and of what is given."""
    mean = partial(np.mean, axis=axes, keepdims=True)
    distances = x - mean(x) if centered else x
    scale = 1 / np.sqrt(mean(distances * distances) + eps)
    standardized = distances * scale
    out = standardized if weight is None else standardized * weight
    slopes = g if weight is None else g * weight
    dx = slopes - standardized * mean(slopes * standardized)
    result = [out if bias is None else out + bias, scale * (dx - mean(slopes) * centered)]
    if weight is not None:
        result.append(sum_to(g * standardized, weight.shape))
    if bias is not None:
        result.append(sum_to(g, bias.shape))
    return result


class Norm(NamedTuple):
    """A normalization of an input of a shape, with a weight and a bias.

    The formula sees the input with the shape `seen`, the parameters with the shape `broadcast`, and
    takes the statistics over `axes`.
    """

    function: Callable[..., Any]
    parameters: tuple[int, ...]
    seen: tuple[int, ...]
    broadcast: tuple[int, ...]
    axes: tuple[int, ...]
    centered: bool = True


def layer_norm(shape: tuple[int, ...], eps: float, last: int = 1) -> Norm:
    own, axes = shape[-last:], tuple(range(len(shape) - last, len(shape)))
    return Norm(lambda x, w, b: F.layer_norm(x, own, w, b, eps), own, shape, own, axes)


def rms_norm(shape: tuple[int, ...], eps: float) -> Norm:
    own, last = shape[-1:], (len(shape) - 1,)
    return Norm(lambda x, w, b: F.rms_norm(x, own, w, eps), own, shape, own, last, False)


def group_norm(shape: tuple[int, ...], eps: float, groups: int = 1) -> Norm:
    n, channels, *rest = shape
    each = channels // groups
    return Norm(
        lambda x, w, b: F.group_norm(x, groups, w, b, eps),
        (channels,),
        (n, groups, each, math.prod(rest)),
        (groups, each, 1),
        (2, 3),
    )


def instance_norm(shape: tuple[int, ...], eps: float) -> Norm:
    own = group_norm(shape, eps, groups=shape[1])
    return own._replace(
        function=lambda x, w, b: F.instance_norm(x, None, None, weight=w, bias=b, eps=eps)
    )


def batch_norm(shape: tuple[int, ...], eps: float) -> Norm:
    n, channels, *rest = shape
    return Norm(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=eps),
        (channels,),
        (n, channels, math.prod(rest)),
        (channels, 1),
        (0, 2),
    )


def check_norm(
    make: Callable[..., Norm],
    shape: tuple[int, ...],
    given: str,
    dtype: str,
    layout: str = "contiguous",
    eps: float = 1e-5,
) -> None:
    """Compare a normalization and its gradients; `given` names the parameters, by "w" and "b"."""
    norm = make(shape, eps)
    x, g = 3 + 2 * normal(*shape), normal(*shape, seed=1)
    parameters = {name: 1 + normal(*norm.parameters, seed=ord(name)) for name in given}

    def function(x: Any, *tensors: Any) -> Any:
        named = dict(zip(given, tensors, strict=True))
        return norm.function(x, named.get("w"), named.get("b"))

    got = gradients(function, [x, *parameters.values()], g, dtype, layout)
    full = [parameters[n].reshape(norm.broadcast) if n in parameters else None for n in "wb"]
    seen = x.reshape(norm.seen), *full, g.reshape(norm.seen)
    exact = normalized(*seen, norm.axes, eps, norm.centered)
    assert_close(got, [x.reshape(y.shape) for x, y in zip(exact, got, strict=True)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 1023, 1024, 1025, 2500])
@pytest.mark.parametrize("make", [layer_norm, rms_norm])
def test_norm_of_rows_of_any_length(
    make: Callable[..., Norm], length: int, dtype: str, cuda: Device
) -> None:
    eps = 0.5 if length < 3 else 1e-5  # the variance of one element is 0, of two it may be small
    for rows in (1, 9):
        check_norm(make, (rows, length), "wb" if make is layer_norm else "w", dtype, eps=eps)


@pytest.mark.parametrize("given", ["", "w", "b", "wb"])
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (layer_norm, (3, 5, 7)),
        (partial(layer_norm, last=2), (3, 5, 7)),
        (layer_norm, (300, 7)),
        (layer_norm, (1, 1)),
        (group_norm, (3, 6, 5)),
        (partial(group_norm, groups=2), (3, 6, 5, 4)),
        (partial(group_norm, groups=6), (3, 6, 33)),
        (partial(group_norm, groups=3), (1, 6, 700)),
        (partial(group_norm, groups=3), (2, 3)),
        (instance_norm, (2, 3, 5, 7)),
        (instance_norm, (1, 1, 1500)),
        (batch_norm, (9, 4)),
        (batch_norm, (3, 4, 7)),
        (batch_norm, (3, 4, 1, 1)),
        (batch_norm, (1, 4, 5, 7)),
        (batch_norm, (2, 1, 33, 1)),
    ],
)
def test_norm_with_and_without_parameters(
    make: Callable[..., Norm], shape: tuple[int, ...], given: str, cuda: Device
) -> None:
    check_norm(make, shape, given, "float64", eps=0.1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [255, 256, 257, 2047, 2048, 4095, 4096, 4097, 9000])
def test_batch_norm_at_the_boundaries_of_chunks(rows: int, dtype: str, cuda: Device) -> None:
    check_norm(batch_norm, (rows, 3), "wb", dtype)
    check_norm(batch_norm, (2, 3, rows), "wb", dtype)


@pytest.mark.parametrize("groups", [1, 31, 32, 33, 65])
def test_batch_norm_of_any_number_of_channels(groups: int, cuda: Device) -> None:
    check_norm(batch_norm, (600, groups), "wb", "float64")
    check_norm(batch_norm, (3, groups, 50), "wb", "float64")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", [layer_norm, rms_norm, group_norm, instance_norm, batch_norm])
def test_norm_of_any_layout(make: Callable[..., Norm], layout: str, cuda: Device) -> None:
    check_norm(make, (4, 6, 8), "w" if make is rms_norm else "wb", "float64", layout)


def test_norm_of_few_huge_rows(cuda: Device) -> None:
    for make, given in ((layer_norm, "wb"), (rms_norm, "w"), (instance_norm, "")):
        check_norm(make, (2, 1, 70_000), given, "float64")


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("length", [5, 1500])
@pytest.mark.parametrize("eps", [0.0, 1e-5])
def test_norm_of_special_rows_is_that_of_the_formula(length: int, eps: float, cuda: Device) -> None:
    x, g = normal(6, length), normal(6, length, seed=1)
    x[0] = 7.0  # without variance
    x[1, 2], x[2, 1], x[3, -1], x[4] = np.nan, np.inf, -np.inf, np.inf
    for make in (layer_norm, rms_norm):
        norm = make((6, length), eps)
        got = gradients(lambda x, norm=norm: norm.function(x, None, None), [x], g, "float64")
        exact = normalized(x, None, None, g, (1,), eps, norm.centered)
        assert np.isfinite(got[0][5]).all()
        assert_close(got, exact, "float64")


@pytest.mark.parametrize("make", [layer_norm, rms_norm, group_norm, instance_norm, batch_norm])
def test_second_derivative_of_a_norm_is_the_slope_of_its_gradient(
    make: Callable[..., Norm], cuda: Device
) -> None:
    norm, g = make((3, 2, 5), 0.1), normal(3, 2, 5, seed=1)
    given = [1 + normal(*norm.parameters, seed=2), normal(*norm.parameters, seed=3)]
    inputs = [normal(3, 2, 5), *given[: 1 if make is rms_norm else 2]]

    def gradient(*inputs: np.ndarray) -> np.ndarray:
        x, *rest = inputs
        full = [p.reshape(norm.broadcast) for p in (*rest, np.zeros(norm.parameters))[:2]]
        seen = x.reshape(norm.seen), *full, g.reshape(norm.seen)
        return normalized(*seen, norm.axes, 0.1, norm.centered)[1].reshape(x.shape)

    check_second(lambda x, w, b=None: norm.function(x, w, b), gradient, inputs, g)


def check_second(
    function: Callable[..., Any],
    gradient: Callable[..., np.ndarray],
    inputs: Arrays,
    g: np.ndarray,
) -> None:
    """Compare derivatives of the first input's gradient with differences of an exact gradient."""
    tensors = [on_cuda(x, "float64").requires_grad_() for x in inputs]
    out = (function(*tensors) * on_cuda(g, "float64")).sum()
    (first,) = xgrad.autograd.grad(out, tensors[:1], create_graph=True)
    direction = normal(*inputs[0].shape, seed=9)
    found = xgrad.autograd.grad(
        (first * on_cuda(direction, "float64")).sum(), tensors, allow_unused=True
    )
    assert_close([first.detach().cpu().numpy()], [gradient(*inputs)], "float64")
    for i, (x, slopes) in enumerate(zip(inputs, found, strict=True)):
        got = np.zeros(x.shape) if slopes is None else slopes.cpu().numpy()
        exact = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            moved = [[y.copy() for y in inputs] for _ in range(2)]
            moved[0][i][at] += 1e-5
            moved[1][i][at] -= 1e-5
            ahead, behind = [gradient(*each) for each in moved]
            exact[at] = np.sum((ahead - behind) * direction) / 2e-5
        np.testing.assert_allclose(got, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())


# Attention


def attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: np.ndarray | None,
    g: np.ndarray,
    causal: bool = False,
    factors: np.ndarray | float = 1.0,
) -> Arrays:
    """Return attention and its gradients, where `factors` multiply the weights."""
    scale = 1 / math.sqrt(query.shape[-1])
    scores = query @ key.swapaxes(-1, -2) * scale
    scores = scores if mask is None else scores + mask
    if causal:
        later = np.arange(key.shape[-2]) > np.arange(query.shape[-2])[:, None]
        scores = np.where(later, -np.inf, scores)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(axis=-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    dropped = weights * factors
    dw = g @ value.swapaxes(-1, -2) * factors
    ds = weights * (dw - (dw * weights).sum(axis=-1, keepdims=True))
    found = [
        dropped @ value,
        sum_to(ds @ key * scale, query.shape),
        sum_to(ds.swapaxes(-1, -2) @ query * scale, key.shape),
        sum_to(dropped.swapaxes(-1, -2) @ g, value.shape),
    ]
    return found if mask is None else [*found, sum_to(ds, mask.shape)]


def check_attention(
    query: tuple[int, ...],
    key: tuple[int, ...],
    out: int = 3,
    mask: np.ndarray | None = None,
    causal: bool = False,
    dtype: str = "float64",
    layout: str = "contiguous",
    value: tuple[int, ...] = (),
) -> None:
    """Compare attention of queries and keys of some shapes."""
    value = value or (*key[:-1], out)
    inputs = [normal(*shape, seed=i) for i, shape in enumerate((query, key, value))]
    stack = np.broadcast_shapes(query[:-2], key[:-2], value[:-2])
    g = normal(*stack, query[-2], value[-1], seed=7)
    given = [*inputs] if mask is None else [*inputs, mask]

    def function(*tensors: Any) -> Any:
        return F.scaled_dot_product_attention(*tensors, is_causal=causal)

    got = gradients(function, given, g, dtype, layout)
    exact = attention(*inputs, mask, g, causal)
    # unlike assert_close, a masked key has no gradient at all
    assert_close(got, exact, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keys", [1, 2, 31, 32, 33, 1023, 1024, 1025])
def test_attention_to_any_number_of_keys(keys: int, dtype: str, cuda: Device) -> None:
    check_attention((2, 3, 4), (2, keys, 4), mask=normal(3, keys, seed=5), dtype=dtype)
    check_attention((9, 4), (keys, 4), causal=True, dtype=dtype)


@pytest.mark.parametrize("queries", [1, 3, 6, 40])
@pytest.mark.parametrize("keys", [1, 3, 6, 40])
def test_causal_attention_with_other_numbers_of_queries_than_keys(
    queries: int, keys: int, cuda: Device
) -> None:
    check_attention((2, queries, 4), (2, keys, 4), causal=True)


@pytest.mark.parametrize(
    "mask", [(6,), (1,), (5, 6), (5, 1), (1, 6), (3, 1, 6), (3, 5, 6), (2, 1, 5, 6), (2, 3, 1, 1)]
)
def test_mask_of_any_number_of_axes_broadcasts(mask: tuple[int, ...], cuda: Device) -> None:
    check_attention((2, 3, 5, 4), (2, 3, 6, 4), mask=normal(*mask, seed=5))
    check_attention((2, 3, 5, 4), (2, 3, 6, 4), mask=normal(*mask, seed=5), layout="with gaps")


@pytest.mark.parametrize(
    ("query", "key", "value"),
    [
        ((4, 3, 5, 4), (1, 3, 6, 4), (1, 3, 6, 2)),
        ((3, 5, 4), (6, 4), (6, 2)),
        ((5, 4), (3, 6, 4), (3, 6, 2)),
        ((2, 3, 5, 4), (2, 3, 6, 4), (3, 6, 2)),
        ((2, 3, 5, 4), (2, 3, 6, 4), (2, 1, 6, 2)),
        ((3, 5, 4), (3, 6, 4), (2, 3, 6, 2)),  # more stacks of values than of weights
        ((2, 1, 2, 3, 5, 4), (2, 2, 1, 3, 6, 4), (6, 2)),
    ],
)
def test_stacks_of_queries_keys_and_values_broadcast(
    query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], cuda: Device
) -> None:
    check_attention(query, key, value=value)
    check_attention(query, key, value=value, mask=normal(5, 6, seed=5), causal=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_attention_of_any_layout(layout: str, cuda: Device) -> None:
    check_attention((2, 3, 5, 4), (2, 3, 5, 4), 4, layout=layout)
    check_attention((2, 3, 5, 4), (2, 3, 7, 4), mask=normal(2, 3, 5, 7, seed=5), layout=layout)


def test_heads_that_are_views_of_one_product(cuda: Device) -> None:
    x, g = normal(2, 5, 3, 3, 4), normal(2, 3, 5, 4, seed=1)

    def function(x: Any) -> Any:
        heads = xgrad.permute_dims(x, (3, 0, 2, 1, 4))
        return F.scaled_dot_product_attention(*[heads[i, ...] for i in range(3)])

    got = gradients(function, [x], g, "float64")
    out, *exact = attention(*x.transpose(3, 0, 2, 1, 4), None, g)
    assert_close(got, [out, np.stack(exact).transpose(1, 3, 2, 0, 4)], "float64")


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_masked_keys_and_infinite_scores(cuda: Device) -> None:
    inputs = [normal(2, 5, 4), normal(2, 6, 4, seed=1), normal(2, 6, 3, seed=2)]
    mask, g = normal(5, 6, seed=5), normal(2, 5, 3, seed=6)
    mask[0], mask[1, 2:] = -np.inf, -np.inf  # all keys, and some
    mask[2, 3], mask[3, 1] = np.nan, np.inf
    got = gradients(F.scaled_dot_product_attention, [*inputs, mask], g, "float64")
    exact = attention(*inputs, mask, g)
    assert not got[0][:, 0].any() and not got[1][:, 0].any()
    assert_close([got[0], got[1], got[4]], [exact[0], exact[1], exact[4]], "float64")


@pytest.mark.parametrize("as_array", [False, True], ids=["numbers", "arrays"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [1e-9, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 3, 33), (2, 2, 5, 31), (3, 1025)])
def test_dropout_of_attention_has_the_bits_of_the_mask_of_the_generic_rule(
    shape: tuple[int, ...], p: float, dtype: str, as_array: bool, cuda: Device
) -> None:
    """Values that are unit vectors show the weights."""
    cp, kernels, keys = pytest.importorskip("cupy"), cuda.backend.kernels, shape[-1]
    query, key = normal(*shape[:-1], 4), normal(*shape[:-2], keys, 4, seed=1)
    arrays = [cp.asarray(x.astype(dtype)) for x in (query, key)]
    value = cp.broadcast_to(cp.eye(keys, dtype=dtype), (*shape[:-2], keys, keys))
    seed, call = 2**64 - 3, 2**53 + 1
    counters = [cp.asarray(np.uint64(x)) if as_array else x for x in (seed, call)]

    def weights(p: float) -> Any:
        more = False, 0.5, p, *counters, cuda
        return kernels["attention_values"](*arrays, value, None, *more)[0].get()

    host = Device("cpu")
    factors = dropout_mask(host.xp, np.empty(shape, dtype), seed, call, host, p)
    whole, dropped = weights(0.0), weights(p)
    assert (whole * factors).tobytes() == dropped.tobytes()
    g = cp.asarray(normal(*shape[:-1], keys, seed=2).astype(dtype))
    _, saved = kernels["attention_values"](*arrays, value, None, False, 0.5, p, *counters, cuda)
    *_, of_value, _ = kernels["attention_gradient"](
        g, *arrays, value, None, None, saved, False, 0.5, p, *counters, cuda
    )
    exact = (whole.astype("float64") * factors).swapaxes(-1, -2) @ g.get().astype("float64")
    assert_close([of_value.get()], [exact], dtype)


def test_gradients_of_attention_with_dropout(cuda: Device) -> None:
    inputs = [normal(2, 5, 4), normal(2, 40, 4, seed=1), normal(2, 40, 3, seed=2)]
    mask, g, host = normal(5, 40, seed=3), normal(2, 5, 3, seed=4), Device("cpu")
    xgrad.manual_seed(5)
    got = gradients(
        lambda *args: F.scaled_dot_product_attention(*args, dropout_p=0.4),
        [*inputs, mask],
        g,
        "float64",
    )
    xgrad.manual_seed(5)
    ones = xgrad.ones((2, 5, 40), dtype=xgrad.float64)
    factors = F.dropout(ones, 0.4).numpy()  # of the same seed and the same call
    assert host.type == "cpu" and 0 < np.mean(factors == 0) < 1
    assert_close(got, attention(*inputs, mask, g, factors=factors), "float64")


def test_second_derivative_of_attention_is_the_slope_of_its_gradient(cuda: Device) -> None:
    inputs = [normal(3, 4), normal(5, 4, seed=1), normal(5, 2, seed=2), normal(3, 5, seed=3)]
    g = normal(3, 2, seed=4)

    def gradient(query: Any, key: Any, value: Any, mask: Any) -> np.ndarray:
        return attention(query, key, value, mask, g, causal=True)[1]

    def function(*tensors: Any) -> Any:
        return F.scaled_dot_product_attention(*tensors, is_causal=True)

    check_second(function, gradient, inputs, g)


# Convolution


def taps(window: Window) -> list[tuple[Any, ...]]:
    """Return, for each element of a window, the key of its places in the padded input."""
    axes = [
        [slice(d * k, d * k + s * (n - 1) + 1, s) for k in range(length)]
        for length, s, d, n in zip(
            window.kernel, window.stride, window.dilation, window.out, strict=True
        )
    ]
    return [(..., *key) for key in itertools.product(*axes)]


def padded(x: np.ndarray, window: Window, value: float = 0.0) -> np.ndarray:
    return np.pad(x, [(0, 0), (0, 0), *window.padding], constant_values=value)


def without_padding(x: np.ndarray, window: Window) -> np.ndarray:
    pairs = zip(window.padding, window.size, strict=True)
    return x[(..., *[slice(before, before + n) for (before, _), n in pairs])]


def convolved(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, g: np.ndarray, window: Window, groups: int
) -> Arrays:
    """Return a convolution and its gradients, tap by tap and group by group."""
    wide, out = padded(x, window), np.zeros(g.shape)
    dx, dw = np.zeros_like(wide), np.zeros_like(weight)
    per, each = x.shape[1] // groups, weight.shape[0] // groups
    for group in range(groups):
        ins, outs = (slice(group * n, (group + 1) * n) for n in (per, each))
        for at, key in zip(np.ndindex(window.kernel), taps(window), strict=True):
            w, under = weight[(outs, slice(None), *at)], wide[:, ins][key]
            out[:, outs] += np.einsum("oc,nc...->no...", w, under)
            dx[:, ins][key] += np.einsum("oc,no...->nc...", w, g[:, outs])
            dw[(outs, slice(None), *at)] = np.einsum(
                "ncp,nop->oc", under.reshape(*under.shape[:2], -1), _flat(g[:, outs])
            )
    along = (-1, *(1,) * len(window.size))
    db = _flat(g).sum(axis=(0, 2))
    return [out + bias.reshape(along), without_padding(dx, window), dw, db]


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:2], -1)


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((2, 3, 7, 8), (4, 3, 3, 3), {"padding": 1}),
    "1x1": ((2, 3, 4, 5), (4, 3, 1, 1), {}),
    "of one element": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "as large as the input": ((2, 3, 4, 5), (4, 3, 4, 5), {}),
    "with strides": ((2, 3, 9, 8), (4, 3, 3, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "with dilation": ((2, 3, 9, 9), (4, 3, 3, 2), {"dilation": (2, 3), "padding": (2, 1)}),
    "with more padding than kernel": ((1, 2, 2, 3), (2, 2, 2, 2), {"padding": 3}),
    "same, of an even kernel": ((2, 3, 6, 5), (4, 3, 4, 2), {"padding": "same"}),
    "with groups": ((2, 6, 5, 5), (4, 3, 3, 3), {"groups": 2, "padding": 1}),
    "by channels": ((3, 4, 5, 6), (8, 1, 3, 3), {"groups": 4, "stride": 2}),
    "of more columns than a block has threads": ((3, 2, 19, 20), (3, 2, 3, 3), {}),
    "1-d": ((3, 4, 11), (6, 4, 3), {"padding": 1, "stride": 2}),
    "1-d with groups": ((3, 4, 300), (6, 2, 5), {"groups": 2, "dilation": 3}),
    "1-d same, of an even kernel": ((3, 4, 11), (6, 4, 4), {"padding": "same"}),
}


def window_of(
    x: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any]
) -> tuple[Window, int]:
    """Return the window and the number of groups of a convolution."""
    n = len(x) - 2

    def each(name: str, default: int) -> tuple[int, ...]:
        value = options.get(name, default)
        return value if isinstance(value, tuple) else (value,) * n

    kernel, dilation = weight[2:], each("dilation", 1)
    if options.get("padding") == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        padding = tuple([(total // 2, total - total // 2) for total in totals])
    else:
        padding = tuple([(p, p) for p in each("padding", 0)])
    window = Window(x[2:], kernel, each("stride", 1), padding, dilation)
    return window, options.get("groups", 1)


def check_convolution(name: str, dtype: str, layout: str = "contiguous") -> None:
    x, weight, options = CONVOLUTIONS[name]
    window, groups = window_of(x, weight, options)
    inputs = [normal(*shape, seed=i) for i, shape in enumerate((x, weight, weight[:1]))]
    g = normal(x[0], weight[0], *window.out, seed=5)
    function = partial(F.conv1d if len(x) == 3 else F.conv2d, **options)
    got = gradients(function, inputs, g, dtype, layout)
    assert_close(got, convolved(*inputs, g, window, groups), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_and_its_gradients(name: str, dtype: str, cuda: Device) -> None:
    check_convolution(name, dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["3x3", "with groups", "1-d"])
def test_convolution_of_any_layout(name: str, layout: str, cuda: Device) -> None:
    check_convolution(name, "float64", layout)


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution_is_the_gradient_of_a_convolution(groups: int, cuda: Device) -> None:
    weight, options = (4, 6 // groups, 3, 2), {"stride": 2, "padding": (1, 0), "groups": groups}
    big, small = (2, 6, 8, 7), (2, 4, 4, 3)
    window, _ = window_of(big, weight, options)
    assert window.out == small[2:]
    x, w, b, g = (normal(*s, seed=i) for i, s in enumerate((small, weight, (6,), big)))
    function = partial(F.conv_transpose2d, output_padding=1, **options)
    got = gradients(function, [x, w, b], g, "float64")
    # `convolved` of g, given x as the gradient of its result
    dx, out, dw, _ = convolved(g, w, np.zeros(4), x, window, groups)
    exact = [out + b[:, None, None], dx, dw, g.sum(axis=(0, 2, 3))]
    cropped = _cropped(exact[0], got[0])
    assert_close(got, [cropped, *exact[1:]], "float64")


def _cropped(x: np.ndarray, like: np.ndarray) -> np.ndarray:
    return x[tuple([slice(n) for n in like.shape])]


def test_convolution_over_three_axes_is_the_generic_rule(cuda: Device) -> None:
    x, weight, g = normal(2, 3, 4, 5, 4), normal(2, 3, 2, 3, 2, seed=1), normal(2, 2, 3, 3, 3)
    window = Window((4, 5, 4), (2, 3, 2), (1, 1, 1), ((0, 0),) * 3, (1, 1, 1))
    cp = pytest.importorskip("cupy")
    on_gpu = [cp.asarray(part) for part in (x, weight, g)]
    kernels, options = cuda.backend.kernels, {"window": window, "groups": 1}
    got = [
        kernels["convolution"](*on_gpu[:2], **options),
        kernels["convolution_input"](on_gpu[2], on_gpu[1], **options),
        kernels["convolution_weight"](on_gpu[0], on_gpu[2], **options),
    ]
    exact = convolved(x, weight, np.zeros(2), g, window, 1)[:3]
    assert_close([part.get() for part in got], exact, "float64")


def test_second_derivative_of_a_convolution_is_the_slope_of_its_gradient(cuda: Device) -> None:
    window, groups = window_of((2, 2, 4, 3), (2, 1, 2, 2), {"padding": 1, "groups": 2})
    inputs, g = [normal(2, 2, 4, 3), normal(2, 1, 2, 2, seed=1)], normal(2, 2, *window.out, seed=2)

    def gradient(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return convolved(x, w, np.zeros(2), g, window, groups)[1]

    function = partial(F.conv2d, padding=1, groups=2)
    check_second(lambda x, w: function(x, w), gradient, inputs, g)


# Pooling


class Pool(NamedTuple):
    """A pooling of an input of a shape."""

    shape: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    ceil_mode: bool = False

    def window(self) -> Window:
        """Return the window; in ceil mode, with the padding after the input that it needs."""
        pairs = []
        parts = zip(
            self.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=False
        )
        for n, k, s, p, d in parts:
            rest = n + 2 * p - d * (k - 1) - 1
            windows = (-(-rest // s) if self.ceil_mode else rest // s) + 1
            if (windows - 1) * s >= n + p:  # no window begins in the padding after the input
                windows -= 1
            pairs.append((p, max(p, (windows - 1) * s + d * (k - 1) + 1 - n - p)))
        size, dilation = self.shape[2:], self.dilation[: len(pairs)]
        return Window(size, self.kernel, self.stride, tuple(pairs), dilation)


POOLS = {
    "2x2": Pool((2, 3, 8, 6), (2, 2), (2, 2)),
    "that overlaps": Pool((2, 3, 9, 7), (3, 3), (1, 2)),
    "with gaps": Pool((2, 3, 9, 8), (2, 1), (3, 2)),
    "with padding": Pool((2, 3, 7, 7), (3, 3), (2, 2), (1, 1)),
    "in ceil mode": Pool((2, 3, 8, 7), (3, 2), (2, 2), ceil_mode=True),
    "in ceil mode with padding": Pool((1, 2, 6, 5), (3, 3), (2, 3), (1, 1), ceil_mode=True),
    "of the whole input": Pool((2, 3, 5, 6), (5, 6), (1, 1)),
    "of one element": Pool((1, 1, 1, 1), (1, 1), (1, 1)),
    "of more windows than a block has threads": Pool((3, 5, 19, 18), (2, 2), (1, 1)),
    "1-d": Pool((3, 4, 50), (4,), (3,), (2,)),
}
DILATED = {
    "with dilation": Pool((2, 3, 9, 9), (3, 2), (1, 2), (1, 0), (2, 3)),
    "1-d with dilation": Pool((3, 4, 50), (4,), (3,), (2,), (5,)),
}


def maxima(x: np.ndarray, g: np.ndarray, window: Window) -> Arrays:
    """Return the largest elements, and the gradient, which the first of them gets."""
    wide = padded(x, window, -np.inf)
    under = np.stack([wide[key] for key in taps(window)])
    values = np.where(np.isnan(under), np.inf, under)  # NumPy's argmax takes the first NaN, too
    first = np.argmax(values, axis=0)
    dx = np.zeros_like(wide)
    for i, key in enumerate(taps(window)):
        dx[key] += np.where(first == i, g, 0)
    return [under.max(axis=0), without_padding(dx, window)]


def sums(x: np.ndarray, g: np.ndarray, window: Window) -> Arrays:
    """Return the sums of windows, and the gradient."""
    wide = padded(x, window)
    dx = np.zeros_like(wide)
    for key in taps(window):
        dx[key] += g
    return [sum(wide[key] for key in taps(window)), without_padding(dx, window)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*POOLS, *DILATED])
def test_maximum_pool_and_its_gradient(name: str, dtype: str, cuda: Device) -> None:
    pool = (POOLS | DILATED)[name]
    window = pool.window()
    x, g = normal(*pool.shape), normal(*pool.shape[:2], *window.out, seed=1)
    x = np.round(x)  # ties
    function = F.max_pool2d if len(pool.shape) == 4 else F.max_pool1d
    n = len(pool.kernel)
    got = gradients(
        lambda x: function(
            x, pool.kernel, pool.stride, pool.padding[:n], pool.dilation[:n], pool.ceil_mode
        ),
        [x],
        g,
        dtype,
    )
    assert_close(got, maxima(x, g, window), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", POOLS)
def test_average_pool_and_its_gradient(name: str, dtype: str, cuda: Device) -> None:
    pool = POOLS[name]
    window, options = pool.window(), {"window": pool.window()}
    x, g = normal(*pool.shape), normal(*pool.shape[:2], *window.out, seed=1)
    got = gradients(lambda x: pooling_rules.sum_pool(x, **options), [x], g, dtype)
    assert_close(got, sums(x, g, window), dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pools_of_any_layout(layout: str, cuda: Device) -> None:
    window = POOLS["with padding"].window()
    x, g = normal(2, 3, 7, 7), normal(2, 3, *window.out, seed=1)
    for function, exact in ((pooling_rules.maximum_pool, maxima), (pooling_rules.sum_pool, sums)):
        got = gradients(partial(function, window=window), [x], g, "float64", layout)
        assert_close(got, exact(x, g, window), "float64")


def test_pools_of_nans_and_infinities(cuda: Device) -> None:
    pool = POOLS["that overlaps"]
    window = pool.window()
    x, g = normal(*pool.shape), normal(*pool.shape[:2], *window.out, seed=1)
    x[0, 0, 4, 4], x[0, 1], x[1, 0], x[1, 1, 2] = np.nan, -np.inf, np.inf, np.nan
    out, dx = gradients(lambda x: F.max_pool2d(x, (3, 3), (1, 2)), [x], g, "float64")
    exact, expected = maxima(x, g, window)
    assert_close([out], [exact], "float64")
    # among several NaNs, another one than the first may get the gradient
    np.testing.assert_allclose(dx[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(dx.sum(axis=(2, 3)), g.sum(axis=(2, 3)), rtol=1e-12)


def test_second_derivative_of_a_maximum_pool(cuda: Device) -> None:
    """The gradient of the gradient: the elements of a direction at the maxima."""
    pool = POOLS["that overlaps"]
    window = pool.window()
    x, g = normal(*pool.shape), normal(*pool.shape[:2], *window.out, seed=1)
    direction = normal(*pool.shape, seed=2)
    slopes = on_cuda(g, "float64").requires_grad_()
    tensor = on_cuda(x, "float64").requires_grad_()
    out = (F.max_pool2d(tensor, (3, 3), (1, 2)) * slopes).sum()
    (first,) = xgrad.autograd.grad(out, [tensor], create_graph=True)
    (second,) = xgrad.autograd.grad((first * on_cuda(direction, "float64")).sum(), [slopes])
    under = np.stack([x[key] for key in taps(window)])
    chosen = np.stack([direction[key] for key in taps(window)])
    exact = np.take_along_axis(chosen, under.argmax(axis=0)[None], axis=0)[0]
    assert_close([second.cpu().numpy()], [exact], "float64")


# Recurrent layers


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm(x: np.ndarray, parameters: Arrays, reverse: bool) -> np.ndarray:
    """Return the states of an LSTM with PyTorch's parameters; complex numbers are allowed."""
    w, u, *biases = parameters
    h = c = np.zeros((x.shape[1], u.shape[1]), x.dtype)
    states = []
    for part in x[::-1] if reverse else x:
        i, f, g, o = np.split(part @ w.T + h @ u.T + sum(biases), 4, axis=-1)
        c = logistic(f) * c + logistic(i) * np.tanh(g)
        h = logistic(o) * np.tanh(c)
        states.append(h)
    return np.stack(states[::-1] if reverse else states)


def gru(x: np.ndarray, parameters: Arrays, reverse: bool) -> np.ndarray:
    """Return the states of a GRU with PyTorch's parameters; complex numbers are allowed."""
    w, u, *biases = parameters
    b, d = biases or (0, 0)
    h = np.zeros((x.shape[1], u.shape[1]), x.dtype)
    states = []
    for part in x[::-1] if reverse else x:
        (r, z, n), (s, y, m) = (np.split(v, 3, axis=-1) for v in (part @ w.T + b, h @ u.T + d))
        z = logistic(z + y)
        h = (1 - z) * np.tanh(n + logistic(r + s) * m) + z * h
        states.append(h)
    return np.stack(states[::-1] if reverse else states)


def slopes(function: Callable[..., np.ndarray], inputs: Arrays, g: np.ndarray) -> Arrays:
    """Return the gradients of a function by complex steps, which have no cancellation."""
    result = []
    for i, x in enumerate(inputs):
        found = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            moved = [y.astype(complex) for y in inputs]
            moved[i][at] += 1e-30j
            found[at] = np.sum(function(*moved).imag * g) / 1e-30
        result.append(found)
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "both directions"])
@pytest.mark.parametrize(("time", "batch", "hidden"), [(1, 1, 1), (1, 3, 4), (4, 1, 5), (5, 3, 3)])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layer_and_its_gradients(
    kind: str,
    time: int,
    batch: int,
    hidden: int,
    bidirectional: bool,
    bias: bool,
    dtype: str,
    cuda: Device,
) -> None:
    options: dict[str, Any] = {"bias": bias, "bidirectional": bidirectional}
    layer = getattr(nn, kind)(2, hidden, dtype=dtype, device=cuda, **options)
    x, directions = normal(time, batch, 2), 1 + bidirectional
    g = normal(time, batch, directions * hidden, seed=1)
    parameters = list(layer.parameters())
    count = len(parameters) // directions
    with xgrad.no_grad():
        for i, p in enumerate(parameters):
            p[...] = on_cuda(normal(*p.shape, seed=2 + i), dtype)
    tensor = on_cuda(x, dtype).requires_grad_()
    out, _ = layer(tensor)
    out.backward(on_cuda(g, dtype))

    def function(x: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        step = lstm if kind == "LSTM" else gru
        parts = [
            step(x, list(parameters[k * count : (k + 1) * count]), reverse=bool(k))
            for k in range(directions)
        ]
        return np.concatenate(parts, axis=-1)

    inputs = [x, *[p.detach().cpu().numpy().astype("float64") for p in parameters]]
    got = [out.detach(), tensor.grad, *[p.grad for p in parameters]]
    exact = [function(*inputs), *slopes(function, inputs, g)]
    assert_close([part.cpu().numpy() for part in got], exact, dtype)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layer_of_more_elements_than_a_block_has_threads(kind: str, cuda: Device) -> None:
    layer = getattr(nn, kind)(2, 70, dtype="float64", device=cuda)
    x = normal(3, 5, 2)
    out, _ = layer(on_cuda(x, "float64"))
    parameters = [p.detach().cpu().numpy() for p in layer.parameters()]
    exact = (lstm if kind == "LSTM" else gru)(x, parameters, False)
    assert_close([out.detach().cpu().numpy()], [exact], "float64")


# GELU


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_and_its_gradient(approximate: str, dtype: str, cuda: Device) -> None:
    x = np.concatenate([np.linspace(-9, 9, 1025), [0.0, -0.0, 1e4, -1e4, 1e30]]).astype(dtype)
    x = x.astype("float64")  # exact in both
    if approximate == "none":
        below = np.array([(1 + math.erf(v / math.sqrt(2))) / 2 for v in x])
        below[x < -4] = [math.erfc(-v / math.sqrt(2)) / 2 for v in x[x < -4]]
        exact = [x * below, below + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)]
    else:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        tangent = np.tanh(np.clip(inner, -400, 400))
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
        near = np.abs(x) < 100
        middle = np.where(near, x * (1 - tangent * tangent) * np.where(near, slope, 0), 0)
        exact = [x * (1 + tangent) / 2, (1 + tangent + middle) / 2]
    got = gradients(lambda x: F.gelu(x, approximate), [x], np.ones_like(x), dtype)
    for found, wanted in zip(got, exact, strict=True):
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(found, wanted, rtol=40 * eps, atol=40 * eps)


# Sums


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 2, 7, 8, 255, 256, 257, 511, 512, 513, 4095, 4097, 70_000])
def test_sums_of_columns_and_of_groups_of_any_length(length: int, dtype: str, cuda: Device) -> None:
    for shape, axis in [((length, 3), 0), ((2, 3, length), (0, 2)), ((length, 33), 0)]:
        x = 1 + normal(*shape)
        got = xgrad.sum(on_cuda(x, dtype), axis=axis).cpu().numpy()
        assert_close([got], [x.sum(axis=axis)], dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1, (0, 1), (0, 2), (1, 2), (-3, -1), (0, 1, 2), ()])
def test_sums_over_any_axes(axis: Any, keepdims: bool, layout: str, cuda: Device) -> None:
    x = normal(5, 4, 6)
    got = xgrad.sum(on_cuda(x, "float64", layout), axis=axis, keepdims=keepdims)
    exact = x.sum(axis=axis, keepdims=keepdims)
    assert_close([got.cpu().numpy()], [exact], "float64")


@pytest.mark.parametrize("axis", [2, -3, (0, 2), (0, 0), (0, -2)])
def test_sum_over_an_axis_that_is_not_there_or_there_twice_is_refused(
    axis: Any, cuda: Device
) -> None:
    with pytest.raises(ValueError, match="axis"):
        cuda.xp.sum(cuda.xp.ones((3, 4), dtype=cuda.xp.float32), axis=axis)


def test_special_values_of_a_column_stay_in_it(cuda: Device) -> None:
    x = np.ones((700, 4))
    x[300, 0], x[5, 1], x[6, 2], x[7, 2] = np.nan, np.inf, np.inf, -np.inf
    got = xgrad.sum(on_cuda(x, "float32"), axis=0).cpu().numpy()
    np.testing.assert_array_equal(got, np.array([np.nan, np.inf, np.nan, 700], "float32"))


@pytest.mark.parametrize("length", [1, 255, 256, 2047, 2048, 10**6 + 1, 2**33 + 1])
@pytest.mark.parametrize("tiles", [1, 2, 100, 511, 512, 513, 10**6])
def test_chunks_cover_a_length_and_fit_into_a_grid(length: int, tiles: int) -> None:
    module = pytest.importorskip("xgrad_cupy.kernels.sums")
    chunk, chunks = module.chunks_of(length, tiles, 256)
    assert chunk * (chunks - 1) < length <= chunk * chunks
    assert chunks == 1 or chunk >= 256
    assert chunks <= 65535  # the most blocks in the second axis of a grid
    assert module.chunks_of(0, tiles, 256) == (1, 1)


# Captured steps


def causal(query: Any, key: Any, value: Any) -> Any:
    return F.scaled_dot_product_attention(query, key, value, dropout_p=0.2, is_causal=True)


STEPS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "layer norm": (lambda x, w, b: F.layer_norm(x, (33,), w, b), [(700, 33), (33,), (33,)]),
    "layer norm without parameters": (lambda x: F.layer_norm(x, (33,)), [(9, 33)]),
    "layer norm of float16": (
        lambda x: F.layer_norm(x.astype("float16"), (33,)).astype("float32"),
        [(9, 33)],
    ),
    "rms norm without a weight": (lambda x: F.rms_norm(x, (33,)), [(9, 33)]),
    "rms norm of float16": (
        lambda x: F.rms_norm(x.astype("float16"), (33,)).astype("float32"),
        [(9, 33)],
    ),
    "instance norm": (F.instance_norm, [(3, 4, 50)]),
    "batch norm without parameters": (
        lambda x: F.batch_norm(x, None, None, training=True),
        [(3, 4, 5)],
    ),
    "rms norm": (lambda x, w: F.rms_norm(x, (1025,), w), [(3, 1025), (1025,)]),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [(3, 4, 50), (4,), (4,)]),
    "batch norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        [(3, 4, 1500), (4,), (4,)],
    ),
    "batch norm of rows": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        [(700, 4), (4,), (4,)],
    ),
    "attention": (F.scaled_dot_product_attention, [(2, 3, 5, 4), (2, 3, 40, 4), (2, 3, 40, 2)]),
    "attention with a mask": (
        F.scaled_dot_product_attention,
        [(2, 3, 5, 4), (3, 6, 4), (3, 6, 2), (2, 1, 5, 6)],
    ),
    "attention with dropout": (causal, [(2, 3, 5, 4), (2, 3, 40, 4), (2, 3, 40, 2)]),
    "convolution": (
        partial(F.conv2d, padding="same", groups=2),
        [(3, 4, 9, 8), (6, 2, 3, 2), (6,)],
    ),
    "convolution of one axis": (partial(F.conv1d, stride=2), [(3, 4, 300), (6, 4, 5), (6,)]),
    "transposed convolution": (partial(F.conv_transpose2d, stride=2), [(2, 4, 5, 4), (4, 3, 3, 2)]),
    "maximum pool": (lambda x: F.max_pool2d(x, 3, 1, 1), [(3, 5, 19, 18)]),
    "average pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), [(3, 5, 19, 18)]),
    "GELU": (F.gelu, [(700, 3)]),
    "GELU by tanh": (lambda x: F.gelu(x, "tanh"), [(700, 3)]),
}


@pytest.mark.parametrize("native", [None, False], ids=["fused", "call by call"])
@pytest.mark.parametrize("name", [*STEPS, "LSTM", "GRU"])
def test_captured_step_has_the_bits_of_the_eager_step(
    name: str, native: bool | None, cuda: Device
) -> None:
    if name in STEPS:
        function, shapes = STEPS[name]
        parameters: list[Any] = []
    else:
        layer = getattr(nn, name)(5, 6, bidirectional=True, device=cuda)
        function, shapes = (lambda x: layer(x)[0]), [(7, 3, 5)]
        parameters = list(layer.parameters())
    inputs = [on_cuda(normal(*shape), "float32").requires_grad_() for shape in shapes]
    g = on_cuda(normal(*function(*inputs).shape, seed=1), "float32")

    def step(g: Any) -> Any:
        out = function(*[xgrad.tanh(x) * 3 for x in inputs])
        return out.detach(), *xgrad.autograd.grad((out * g).sum(), [*inputs, *parameters])

    results, captured = [], xgrad.capture(step, native=native)
    for call in (step, captured):
        xgrad.manual_seed(3)
        results.append([x.cpu().numpy() for _ in range(3) for x in call(g)])
    assert not captured.refusal
    for eager, replayed in zip(*results, strict=True):
        if "CUDA_WITHOUT_GPU" in os.environ:
            assert eager.tobytes() == replayed.tobytes()
        else:  # a graph has another handle of cuBLAS, whose products may be rounded otherwise
            np.testing.assert_allclose(replayed, eager, rtol=1e-4, atol=1e-4)


# Selection


def _attention_arguments(dtype: str) -> tuple[Any, ...]:
    query, key, value = (normal(2, 5, 4, seed=i).astype(dtype) for i in range(3))
    return query, key, value, None, True, 0.5, 0.3, 3, 4


HALVES: dict[str, Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "attention_values": lambda: ((*_attention_arguments("float16"), Device("cuda")), {}),
    "standardize": lambda: (
        (normal(3, 5).astype("float16"), None, None, (1,), 1e-5, True),
        {},
    ),
    "gelu_values": lambda: ((normal(3, 5).astype("float16"),), {}),
    "lstm_steps": lambda: (
        (*[normal(*s).astype("float16") for s in ((3, 2, 8), (8, 2), (2, 2), (2, 2))], False),
        {},
    ),
    "maximum_pool": lambda: (
        (normal(2, 3, 9, 7).astype("float16"),),
        {"window": POOLS["that overlaps"].window()},
    ),
    "convolution": lambda: (
        (normal(2, 3, 5, 5).astype("float16"), normal(4, 3, 2, 2).astype("float16")),
        {"window": window_of((2, 3, 5, 5), (4, 3, 2, 2), {})[0], "groups": 1},
    ),
}


@pytest.mark.parametrize("name", HALVES)
def test_float16_has_the_bits_of_the_generic_rule(name: str, cuda: Device) -> None:
    args, options = HALVES[name]()
    cp = pytest.importorskip("cupy")
    rule: Any = OVERRIDABLE.get(name)
    if rule is None:
        module = pooling_rules if "pool" in name else convolution_rules
        rule = getattr(module, name).function.forward
    else:
        rule = rule.generic
    results = []
    for function in (cuda.backend.kernels[name], partial(rule, cuda.xp)):
        arrays = [cp.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
        found = function(*arrays, **options)
        results.append(found[0] if isinstance(found, (tuple, list)) else found)
    assert results[0].dtype == np.float16
    assert results[0].get().tobytes() == results[1].get().tobytes()


class Compiled:
    """A module in place of CuPy, with NumPy's functions, that notes which kernels are compiled."""

    def __init__(self) -> None:
        self.types: list[str] = []

    def RawKernel(self, source: str, name: str, options: tuple[str, ...]) -> Any:
        self.types.append(source.splitlines()[1])
        return lambda *args: None

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def test_type_of_indices_is_chosen_by_sizes_and_extents() -> None:
    raw = pytest.importorskip("xgrad_cupy.kernels.raw")
    small, large = "typedef int Index;", "typedef long long Index;"

    def chosen(args: tuple[Any, ...], largest: int) -> str:
        module = Compiled()
        kernels = raw.RawKernels(module, "")
        kernels.launch("name", np.dtype("float32"), (1,), (1,), args, largest=largest)
        return module.types[0]

    assert chosen((7, None, np.float64(1e300)), 1 << 29) == small
    assert chosen((7, np.int32(3)), 1 << 31) == large
    # the last threads, and loops after their last element, compute larger indices
    assert chosen((7,), (1 << 31) - 1) == large
    assert chosen((1 << 31,), 0) == chosen((-(1 << 31),), 0) == large


def test_indices_of_views_with_large_strides_are_of_64_bits() -> None:
    """A few elements may be far apart in memory."""
    attention, convolution = (
        pytest.importorskip(f"xgrad_cupy.kernels.{name}") for name in ("attention", "convolution")
    )

    def spread(shape: tuple[int, ...], step: int) -> np.ndarray:
        strides = (4 * step, *[4 for _ in shape[1:]])
        return np.lib.stride_tricks.as_strided(np.zeros(1, "float32"), shape, strides)

    window = Window((4, 4), (2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1))
    for step, kind in ((1 << 20, "int"), (1 << 29, "long long")):
        module = Compiled()
        convolution.Convolution(module).columns_of(spread((5, 1, 4, 4), step), window)
        mask, scores = spread((5, 1, 2, 2), step), np.zeros((5, 1, 2, 2), "float32")
        attention.Attention(module).attention_weights(scores, mask, False, 1.0, 0.0, None, None, 0)
        assert module.types == [f"typedef {kind} Index;"] * 2
