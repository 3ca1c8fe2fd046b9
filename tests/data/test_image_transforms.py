"""Transforms and grids of images, compared with NumPy; their random choices with closed forms."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import xgrad
from helpers import check_error, host
from xgrad.data import DataLoader, make_grid, save_image, transforms

GENERATOR = np.random.default_rng(0)
IMAGE = GENERATOR.random((3, 7, 9)).astype(np.float32)
BATCH = GENERATOR.random((4, 3, 7, 9)).astype(np.float32)


@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 1), (5, 4, 3)])
def test_to_tensor_moves_channels_first_and_scales_bytes(shape):
    image = GENERATOR.integers(0, 256, shape, dtype=np.uint8)
    expected = image.reshape(5, 4, -1).transpose(2, 0, 1)
    got = transforms.ToTensor()(image)
    assert got.dtype == xgrad.float32
    np.testing.assert_array_equal(got.numpy(), expected.astype(np.float32) / np.float32(255))
    for dtype in (np.float64, np.int32, np.bool_):
        kept = transforms.ToTensor()(image.astype(dtype))
        assert kept.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(kept.numpy(), expected.astype(dtype))
    image[...] = 0
    assert got.max() > 0, "the tensor shares the image's memory"


def test_to_tensor_takes_images_of_pillow():
    pillow = pytest.importorskip("PIL.Image")
    image = GENERATOR.integers(0, 256, (5, 4, 3), dtype=np.uint8)
    to_tensor = transforms.ToTensor()
    picture = pillow.fromarray(image)
    np.testing.assert_array_equal(to_tensor(picture).numpy(), to_tensor(image).numpy())
    grey = picture.convert("L")
    assert to_tensor(grey).shape == (1, 5, 4)
    black = to_tensor(grey.point(lambda x: 255 * (x > 127)).convert("1"))
    assert black.dtype == xgrad.float32 and set(black.ravel().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("x", [IMAGE, BATCH, BATCH[None]], ids=["image", "batch", "batches"])
def test_normalize_pad_and_crop_match_numpy(x, device):
    mean, std = [0.1, 0.2, 0.3], [0.5, 0.25, 2.0]
    images = xgrad.asarray(x, device=device)
    columns = (np.array(v, np.float32).reshape(3, 1, 1) for v in (mean, std))
    first, second = columns
    got = transforms.Normalize(mean, std)(images)
    assert str(got.device) == device and got.dtype == xgrad.float32
    np.testing.assert_allclose(host(got), (x - first) / second, 1e-6)
    np.testing.assert_allclose(host(transforms.Normalize(0.5, 2)(images)), (x - 0.5) / 2, 1e-6)
    lead = [(0, 0)] * (x.ndim - 2)
    for padding, widths in (
        (2, [(2, 2), (2, 2)]),
        ((1, 3), [(3, 3), (1, 1)]),
        ((1, 2, 3, 0), [(2, 0), (1, 3)]),
    ):
        padded = transforms.Pad(padding, fill=0.5)(images)
        expected = np.pad(x, [*lead, *widths], constant_values=0.5)
        np.testing.assert_array_equal(host(padded), expected)
        for mode in ("edge", "reflect", "symmetric"):
            padded = transforms.Pad(padding, padding_mode=mode)(images)
            np.testing.assert_array_equal(host(padded), np.pad(x, [*lead, *widths], mode))
    np.testing.assert_array_equal(
        host(transforms.CenterCrop((4, 5))(images)), x[..., 2:6, 2:7]
    )  # round(1.5) is 2
    larger = transforms.CenterCrop(10)(images)
    np.testing.assert_array_equal(host(larger), np.pad(x, [*lead, (1, 2), (0, 1)]))


def test_arrays_of_numpy_and_integers_are_transformed():
    x = np.arange(12, dtype=np.uint8).reshape(1, 3, 4)
    for transform in (transforms.Pad(1), transforms.CenterCrop(2), transforms.RandomCrop(2)):
        assert transform(x).dtype == xgrad.uint8
    assert transforms.RandomHorizontalFlip(1)(x).tolist() == x[..., ::-1].tolist()
    assert transforms.RandomErasing(1, value=3)(np.ones((1, 20, 20), np.uint8)).dtype == xgrad.uint8


def test_random_crops_are_uniform_over_all_positions():
    x = np.arange(30).reshape(1, 5, 6)
    xgrad.manual_seed(0)
    crop = transforms.RandomCrop((3, 4))
    seen = Counter()
    for _ in range(1800):
        got = crop(x)
        top, left = divmod(got[0, 0, 0].item(), 6)
        assert got.tolist() == x[:, top : top + 3, left : left + 4].tolist()
        seen[top, left] += 1
    assert len(seen) == 9
    assert stats.chisquare(list(seen.values())).pvalue > 1e-3


def test_random_crop_pads_before():
    x = np.arange(1, 7.0).reshape(1, 2, 3)
    for _ in range(20):
        got = transforms.RandomCrop((2, 3), padding=1, fill=-1)(x).numpy()
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(x, [(0, 0), (1, 1), (1, 1)], constant_values=-1), (1, 2, 3)
        ).reshape(-1, 1, 2, 3)
        assert any((got == window).all() for window in windows)
    assert transforms.RandomCrop(5, pad_if_needed=True)(x).shape == (1, 5, 5)
    assert transforms.RandomCrop((2, 3))(x).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("kind", "axis"),
    [(transforms.RandomHorizontalFlip, -1), (transforms.RandomVerticalFlip, -2)],
)
def test_flips_have_their_probability(kind, axis):
    xgrad.manual_seed(1)
    flipped, count = np.flip(IMAGE, axis), 0
    transform = kind(0.3)
    for _ in range(1000):
        got = transform(IMAGE).numpy()
        is_flipped = (got == flipped).all()
        assert is_flipped or (got == IMAGE).all()
        count += is_flipped
    assert stats.binomtest(count, 1000, 0.3).pvalue > 1e-3
    assert (kind(1)(BATCH).numpy() == np.flip(BATCH, axis)).all()
    assert (kind(0)(BATCH).numpy() == BATCH).all()


def test_erased_rectangles_have_the_areas_and_ratios_of_the_bounds():
    xgrad.manual_seed(2)
    erase = transforms.RandomErasing(0.75, scale=(0.05, 0.2), ratio=(0.5, 2.0), value=-1.0)
    x, erased, logs = xgrad.ones((2, 60, 80)), 0, []
    for _ in range(400):
        hole = erase(x).numpy() == -1
        assert (hole[0] == hole[1]).all()
        if not hole.any():
            continue
        erased += 1
        rows, columns = hole[0].any(axis=1).sum(), hole[0].any(axis=0).sum()
        assert hole[0].sum() == rows * columns
        assert 0.04 < rows * columns / 4800 < 0.21
        logs.append(math.log(rows / columns))
    assert stats.binomtest(erased, 400, 0.75).pvalue > 1e-3
    # uniform logarithms of the ratio, up to the rounding of sides
    assert stats.kstest(logs, stats.uniform(-math.log(2), 2 * math.log(2)).cdf).pvalue > 1e-3


def test_values_of_erased_rectangles():
    xgrad.manual_seed(3)
    x = xgrad.zeros((3, 40, 40))
    by_channel = transforms.RandomErasing(1, value=[1, 2, 3])(x).numpy()
    assert [set(np.unique(part)) for part in by_channel] == [{0, 1}, {0, 2}, {0, 3}]
    noise = transforms.RandomErasing(1, scale=(0.5, 0.5), ratio=(1, 1), value="random")(x).numpy()
    values = noise[noise != 0]
    assert len(values) == 3 * 28 * 28
    assert stats.kstest(values, stats.norm.cdf).pvalue > 1e-3
    too_large = transforms.RandomErasing(1, scale=(1, 1), ratio=(1, 1))
    assert (too_large(x + 1) == 1).all()


AUGMENTED = transforms.Compose(
    [
        transforms.RandomCrop(6, padding=2),
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        transforms.RandomErasing(value="random"),
        transforms.Normalize(0.5, 0.25),
        transforms.Lambda(lambda x: x * 2),
    ]
)


def test_equal_seeds_give_equal_images_on_each_device(device):
    results = []
    for place in ("cpu", device):
        xgrad.manual_seed(5)
        x = xgrad.asarray(BATCH, device=place)
        results.append([host(AUGMENTED(x)).tobytes() for _ in range(10)])
    assert results[0] == results[1]


def test_augmented_epochs_do_not_depend_on_workers():
    class Images:
        def __len__(self):
            return 12

        def __getitem__(self, i):
            return AUGMENTED(BATCH[i % 4])

    epochs = []
    for workers in (0, 1, 3):
        xgrad.manual_seed(6)
        loader = DataLoader(Images(), 4, shuffle=True, num_workers=workers)
        epochs.append([batch.numpy().tobytes() for _ in range(2) for batch in loader])
    assert epochs[0] == epochs[1] == epochs[2]
    assert epochs[0][:3] != epochs[0][3:]


def grid_of(images, nrow, padding, value):
    """Return a grid, image by image."""
    count, channels, height, width = images.shape
    columns = min(nrow, count)
    rows = -(-count // columns)
    size = (channels, rows * (height + padding) + padding, columns * (width + padding) + padding)
    grid = np.full(size, value, images.dtype)
    for k, image in enumerate(images):
        top, left = (
            padding + i * (n + padding)
            for i, n in zip(divmod(k, columns), (height, width), strict=True)
        )
        grid[:, top : top + height, left : left + width] = image
    return grid


@pytest.mark.parametrize("count", [2, 4, 5])
@pytest.mark.parametrize(("nrow", "padding"), [(8, 2), (2, 0), (3, 1)])
def test_grids_match_numpy(count, nrow, padding, device):
    images = GENERATOR.random((count, 3, 4, 5)).astype(np.float32)
    x = xgrad.asarray(images, device=device)
    got = make_grid(x, nrow, padding, pad_value=0.5)
    np.testing.assert_array_equal(host(got), grid_of(images, nrow, padding, np.float32(0.5)))
    assert host(make_grid(list(x.unbind()), nrow, padding, pad_value=0.5)).tolist() == got.tolist()


def test_grids_of_single_and_grey_images():
    grey = xgrad.asarray(IMAGE[0])
    for x in (grey, grey[None], grey[None, None]):
        assert make_grid(x).tolist() == [IMAGE[0].tolist()] * 3
    assert make_grid(xgrad.asarray(IMAGE)).tolist() == IMAGE.tolist()
    assert make_grid(xgrad.ones((2, 1, 3, 3), dtype=xgrad.uint8), pad_value=7.0).max() == 7


def test_values_of_grids_are_normalized():
    images = xgrad.asarray(4 * BATCH - 1)
    low, high = images.min().item(), images.max().item()
    inner = np.s_[:, 2:9, 2:11]
    whole = make_grid(images, normalize=True).numpy()[inner]
    np.testing.assert_allclose(whole, (4 * BATCH[0] - 1 - low) / (high - low), 1e-5, 1e-6)
    each = make_grid(images, normalize=True, scale_each=True).numpy()[inner]
    assert each.min() == 0 and each.max() == 1
    ranged = make_grid(images, normalize=True, value_range=(0, 2)).numpy()[inner]
    np.testing.assert_allclose(ranged, np.clip(4 * BATCH[0] - 1, 0, 2) / 2, 1e-6)
    assert make_grid(xgrad.ones((3, 4, 4)), normalize=True).tolist() == np.zeros((3, 4, 4)).tolist()


def test_saved_images_have_the_rounded_levels(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    levels = GENERATOR.integers(0, 256, (6, 3, 5, 4), dtype=np.uint8)
    images = xgrad.asarray(levels).astype("float32") / 255
    save_image(images.requires_grad_(), tmp_path / "grid.png", nrow=3, padding=1)
    with pillow.open(tmp_path / "grid.png") as picture:
        got = np.asarray(picture).transpose(2, 0, 1)
    np.testing.assert_array_equal(got, grid_of(levels, 3, 1, 0))
    save_image(xgrad.asarray([[[-1.0, 2.0, math.nan]]]), tmp_path / "clipped", format="png")
    with pillow.open(tmp_path / "clipped") as picture:
        assert np.asarray(picture)[0, :, 0].tolist() == [0, 255, 0]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "t.Compose([3])",
            "TypeError: Compose: expected transforms that can be called, got 3 at 0",
        ),
        ("t.Lambda(3)", "TypeError: Lambda: expected a function, got 3"),
        (
            "t.ToTensor()(x)",
            "TypeError: ToTensor: expected a NumPy array or an image of Pillow, got",
        ),
        (
            "t.ToTensor()([[1]])",
            "TypeError: ToTensor: expected a NumPy array or an image of Pillow",
        ),
        (
            "t.ToTensor()(n[0, 0])",
            "ValueError: ToTensor: expected numbers of shape (height, width)",
        ),
        ("t.Normalize(0.5, 0)", "ValueError: Normalize: expected std above 0, got 0"),
        ("t.Normalize([1, 2], [1, 2, 3])", "ValueError: Normalize: expected as many numbers for"),
        ("t.Normalize('a', 1)", "TypeError: Normalize: expected numbers for mean, got 'a'"),
        (
            "t.Normalize([1, 2], 1)(x)",
            "ValueError: Normalize: expected images of 2 channels, got 3",
        ),
        (
            "t.Normalize(0, 1)(x.astype('uint8'))",
            "TypeError: Normalize: expected images of a float",
        ),
        (
            "t.Normalize(0, 1)(5)",
            "TypeError: Normalize: expected a tensor or a NumPy array, got int",
        ),
        ("t.Pad(1)(x[0, 0])", "ValueError: Pad: expected images of shape (..., channels, height"),
        (
            "t.Pad((1, 2, 3))",
            "ValueError: Pad: expected one, two or four ints of 0 or more for pad",
        ),
        ("t.Pad(1, fill='a')", "TypeError: Pad: expected a number for fill, got 'a'"),
        (
            "t.Pad(1, padding_mode='wrap')",
            "ValueError: Pad: expected padding_mode to be one of ('c",
        ),
        (
            "t.CenterCrop(0)",
            "ValueError: CenterCrop: expected one or two ints of 1 or more for size",
        ),
        (
            "t.RandomCrop(8)(x)",
            "ValueError: RandomCrop: expected images of at least 8 x 8, got 7 x 9",
        ),
        (
            "t.RandomCrop(8, None, 1)",
            "TypeError: RandomCrop: expected True or False for pad_if_needed, got",
        ),
        (
            "t.RandomVerticalFlip(2)",
            "ValueError: RandomVerticalFlip: expected a number from 0 to 1",
        ),
        (
            "t.RandomErasing(value='x')",
            "ValueError: RandomErasing: expected numbers or 'random' for",
        ),
        (
            "t.RandomErasing(scale=(0.5, 2))",
            "ValueError: RandomErasing: expected scale of at most 1",
        ),
        (
            "t.RandomErasing(ratio=(2, 1))",
            "ValueError: RandomErasing: expected two finite numbers above 0",
        ),
        (
            "t.RandomErasing(1, value=(1, 2))(x)",
            "ValueError: RandomErasing: expected images of 2 ch",
        ),
        ("g(5)", "TypeError: make_grid: expected a tensor or tensors, got int"),
        ("g([])", "ValueError: make_grid: expected images of one shape, got shapes []"),
        ("g(x, nrow=0)", "ValueError: make_grid: expected an int of 1 or more for nrow, got 0"),
        ("g(x, normalize='no')", "TypeError: make_grid: expected True or False for normalize, got"),
        ("g(x, normalize=True, scale_each=1)", "TypeError: make_grid: expected True or False for"),
        (
            "g([x[0]] * 2, normalize=True, value_range=(0, xp.inf))",
            "ValueError: make_grid: expected two finite numbers in ascending order for value_range",
        ),
        (
            "g([x[0]] * 2, normalize=True, value_range='ab')",
            "TypeError: make_grid: expected numbers",
        ),
        (
            "t.RandomErasing(ratio=(0.3, xp.inf))",
            "ValueError: RandomErasing: expected two finite numbers above 0 in ascending order for",
        ),
        ("g(x, scale_each=True)", "ValueError: make_grid: expected scale_each with normalize=True"),
        (
            "g(x, normalize=True, value_range=(1, 0))",
            "ValueError: make_grid: expected two finite numbers in ascending order for value_range",
        ),
        ("s(x.astype('uint8'), 'x.png')", "TypeError: save_image: expected a floating dtype, from"),
        ("s(x, 'x.nope')", "ValueError: save_image: expected a format that Pillow writes, such as"),
        (
            "s(x, 'x', format='nope')",
            "ValueError: save_image: expected a format that Pillow writes",
        ),
    ],
)
def test_invalid_arguments_are_refused(call, expected, tmp_path, monkeypatch):
    if call.startswith("s("):
        pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    names = {"t": transforms, "x": xgrad.asarray(IMAGE), "n": IMAGE, "g": make_grid}
    check_error(call, expected, s=save_image, **names)
    assert not list(tmp_path.iterdir())
