"""The transform `Resize`: compared with PyTorch and Pillow, its shapes and its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host
from xgrad.data.transforms import Resize

IMAGE = np.random.default_rng(0).uniform(size=(2, 3, 13, 21))
BYTES = (IMAGE[0] * 256).astype(np.uint8)
SIZES = [(5, 7), (30, 40), (13, 50), (3, 21)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_resized_images_are_those_of_pytorch(mode, antialias, size, torch):
    options = {"antialias": antialias} if mode in ("bilinear", "bicubic") else {}
    resize = torch.nn.functional.interpolate
    transform = Resize(size, mode, antialias=antialias)
    got = transform(xgrad.asarray(IMAGE)).numpy()
    np.testing.assert_allclose(
        got, resize(torch.tensor(IMAGE), size, mode=mode, **options).numpy(), atol=1e-13
    )
    np.testing.assert_array_equal(transform(xgrad.asarray(IMAGE[1])).numpy(), got[1])
    levels = resize(torch.tensor(BYTES)[None].float(), size, mode=mode, **options)
    wanted = levels.round().clamp(0, 255)[0].numpy()
    x = transform(xgrad.asarray(BYTES))
    assert x.dtype == xgrad.uint8
    # sums in another order may round a half to the other side
    assert np.abs(x.numpy() - wanted).max() <= (0 if "nearest" in mode else 1)
    assert np.mean(x.numpy() != wanted) < 0.02


@pytest.mark.parametrize("size", SIZES)
def test_resized_bytes_are_those_of_pillow(size):
    image = pytest.importorskip("PIL.Image")
    got = Resize(size)(xgrad.asarray(BYTES)).numpy().astype(int)
    for row, channel in zip(got, BYTES, strict=True):
        wanted = np.asarray(image.fromarray(channel).resize(size[::-1], image.BILINEAR))
        assert np.abs(row - wanted).max() <= 1


def test_constant_images_stay_constant(device):
    for dtype in ("uint8", "int16", "int64", "float32", "float64"):
        x = xgrad.full((1, 4, 6), 100, dtype=dtype, device=device)
        y = Resize((3, 9), "bicubic")(x)
        assert y.dtype == x.dtype and y.device == x.device
        np.testing.assert_allclose(host(y), 100, rtol=1e-6)
    largest = xgrad.full((1, 4, 6), 2**63 - 1)
    assert (Resize((2, 2))(largest) > 2**62).all()


SHAPES: list[tuple[dict[str, Any], tuple[int, ...], tuple[int, int]]] = [
    ({"size": 8}, (3, 16, 40), (8, 20)),
    ({"size": 8}, (3, 53, 37), (11, 8)),  # 8 * 53 / 37 = 11.46
    ({"size": [8]}, (2, 0, 3, 5, 5), (8, 8)),
    ({"size": (4, 6)}, (0, 3, 5, 5), (4, 6)),
    ({"size": 10, "max_size": 12}, (3, 37, 53), (8, 12)),
    ({"size": 10, "max_size": 12}, (3, 200, 7), (12, 1)),
    ({"size": 10, "max_size": 99}, (3, 20, 30), (10, 15)),
]


@pytest.mark.parametrize(("options", "shape", "expected"), SHAPES)
def test_shorter_edge_has_the_size(options, shape, expected):
    x = Resize(**options)(xgrad.ones(shape))
    assert x.shape == (*shape[:-2], *expected)


def test_images_of_the_size_are_returned_as_they_are():
    x = xgrad.ones((3, 4, 5))
    assert Resize((4, 5))(x) is x and Resize(4)(x) is x


def test_resized_images_have_gradients_and_are_captured():
    x = xgrad.asarray(IMAGE, requires_grad=True)
    Resize((5, 7))(x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.sum().item(), 2 * 3 * 5 * 7)
    step = xgrad.capture(Resize(6))
    for scale in (1.0, 2.0):
        values = x.detach() * scale
        np.testing.assert_array_equal(step(values).numpy(), Resize(6)(values).numpy())


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("r(0)", "ValueError: Resize: expected one or two ints of 1 or more for size, got 0"),
        ("r((1, 2, 3))", "ValueError: Resize: expected one or two ints of 1 or more for size"),
        ("r(4, 'area')", "ValueError: Resize: expected interpolation to be one of ('nearest', "),
        ("r(4, antialias=1)", "TypeError: Resize: expected True or False for antialias, got 1"),
        ("r(4, max_size=0)", "ValueError: Resize: expected an int of 1 or more for max_size"),
        ("r(4, max_size=4)", "ValueError: Resize: expected max_size beside one number as size, a"),
        ("r((4, 4), max_size=9)", "ValueError: Resize: expected max_size beside one number as si"),
        ("r(4)(x > 0)", "TypeError: Resize: expected images of real numbers, got bool: use 'nea"),
        ("r(4)(x[0])", "ValueError: Resize: expected images of shape (..., channels, height, wi"),
        ("r(4)(x[:, :0])", "ValueError: Resize: expected images that are not empty, got shape (3"),
        ("r(4)([1])", "TypeError: Resize: expected a tensor or a NumPy array, got list"),
    ],
)
def test_invalid_arguments_are_refused(call, expected):
    check_error(call, expected, r=Resize, x=xgrad.ones((3, 8, 8)))
