"""Image sets as arrays: MNIST, digits, and their classes.

They are compared with known counts and digests, and the digits with scikit-learn's.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

import xgrad
from xgrad.data import (
    DataError,
    DataLoader,
    DataNotFoundError,
    Split,
    TrainTestImages,
    digits,
    mnist,
)

REAL = os.environ.get("XGRAD_DATA") or Path(__file__).parents[2].parent / "shared" / "mnist"


def test_real_mnist():
    try:
        dataset = mnist(REAL)
    except DataNotFoundError as error:
        pytest.skip(str(error))
    assert (dataset.name, dataset.classes, dataset.scale) == ("mnist", 10, 255)
    for split, counts in (
        (dataset.train, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        (dataset.test, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    ):
        assert split.images.shape == (sum(counts), 28, 28) and len(split) == sum(counts)
        assert split.images.dtype == split.labels.dtype == np.uint8
        assert split.images.min() == 0 and split.images.max() == dataset.scale
        assert np.bincount(split.labels).tolist() == counts
    assert dataset.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert dataset.train.images.mean() == pytest.approx(33.318421, abs=1e-6)


def rows(split: Split) -> list[bytes]:
    return [
        bytes([label]) + image.tobytes()
        for image, label in zip(split.images, split.labels, strict=True)
    ]


def test_digits_are_split_by_class_without_overlap():
    dataset = digits()
    assert (dataset.name, dataset.classes, dataset.scale) == ("digits", 10, 16)
    assert "CC BY 4.0" in dataset.source and "Alpaydin" in dataset.source
    assert (len(dataset.train), len(dataset.test)) == (1437, 360)
    for split in (dataset.train, dataset.test):
        assert split.images.shape == (len(split), 8, 8)
        assert split.images.dtype == split.labels.dtype == np.uint8
        assert split.images.min() == 0 and split.images.max() == dataset.scale
    train, test = (
        np.bincount(split.labels, minlength=10) for split in (dataset.train, dataset.test)
    )
    assert (train + test).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (np.abs(test - (train + test) / 5) < 1).all()
    assert len({*rows(dataset.train), *rows(dataset.test)}) == 1797


def test_digits_are_always_the_same_and_leave_numpys_generator_alone():
    np.random.seed(0)
    state = np.random.get_state()[1].copy()
    first = digits()
    assert (np.random.get_state()[1] == state).all()
    np.random.random(7)
    second = digits()
    for part in ("train", "test"):
        assert rows(getattr(first, part)) == rows(getattr(second, part))
        assert not np.shares_memory(getattr(first, part).images, getattr(second, part).images)
    digest = hashlib.sha256(b"".join(rows(first.train) + rows(first.test))).hexdigest()
    assert digest == "515ad37f34eaee1700d4659516d02e22fa75f8a563f50aee4b4d7d0fb903171a"


def test_digits_are_those_of_scikit_learn():
    original = pytest.importorskip("sklearn.datasets").load_digits()
    every = [
        bytes([y]) + x.astype(np.uint8).tobytes()
        for x, y in zip(original.images, original.target, strict=True)
    ]
    train, test = rows(digits().train), rows(digits().test)
    chosen = set(test)
    assert train == [row for row in every if row not in chosen]
    assert test == [row for row in every if row in chosen]
    assert (original.images == original.images.astype(np.uint8)).all()


def test_split_is_immutable_and_compared_by_identity():
    split = Split(np.zeros((3, 2, 2), np.uint8), np.zeros(3, np.uint8))
    assert len(split) == 3 and repr(split) == "Split(images=(3, 2, 2), labels=(3,))"
    assert split == split and split != Split(split.images, split.labels)
    with pytest.raises(FrozenInstanceError):
        split.labels = split.labels
    assert "\n" not in repr(digits())


def test_split_is_a_dataset():
    loader = DataLoader(digits().test, batch_size=100)
    batches = list(loader)
    assert len(loader) == len(batches) == 4
    images, labels = batches[0]
    assert (images.numpy() == digits().test.images[:100]).all() and images.dtype == xgrad.uint8
    assert labels.tolist() == digits().test.labels[:100].tolist() and labels.dtype == xgrad.int64


def pair(labels, shape=(2, 2)) -> Split:
    return Split(np.zeros((len(labels), *shape), np.uint8), np.array(labels))


def three_classes(train: Split, test: Split, *names: str) -> TrainTestImages:
    return TrainTestImages("x", train, test, 3, 1.0, "", names)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Split(np.zeros((3, 2, 2)), np.zeros(2)), "got 3 images and 2 labels"),
        (
            lambda: Split(np.zeros((3, 4)), np.zeros(3)),
            r"images of shape \(N, H, W\) .* got \(3, 4\) and \(3,\)",
        ),
        (
            lambda: three_classes(pair([0, 3]), pair([0])),
            "x: expected labels from 0 to 2, got 0 to 3 in train",
        ),
        (
            lambda: three_classes(pair([0]), pair([-1])),
            "x: expected labels from 0 to 2, got -1 to -1 in test",
        ),
        (
            lambda: three_classes(pair([0]), pair([0], (2, 3))),
            r"images of one size, got \(2, 2\) and \(2, 3\)",
        ),
        (
            lambda: three_classes(pair([0]), pair([0]), "a"),
            "x: expected 3 class names or none, got 1",
        ),
    ],
)
def test_inconsistent_image_set_is_refused(make, text):
    with pytest.raises(DataError, match=text):
        make()
