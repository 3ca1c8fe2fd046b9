"""Convolution and pooling beyond the table of modules, compared with PyTorch and known values.

The subjects are ties, special shapes, non-finite elements, representations and errors.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, on
from nn.module_cases import CONVOLUTION, POOLING
from xgrad import nn

F = nn.functional


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_same_padding_of_even_kernel_matches_pytorch(device, torch):
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 4)).astype("float32")
    w = np.random.default_rng(1).normal(size=(2, 3, 4, 2)).astype("float32")
    result = F.conv2d(
        xgrad.asarray(x, device=device),
        xgrad.asarray(w, device=device),
        padding="same",
        dilation=(1, 3),
    )
    expected = torch.nn.functional.conv2d(
        torch.tensor(x), torch.tensor(w), padding="same", dilation=(1, 3)
    )
    np.testing.assert_allclose(host(result), expected.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{"kernel_size": 2}, {"kernel_size": 3, "stride": 1, "padding": 1}]
)
def test_gradient_of_maximum_goes_to_the_first_of_equal_elements(options, device, torch):
    x = np.random.default_rng(0).integers(0, 2, (2, 3, 4, 6)).astype("float32")
    a, b = xgrad.asarray(x, device=device, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, z = F.max_pool2d(a, **options), torch.nn.functional.max_pool2d(b, **options)
    weights = np.arange(1.0, z.numel() + 1, dtype="float32").reshape(z.shape)
    (y * xgrad.asarray(weights, device=device)).sum().backward()
    (z * torch.tensor(weights)).sum().backward()
    np.testing.assert_array_equal(host(y), z.detach().numpy())
    np.testing.assert_array_equal(host(a.grad), b.grad.numpy())


def test_maximum_of_window_with_nan_is_nan(device):
    x = xgrad.asarray([[[1.0, float("nan"), 2.0, 3.0]]], device=device, requires_grad=True)
    y = F.max_pool1d(x, 2)
    y.sum().backward()
    np.testing.assert_array_equal(host(y), [[[np.nan, 3.0]]])
    np.testing.assert_array_equal(host(x.grad), [[[0, 1, 0, 1]]])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_element_that_is_not_finite_stays_in_its_bins(value, device):
    x = on(device, np.array([[[1.0, value, 3.0, 5.0, 7.0]]])).requires_grad_()
    y = nn.functional.adaptive_avg_pool1d(x, 3)  # bins of elements 0 and 1, 1 to 3, 3 and 4
    assert host(y)[0, 0].tolist() == pytest.approx([value, value, 6], nan_ok=True)
    (gradient,) = xgrad.autograd.grad(y.sum(), x)
    assert host(gradient)[0, 0].tolist() == pytest.approx([1 / 2, 5 / 6, 1 / 3, 5 / 6, 1 / 2])


def test_maximum_of_window_of_one_element_is_a_new_tensor(device):
    x = xgrad.ones((1, 1, 3), device=device)
    for y in (F.max_pool1d(x, 1), F.avg_pool1d(x, 1), F.adaptive_max_pool1d(x, 3)):
        y[...] = 5.0
    assert x.tolist() == [[[1, 1, 1]]]


def test_batch_without_images_has_no_outputs(device):
    x = xgrad.zeros((0, 2, 5, 5), device=device, requires_grad=True)
    layer = nn.Conv2d(2, 3, 3, device=device)
    y = nn.MaxPool2d(3)(layer(x))
    assert y.shape == (0, 3, 1, 1)
    y.sum().backward()
    assert x.grad.shape == x.shape
    assert not host(layer.weight.grad).any() and layer.weight.grad.shape == layer.weight.shape


@pytest.mark.parametrize("case", [*CONVOLUTION, *POOLING], ids=str)
def test_representation_has_all_options(case):
    module = getattr(nn, case.name)(*case.args, **case.options)
    again = eval(f"nn.{module!r}")
    assert repr(again) == repr(module)
    both = [
        {name: value for name, value in vars(each).items() if not isinstance(value, xgrad.Tensor)}
        for each in (module, again)
    ]
    assert both[0] == both[1]


def test_initial_weights_are_distributed_as_those_of_pytorch(torch):
    xgrad.manual_seed(0)
    torch.manual_seed(0)
    for kind, args, options in (
        ("Conv2d", (16, 32, 3), {"groups": 2}),
        ("Conv1d", (32, 64, 5), {}),
        ("ConvTranspose2d", (32, 16, 3), {"groups": 2}),
    ):
        ours = getattr(nn, kind)(*args, **options)
        theirs = getattr(torch.nn, kind)(*args, **options)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            x, y = host(p), q.detach().numpy()
            assert x.shape == y.shape
            assert abs(x).max() == pytest.approx(
                abs(y).max(), rel=0.1
            ) and x.std() == pytest.approx(y.std(), rel=0.25)


#: Calls, and the class and message of the error that each raises.
CALLS = [
    (
        "nn.Conv2d(0, 1, 3)",
        "ValueError: Conv2d: expected an int of at least 1 for in_channels, got 0",
    ),
    (
        "nn.Conv2d(1, 2.5, 3)",
        "ValueError: Conv2d: expected an int of at least 1 for out_channels, got 2.5",
    ),
    (
        "nn.Conv2d(1, 1, (3, 3, 3))",
        "ValueError: Conv2d: expected an int or 2 ints of at least 1 for kernel_size, "
        "got (3, 3, 3)",
    ),
    (
        "nn.Conv1d(1, 1, 3, stride=0)",
        "ValueError: Conv1d: expected an int of at least 1 for stride, got 0",
    ),
    (
        "nn.Conv2d(1, 1, 3, dilation=(1, True))",
        "ValueError: Conv2d: expected an int or 2 ints of at least 1 for dilation, got (1, True)",
    ),
    (
        "nn.Conv2d(1, 1, 3, padding=-1)",
        "ValueError: Conv2d: expected an int or 2 ints of at least 0 for padding, got -1",
    ),
    (
        'nn.Conv2d(1, 1, 3, padding="full")',
        "ValueError: Conv2d: expected ints, 'same' or 'valid' for padding, got 'full'",
    ),
    (
        'nn.Conv2d(1, 1, 3, stride=2, padding="same")',
        "ValueError: Conv2d: expected a stride of 1 for padding 'same', got (2, 2)",
    ),
    (
        "nn.Conv2d(3, 4, 3, groups=2)",
        "ValueError: Conv2d: expected in_channels divisible by groups, 2, got 3",
    ),
    (
        "nn.Conv2d(2, 3, 3, groups=2)",
        "ValueError: Conv2d: expected out_channels divisible by groups, 2, got 3",
    ),
    (
        'nn.Conv2d(1, 1, 3, padding_mode="mirror")',
        "ValueError: Conv2d: expected a padding_mode of 'zeros', 'reflect', 'replicate' or "
        "'circular', got 'mirror'",
    ),
    (
        'nn.ConvTranspose2d(1, 1, 3, padding="same")',
        "ValueError: ConvTranspose2d: expected ints for padding, got 'same'",
    ),
    (
        'nn.ConvTranspose2d(1, 1, 3, padding_mode="reflect")',
        "ValueError: ConvTranspose2d: expected a padding_mode of 'zeros', got 'reflect'",
    ),
    (
        "nn.ConvTranspose2d(1, 1, 3, output_padding=1)(x)",
        "ValueError: ConvTranspose2d: expected output_padding below stride or dilation, got (1, 1)",
    ),
    (
        "nn.ConvTranspose2d(1, 1, 1, padding=4)(x)",
        "ValueError: ConvTranspose2d: expected an output with elements, got …(2, 1, 4, 4)",
    ),
    (
        "nn.Conv2d(1, 1, 3)(xp.ones((4, 4)))",
        "ValueError: Conv2d: expected input of shape (N, C, H, W) or (C, H, W), got shape (4, 4)",
    ),
    (
        "nn.Conv1d(1, 1, 3)(x)",
        "ValueError: Conv1d: expected input of shape (N, C, L) or (C, L), got shape (2, 1, 4, 4)",
    ),
    (
        "nn.Conv2d(3, 1, 3)(x)",
        "ValueError: Conv2d: expected input with 3 channels, got shape (2, 1, 4, 4)",
    ),
    (
        "nn.Conv2d(1, 1, 5)(x)",
        "ValueError: Conv2d: expected an input not shorter than the kernel, (5, 5), got (4, 4)",
    ),
    (
        "nn.Conv2d(1, 1, 3)(x.astype(xp.float64))",
        "TypeError: Conv2d: expected input of float32, the dtype of weight, got float64…",
    ),
    (
        "nn.Conv2d(1, 1, 3)([1.0])",
        "TypeError: Conv2d: expected a tensor, an array or a number for input, got list…",
    ),
    (
        "F.conv2d(x, xp.ones((1, 1, 3)))",
        "ValueError: conv2d: expected weight of shape (out, in / groups, H, W) with groups=1, "
        "got shape (1, 1, 3)",
    ),
    (
        "F.conv2d(x, xp.ones((3, 1, 3, 3)), groups=2)",
        "ValueError: conv2d: expected weight of shape (out, in / groups, H, W) with groups=2, "
        "got shape (3, 1, 3, 3)",
    ),
    (
        "F.conv2d(x, xp.ones((1, 1, 3, 3)), groups=0)",
        "ValueError: conv2d: expected an int above 0 for groups, got 0",
    ),
    (
        "F.conv2d(x, xp.ones((1, 1, 3, 3)), xp.ones(2))",
        "ValueError: conv2d: expected bias of shape (1,), got shape (2,)",
    ),
    (
        'F.conv2d(x, xp.ones((1, 1, 3, 3)), padding="none")',
        "ValueError: conv2d: expected ints, 'same' or 'valid' for padding, got 'none'",
    ),
    (
        'F.conv2d(x, xp.ones((1, 1, 3, 3)), padding="same", stride=2)',
        "ValueError: conv2d: expected a stride of 1 for padding 'same', got (2, 2)",
    ),
    (
        "F.conv_transpose2d(x, xp.ones((2, 1, 3, 3)))",
        "ValueError: conv_transpose2d: expected input with 2 channels, got shape (2, 1, 4, 4)",
    ),
    (
        "nn.MaxPool2d(0)",
        "ValueError: MaxPool2d: expected an int or 2 ints of at least 1 for kernel_size, got 0",
    ),
    (
        "nn.MaxPool2d(2, stride=(1,))",
        "ValueError: MaxPool2d: expected an int or 2 ints of at least 1 for stride, got (1,)",
    ),
    (
        "nn.MaxPool2d(2, dilation=0)",
        "ValueError: MaxPool2d: expected an int or 2 ints of at least 1 for dilation, got 0",
    ),
    (
        "nn.MaxPool2d(2, padding=2)(x)",
        "ValueError: MaxPool2d: expected padding of at most half the window, (2, 2), got 2",
    ),
    (
        "nn.MaxPool2d(5)(x)",
        "ValueError: MaxPool2d: expected an input not shorter than the window, (5, 5), got (4, 4)",
    ),
    (
        "nn.MaxPool2d(2)(xp.ones((4, 4)))",
        "ValueError: MaxPool2d: expected input of shape (N, C, H, W) or (C, H, W), "
        "got shape (4, 4)",
    ),
    (
        "nn.AvgPool1d(2)(x)",
        "ValueError: AvgPool1d: expected input of shape (N, C, L) or (C, L), "
        "got shape (2, 1, 4, 4)",
    ),
    (
        "F.avg_pool2d(x, 3, padding=2)",
        "ValueError: avg_pool2d: expected padding of at most half the window, (3, 3), got 2",
    ),
    ("F.max_pool2d(x + 1j, 2)", "TypeError: maximum_pool: …"),
    (
        "nn.AdaptiveAvgPool2d((2, 0))",
        "ValueError: AdaptiveAvgPool2d: expected an int or 2 ints of at least 1 for "
        "output_size, got (2, 0)",
    ),
    (
        "nn.AdaptiveAvgPool2d((2, 2, 2))",
        "ValueError: AdaptiveAvgPool2d: expected an int or 2 ints of at least 1 for "
        "output_size, got (2, 2, 2)",
    ),
    (
        "F.max_pool2d(xp.ones((1, 1, 0, 3)), 2, padding=1)",
        "ValueError: max_pool2d: expected an input with elements, got shape (1, 1, 0, 3)",
    ),
    (
        "F.avg_pool1d(xp.ones((1, 1, 0)), 3, padding=1, count_include_pad=False)",
        "ValueError: avg_pool1d: expected an input with elements, got shape (1, 1, 0)",
    ),
    (
        "F.adaptive_max_pool1d(xp.ones((1, 1, 0)), 2)",
        "ValueError: adaptive_max_pool1d: expected an input with elements, got shape (1, 1, 0)",
    ),
]


@pytest.mark.parametrize(
    ("call", "error"),
    [pytest.param(call, error, id=re.sub(r"\W+", "-", call)) for call, error in CALLS],
)
def test_wrong_arguments_are_refused(call, error):
    check_error(call, error, nn=nn, F=F, x=xgrad.ones((2, 1, 4, 4)))
