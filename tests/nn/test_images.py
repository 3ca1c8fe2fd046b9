"""Layers of images beyond the table of modules: special sizes, representations, errors.

Compared with PyTorch, with matrices, and with known values.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, on
from nn import image_cases
from xgrad import nn
from xgrad.ops.interpolation import Taps

F = nn.functional


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_elements_are_those_of_pytorch(mode, torch):
    for length in (1, 2, 5, 9, 14, 31):
        x = np.arange(float(length), dtype="float32")[None, None]
        for options in (
            *[{"size": n} for n in (1, 2, 3, 7, 11, 22, 37, 46)],
            *[{"scale_factor": scale} for scale in (1.3, 2, 2.7, 3, 0.37 if length > 2 else 1)],
        ):
            expected = torch.nn.functional.interpolate(torch.tensor(x), mode=mode, **options)
            got = F.interpolate(xgrad.asarray(x), mode=mode, **options)
            np.testing.assert_array_equal(host(got), expected.numpy(), f"{length}, {options}")


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolation_to_many_sizes_equals_that_of_pytorch(mode, align_corners, antialias, torch):
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 8))
    for size in ((1, 1), (2, 3), (5, 4), (3, 8), (7, 11), (10, 16), (5, 8)):
        options = {"mode": mode, "align_corners": align_corners, "antialias": antialias}
        expected = torch.nn.functional.interpolate(torch.tensor(x), size=size, **options)
        got = F.interpolate(xgrad.asarray(x), size=size, **options)
        np.testing.assert_allclose(host(got), expected.numpy(), 1e-9, 1e-9, err_msg=str(size))


def test_transposed_taps_are_those_of_the_transposed_matrix():
    rng = np.random.default_rng(0)
    for taps, length, count in ((1, 3, 5), (4, 7, 2), (3, 1, 4)):
        weights = rng.normal(size=(taps, count)) * rng.integers(0, 2, (taps, count))
        given = Taps.of(length, rng.integers(0, length, (taps, count)), weights)
        matrices = []
        for each in (given, given.transposed):
            matrix = np.zeros((len(each.indices[0]), each.length))
            for indices, row in zip(each.indices, each.weights, strict=True):
                np.add.at(matrix, (np.arange(len(indices)), indices), row)
            matrices.append(matrix)
        np.testing.assert_allclose(matrices[1], matrices[0].T, atol=1e-15)


def test_element_that_is_not_finite_reaches_only_its_neighbours(device):
    x = on(device, np.array([[[1.0, np.inf, 2.0, 4.0, 8.0]]])).requires_grad_()
    y = F.interpolate(x, size=9, mode="linear", align_corners=True)
    assert host(y)[0, 0].tolist() == [1, np.inf, np.inf, np.inf, 2, 3, 4, 6, 8]
    (gradient,) = xgrad.autograd.grad(y.sum(), x)
    assert host(gradient)[0, 0].tolist() == [1.5, 2, 2, 2, 1.5]


def test_result_of_equal_size_is_a_copy(device):
    x = xgrad.ones((1, 1, 2, 2), device=device)
    for y in (
        F.interpolate(x, size=2),
        F.interpolate(x, size=2, mode="bilinear"),
        F.pad(x, (0, 0)),
        F.pad(x, (0, 0), mode="reflect"),
    ):
        y[...] = 5.0
    assert x.sum().item() == 4


def test_integers_are_resized_by_their_nearest_elements():
    x = xgrad.asarray([[[1, 2]]], dtype=xgrad.uint8)
    y = F.interpolate(x, scale_factor=2)
    assert (y.tolist(), y.dtype) == ([[[1, 1, 2, 2]]], xgrad.uint8)


def test_mean_of_elements_with_one_index_is_unpooled(device):
    x = on(device, np.array([[3.0, 5.0, 7.0]])).requires_grad_()
    y = F.max_unpool1d(x, xgrad.asarray([[1, 1, 4]], device=device), 2)
    assert host(y).tolist() == [[0, 4, 0, 0, 7, 0]]
    (gradient,) = xgrad.autograd.grad(y.sum(), x)
    assert host(gradient).tolist() == [[0.5, 0.5, 1]]


def test_unpooled_maxima_of_overlapping_windows_are_at_their_places(device):
    x = on(device, np.array([[0.0, 5.0, 1.0, 2.0, 7.0, 3.0]]))
    y, indices = F.max_pool1d(x, 3, stride=1, return_indices=True)
    assert host(indices).tolist() == [[1, 1, 4, 4]]
    assert host(F.max_unpool1d(y, indices, 3, 1)).tolist() == [[0, 5, 0, 0, 7, 0]]


def test_gradient_of_norm_of_zeros_is_zero():
    x = xgrad.zeros((1, 4), requires_grad=True)
    F.lp_pool1d(x, 2, 2).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0, 0]]


def test_places_that_are_nan_are_at_the_first_side():
    x = np.arange(1.0, 5.0).reshape(1, 1, 1, 4)
    grid = np.array([[[[np.nan, 0.0]]]])
    for padding_mode in ("border", "reflection"):
        options = {"padding_mode": padding_mode, "align_corners": True}
        assert F.grid_sample(xgrad.asarray(x), xgrad.asarray(grid), **options).item() == 1
    assert F.grid_sample(xgrad.asarray(x), xgrad.asarray(grid), align_corners=True).item() == 1


def test_identity_grid_returns_the_image(device):
    x = on(device, np.random.default_rng(0).normal(size=(2, 3, 4, 5)))
    theta = on(device, np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]] * 2))
    for align_corners in (False, True):
        grid = F.affine_grid(theta, x.shape, align_corners)
        for mode in ("bilinear", "nearest", "bicubic"):
            y = F.grid_sample(x, grid, mode, align_corners=align_corners)
            np.testing.assert_allclose(host(y), host(x), atol=1e-12)


def test_images_map_over_a_batch():
    rng = np.random.default_rng(0)
    x = xgrad.asarray(rng.normal(size=(3, 1, 2, 4, 5)))
    grid = xgrad.asarray(rng.normal(size=(3, 1, 2, 3, 2)))

    def function(x: xgrad.Tensor, grid: xgrad.Tensor) -> tuple[xgrad.Tensor, ...]:
        pooled, indices = F.max_pool2d(x, 2, return_indices=True)
        return (
            F.interpolate(x, size=(3, 7), mode="bicubic"),
            F.grid_sample(x, grid, align_corners=False),
            F.pad(x, (1, 2), mode="reflect"),
            F.fold(F.unfold(x, 2), (4, 5), 2),
            F.max_unpool2d(pooled, indices, 2, output_size=(4, 5)),
            F.local_response_norm(x, 2),
            F.pixel_unshuffle(x[..., :4], 2),
        )

    mapped = xgrad.vmap(function)(x, grid)
    for i, result in enumerate(mapped):
        expected = [host(function(x[n, ...], grid[n, ...])[i]) for n in range(3)]
        np.testing.assert_allclose(host(result), np.stack(expected), 1e-12, 1e-12)


def test_alpha_dropout_preserves_mean_and_variance(device):
    x = on(device, np.random.default_rng(0).normal(size=(200, 500)))
    for p in (0.1, 0.5, 0.9):
        y = host(nn.AlphaDropout(p)(x))
        assert y.mean() == pytest.approx(0, abs=0.03) and y.std() == pytest.approx(1, abs=0.03)
    assert nn.AlphaDropout().eval()(x) is x
    assert not host(nn.AlphaDropout(1.0)(x)).any()


@pytest.mark.parametrize("p", [0.25, 0.5])
def test_features_of_alpha_dropout_are_replaced_together(p, device):
    y = host(nn.FeatureAlphaDropout(p)(xgrad.zeros((100, 40, 3), device=device)))
    assert (y == y[..., :1]).all()
    values, counts = np.unique(y[..., 0], return_counts=True)
    assert len(values) == 2 and counts[0] / 4000 == pytest.approx(p, abs=0.05)
    scale = ((1 - p) * (1 + p * 1.7580993408473766**2)) ** -0.5
    shift = scale * 1.7580993408473766 * p
    np.testing.assert_allclose(values, [shift - scale * 1.7580993408473766, shift], rtol=1e-5)


def test_slopes_of_rrelu_are_uniform_and_have_gradients(device):
    x = xgrad.full((100, 100), -1.0, device=device, requires_grad=True)
    y = nn.RReLU(0.25, 0.75)(x)
    y.sum().backward()
    slopes = -host(y)
    np.testing.assert_allclose(host(x.grad), slopes, rtol=1e-6)
    assert slopes.min() >= 0.25 and slopes.max() <= 0.75
    assert slopes.std() == pytest.approx(0.5 / 12**0.5, rel=0.05)


def test_slopes_of_rrelu_in_float16_are_rounded_draws(device):
    if device == "strict":
        pytest.skip("array-api-strict has no float16")
    x = np.full((10, 10), -1.0)
    layer = nn.RReLU(0.25, 0.75)
    slopes = []
    for dtype in ("float32", "float16"):
        xgrad.manual_seed(1)
        slopes.append(-host(layer(on(device, x.astype(dtype)))))
    assert slopes[1].dtype == np.float16
    np.testing.assert_array_equal(slopes[1], slopes[0].astype(np.float16))


CASES = [
    *image_cases.CONVOLUTION,
    *image_cases.POOLING,
    *image_cases.PADDING,
    *image_cases.RESIZING,
    *image_cases.FOLDING,
    *image_cases.VECTORS,
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_representation_has_all_options(case):
    module = getattr(nn, case.name)(*case.args, **case.options)
    assert repr(eval(f"nn.{module!r}")) == repr(module)


#: Calls, and the class and message of the error that each raises.
CALLS = [
    (
        "nn.Conv3d(1, 1, (2, 2))",
        "ValueError: Conv3d: expected an int or 3 ints of at least 1 for kernel_size, got (2, 2)",
    ),
    (
        "nn.MaxPool3d(2)(xp.ones((4, 4)))",
        "ValueError: MaxPool3d: expected input of shape (N, C, D, H, W) or (C, D, H, W), got",
    ),
    (
        "nn.AvgPool2d(2, divisor_override=0)",
        "ValueError: AvgPool2d: expected an int other than 0, or None, for divisor_override, got 0",
    ),
    (
        "F.avg_pool2d(x, 2, divisor_override=1.5)",
        "ValueError: avg_pool2d: expected an int other than 0, or None, for divisor_override, got",
    ),
    (
        "F.lp_pool1d(x[0], 0, 2)",
        "ValueError: lp_pool1d: expected a norm_type other than 0, got 0",
    ),
    (
        "F.max_unpool1d(xp.ones((1, 2)), xp.asarray([[0, 7]]), 2)",
        "IndexError: max_unpool1d: expected indices from 0 to 3, got 7",
    ),
    (
        "F.max_unpool1d(xp.ones((1, 2)), xp.asarray([[0, -1]]), 2)",
        "IndexError: max_unpool1d: expected indices from 0 to 3, got -1",
    ),
    (
        "F.max_unpool1d(xp.ones((1, 2)), xp.asarray([[0.0, 1.0]]), 2)",
        "TypeError: max_unpool1d: expected indices of integers, got float32",
    ),
    (
        "F.max_unpool1d(xp.ones((1, 2)), xp.asarray([0, 1]), 2)",
        "ValueError: max_unpool1d: expected indices of the shape of input, got (2,) for (1, 2)",
    ),
    (
        "F.max_unpool1d(xp.ones((1, 2)), xp.asarray([[0, 1]]), 2, output_size=(9,))",
        "ValueError: max_unpool1d: expected an output_size within stride, (2,), of (4,), got (9,)",
    ),
    ("F.pad(x, 1)", "TypeError: pad: expected a tuple of ints for pad, got 1"),
    (
        "F.pad(x, (1, 1, 1))",
        "ValueError: pad: expected two ints for each of up to 4 axes for pad, got (1, 1, 1)",
    ),
    (
        "F.pad(x, (1, 1), 'edge')",
        "ValueError: pad: expected a mode of 'constant', 'reflect', 'replicate', 'circular', got",
    ),
    (
        "F.pad(x, (1, 1), 'reflect', 2.0)",
        "ValueError: pad: expected a value with mode 'constant' alone, got 2.0 with 'reflect'",
    ),
    (
        "F.pad(x, (4, 1), 'reflect')",
        "ValueError: pad: expected axis 3 of 5 elements or more for mode 'reflect' and widths "
        "(4, 1), got shape (2, 1, 4, 4)",
    ),
    (
        "F.pad(x, (-3, -2))",
        "ValueError: pad: expected axis 3 of 5 elements or more for mode 'constant'",
    ),
    (
        "nn.ReflectionPad2d((1, 2, 3))",
        "ValueError: ReflectionPad2d: expected an int or 4 ints for padding, got (1, 2, 3)",
    ),
    (
        "nn.ReflectionPad1d(1)(x)",
        "ValueError: ReflectionPad1d: expected input of shape (N, C, L) or (C, L), got shape",
    ),
    (
        "nn.ConstantPad1d(1, 'x')",
        "TypeError: ConstantPad1d: expected a number for value, got 'x'",
    ),
    (
        "F.unfold(x, 5)",
        "ValueError: unfold: expected images not smaller than the window, (5, 5), got (4, 4)",
    ),
    (
        "F.fold(xp.ones((3, 4)), (3, 3), 2)",
        "ValueError: fold: expected input of shape (N, C * 4, 4) or (C * 4, 4), got shape (3, 4)",
    ),
    (
        "F.pixel_shuffle(x, 2)",
        "ValueError: pixel_shuffle: expected input of shape (..., C * 4, H, W), got (2, 1, 4, 4)",
    ),
    (
        "nn.PixelShuffle(0)",
        "ValueError: PixelShuffle: expected an int above 0 for upscale_factor, got 0",
    ),
    (
        "F.channel_shuffle(x, 2)",
        "ValueError: channel_shuffle: expected input of shape (N, C, ...) with channels that 2 "
        "groups divide, got (2, 1, 4, 4)",
    ),
    (
        "F.interpolate(x)",
        "ValueError: interpolate: expected either size or scale_factor, got None and None",
    ),
    (
        "F.interpolate(x, 2, 2)",
        "ValueError: interpolate: expected either size or scale_factor, got 2 and 2",
    ),
    (
        "F.interpolate(x, 2, mode='linear')",
        "ValueError: interpolate: expected input of shape (N, C, L) for mode 'linear', got",
    ),
    (
        "F.interpolate(x, 2, mode='cubic')",
        "ValueError: interpolate: expected a mode of 'nearest', …, got 'cubic'",
    ),
    (
        "F.interpolate(x, 2, align_corners=True)",
        "ValueError: interpolate: expected no align_corners with mode 'nearest', got True",
    ),
    (
        "F.interpolate(x, 2, antialias=True)",
        "ValueError: interpolate: expected antialias with mode 'bilinear' or 'bicubic', got",
    ),
    (
        "F.interpolate(x, (2, 2, 2))",
        "ValueError: interpolate: expected one or 2 ints above 0 for size, got (2, 2, 2)",
    ),
    (
        "F.interpolate(x, scale_factor=-1)",
        "ValueError: interpolate: expected one or 2 numbers above 0 for scale_factor, got -1",
    ),
    (
        "F.interpolate(x, 2, recompute_scale_factor=True)",
        "ValueError: interpolate: expected no recompute_scale_factor with size, got both",
    ),
    (
        "F.interpolate(x, scale_factor=0.1)",
        "ValueError: interpolate: expected images with elements, got input of shape (2, 1, 4, 4) "
        "and a result of (0, 0)",
    ),
    (
        "F.interpolate(xp.ones((1, 1, 2), dtype=xp.int64), 3, mode='linear')",
        "TypeError: interpolate: expected a floating input for mode 'linear', got int64",
    ),
    (
        "nn.Upsample(scale_factor=2, mode='x')",
        "ValueError: Upsample: expected a mode of 'nearest'",
    ),
    (
        "F.grid_sample(x, xp.ones((2, 3, 3, 3)))",
        "ValueError: grid_sample: expected grid of shape (N, H, W, 2) for input of shape "
        "(2, 1, 4, 4), got (2, 3, 3, 3)",
    ),
    (
        "F.grid_sample(x, xp.ones((2, 3, 3, 2)), 'linear')",
        "ValueError: grid_sample: expected a mode of 'bilinear', 'nearest', 'bicubic', got",
    ),
    (
        "F.grid_sample(x, xp.ones((2, 3, 3, 2)), padding_mode='reflect')",
        "ValueError: grid_sample: expected a padding_mode of 'zeros', 'border', 'reflection', got",
    ),
    (
        "F.grid_sample(x, xp.ones((2, 3, 3, 2), dtype=xp.int64))",
        "TypeError: grid_sample: expected a floating grid, got int64",
    ),
    (
        "F.affine_grid(xp.ones((2, 2, 3)), (1, 1, 2, 2))",
        "ValueError: affine_grid: expected theta of shape (1, 2, 3), got (2, 2, 3)",
    ),
    (
        "F.affine_grid(xp.ones((2, 2, 3)), 4)",
        "TypeError: affine_grid: expected a tuple of ints for size, got 4",
    ),
    (
        "F.local_response_norm(xp.ones((2, 3)), 2)",
        "ValueError: local_response_norm: expected input of shape (N, C, ...), got (2, 3)",
    ),
    (
        "nn.LocalResponseNorm(0)",
        "ValueError: LocalResponseNorm: expected an int above 0 for size, got 0",
    ),
    (
        "F.bilinear(xp.ones(2), xp.ones(3), xp.ones((1, 3, 2)))",
        "ValueError: bilinear: expected inputs of shapes (..., 3) and (..., 2), got (2,) and (3,)",
    ),
    (
        "F.rrelu(x, 0.5, 0.25)",
        "ValueError: rrelu: expected lower <= upper, got 0.5 and 0.25",
    ),
    (
        "F.dropout3d(xp.ones((2, 3)))",
        "ValueError: dropout3d: expected x of shape (channels, depth, height, width) or",
    ),
    (
        "F.multilabel_margin_loss(xp.ones((2, 3)), xp.full((2, 3), 3))",
        "IndexError: multilabel_margin_loss: expected classes below 3 in target",
    ),
    (
        "nn.Softmax2d()(xp.ones((2, 3)))",
        "ValueError: Softmax2d: expected input of shape (N, C, H, W) or (C, H, W), got shape",
    ),
]


@pytest.mark.parametrize(
    ("call", "error"),
    [pytest.param(call, error, id=re.sub(r"\W+", "-", call)) for call, error in CALLS],
)
def test_wrong_arguments_are_refused(call, error):
    check_error(call, error, nn=nn, F=F, x=xgrad.ones((2, 1, 4, 4)))
