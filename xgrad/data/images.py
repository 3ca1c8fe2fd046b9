"""Labelled image sets, as NumPy arrays on the host."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from xgrad.data.catalog import SETS
from xgrad.data.dataset import Dataset
from xgrad.data.idx import DataError
from xgrad.data.image_files import read_arrays
from xgrad.support.hints import shown


@dataclass(frozen=True, eq=False, repr=False)
class Split(Dataset[tuple[npt.NDArray[np.uint8], int]]):
    """Images and their labels: a dataset whose samples are pairs of an image and a class number.

    Parameters
    ----------
    images : numpy.ndarray
        The grey values, uint8, of shape (N, H, W).
    labels : numpy.ndarray
        The class numbers, uint8, of shape (N,).

    Examples
    --------
    >>> import xgrad
    >>> test = xgrad.data.digits().test
    >>> len(test), test[0][1]
    (360, 2)
    """

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise DataError(
                f"Split: expected a label for each image, got {len(self.images)} images and "
                f"{len(self.labels)} labels; pass arrays of one length"
            )
        if np.ndim(self.images) != 3 or np.ndim(self.labels) != 1:
            raise DataError(
                "Split: expected images of shape (N, H, W) and labels of shape (N,), got "
                f"{np.shape(self.images)} and {np.shape(self.labels)}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[npt.NDArray[np.uint8], int]:
        return self.images[index], int(self.labels[index])

    def __repr__(self) -> str:
        return f"Split(images={self.images.shape}, labels={self.labels.shape})"


@dataclass(frozen=True, eq=False)
class TrainTestImages:
    """A labelled image set: training images and test images.

    Parameters
    ----------
    name : str
        The short name.
    train, test : Split
        The images for training and for evaluation.
    classes : int
        The number of classes; labels run from 0 to ``classes - 1``.
    scale : float
        The largest grey value: ``images / scale`` lies in [0, 1].
    source : str
        The authors, the title and the licence.
    class_names : tuple of str
        The names of the classes, such as ``"Trouser"``; empty if they are unknown.

    Raises
    ------
    DataError
        If a label is out of range, if the image sizes of the two parts differ, or if there are
        names, but not one for each class.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.digits().classes
    10
    """

    name: str
    train: Split
    test: Split
    classes: int
    scale: float
    source: str
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for part, split in (("train", self.train), ("test", self.test)):
            if not isinstance(split, Split):
                raise TypeError(
                    f"TrainTestImages: expected a Split for {part}, got {type(split).__name__}"
                )
            labels = split.labels
            if len(labels) and not 0 <= labels.min() <= labels.max() < self.classes:
                raise DataError(
                    f"{self.name}: expected labels from 0 to {self.classes - 1}, got {labels.min()}"
                    f" to {labels.max()} in {part}"
                )
        if self.train.images.shape[1:] != self.test.images.shape[1:]:
            raise DataError(
                f"{self.name}: expected training and test images of one size, got"
                f" {self.train.images.shape[1:]} and {self.test.images.shape[1:]}"
            )
        if self.class_names and len(self.class_names) != self.classes:
            raise DataError(
                f"{self.name}: expected {self.classes} class names or none, got"
                f" {len(self.class_names)}"
            )


def digits() -> TrainTestImages:
    """Return the UCI handwritten digits: 1797 images of 8 by 8 pixels, included in this package.

    The images are the same as in scikit-learn: the test part of the original set. The split is
    fixed: with the images of each class in a fixed random order, one class after the other, every
    fifth image is a test image. Both parts keep the original order. The same writers are in both
    parts, so a test score does not measure generalization to new writers.

    Returns
    -------
    TrainTestImages
        The image set, with 10 classes and a `scale` of 16.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.digits().train.images.shape
    (1437, 8, 8)
    >>> len(xgrad.data.digits().test)
    360
    """
    from importlib.resources import files  # not at the top: slow to import

    with (
        files("xgrad.data").joinpath("digits.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        images, labels = arrays["images"], arrays["labels"]
    # Raw bits, because releases of NumPy may differ in their permutations.
    order = np.lexsort((np.random.Philox(key=0).random_raw(len(labels)), labels))
    test = np.zeros(len(labels), bool)
    test[order[::5]] = True
    return TrainTestImages(
        "digits",
        Split(images[~test], labels[~test]),
        Split(images[test], labels[test]),
        classes=10,
        scale=16.0,
        source=(
            "E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine"
            " Learning Repository, 1998, doi:10.24432/C50P49, CC BY 4.0"
        ),
        class_names=tuple("0123456789"),
    )


def mnist(
    folder: str | os.PathLike[str] | None = None, *, download: bool = True
) -> TrainTestImages:
    """Return MNIST: 60 000 training and 10 000 test images of handwritten digits, 28 by 28 pixels.

    The four original IDX files are searched for in `folder` if it is given, or else in the folder
    named by the environment variable ``XGRAD_DATA`` if it is set, or else in the user's cache
    (``$XDG_CACHE_HOME/xgrad``, by default ``~/.cache/xgrad``; on Windows ``%LOCALAPPDATA%/xgrad``).
    Subfolders ``mnist`` and ``MNIST/raw`` are searched, then the folder itself, for each file as it
    is or with ``.gz``. Files that are not in the cache are downloaded into it. Each call verifies
    the SHA-256 of the contents of all files.

    Parameters
    ----------
    folder : str or os.PathLike, optional
        The only folder to search.
    download : bool, default True
        Whether missing files may be downloaded into the cache.

    Returns
    -------
    TrainTestImages
        The image set, with 10 classes and a `scale` of 255.

    Raises
    ------
    DataNotFoundError
        If a file is not found, and the download fails or is not allowed.
    DataError
        If a file is damaged, or belongs to another data set.

    Examples
    --------
    >>> import xgrad
    >>> try:
    ...     data = xgrad.data.mnist(download=False)
    ... except xgrad.data.DataError:  # not on this machine
    ...     data = xgrad.data.digits()
    """
    return _published("mnist", folder, download)


def fashion_mnist(
    folder: str | os.PathLike[str] | None = None, *, download: bool = True
) -> TrainTestImages:
    """Return Fashion-MNIST: 60 000 training and 10 000 test images of clothes, 28 by 28 pixels.

    Its files have the same names as MNIST's, and are searched for as in `mnist`, in the folders
    ``fashion-mnist`` and ``FashionMNIST/raw``. Each call verifies the MD5 of the contents of all
    files.

    Parameters
    ----------
    folder : str or os.PathLike, optional
        The only folder to search.
    download : bool, default True
        Whether missing files may be downloaded into the cache.

    Returns
    -------
    TrainTestImages
        The image set, with 10 classes and a `scale` of 255.

    Raises
    ------
    DataNotFoundError
        If a file is not found, and the download fails or is not allowed.
    DataError
        If a file is damaged, or belongs to another data set.

    Examples
    --------
    >>> import xgrad
    >>> try:
    ...     data = xgrad.data.fashion_mnist(download=False)
    ... except xgrad.data.DataError:  # not on this machine
    ...     data = xgrad.data.digits()
    """
    return _published("fashion-mnist", folder, download)


def kmnist(
    folder: str | os.PathLike[str] | None = None, *, download: bool = True
) -> TrainTestImages:
    """Return Kuzushiji-MNIST: 60 000 training and 10 000 test images of hiragana, 28 by 28 pixels.

    There are ten hiragana. The files have the same names as MNIST's, and are searched for as in
    `mnist`, in the folders ``kmnist`` and ``KMNIST/raw``, compressed as published. Each call
    verifies the SHA-256 of the compressed files.

    Parameters
    ----------
    folder : str or os.PathLike, optional
        The only folder to search.
    download : bool, default True
        Whether missing files may be downloaded into the cache.

    Returns
    -------
    TrainTestImages
        The image set, with 10 classes and a `scale` of 255.

    Raises
    ------
    DataNotFoundError
        If a file is not found, and the download fails or is not allowed.
    DataError
        If a file is damaged, or belongs to another data set.

    Examples
    --------
    >>> import xgrad
    >>> try:
    ...     data = xgrad.data.kmnist(download=False)
    ... except xgrad.data.DataError:  # not on this machine
    ...     data = xgrad.data.digits()
    """
    return _published("kmnist", folder, download)


def emnist(
    split: str = "balanced", folder: str | os.PathLike[str] | None = None, *, download: bool = True
) -> TrainTestImages:
    """Return a split of EMNIST: images of handwritten digits and letters, 28 by 28 pixels.

    - ``balanced``: digits, capitals and lowercase letters, equally often. Lowercase letters that
      look like their capitals are merged with them.
    - ``byclass``: all 62 classes, as often as they were written.
    - ``bymerge``: the classes of ``balanced``, as often as they were written.
    - ``letters``: the 26 letters, with capitals and lowercase letters merged.
    - ``digits``: digits. ``mnist``: digits, as many as in MNIST.

    Images are upright, although the files hold them transposed; labels of ``letters`` begin with 0,
    although the files begin with 1. The published archive ``gzip.zip`` (562 MB), or files from it
    under their names in it, are searched for as in `mnist`, in the folders ``emnist`` and
    ``EMNIST/raw``, and in a folder ``gzip`` inside each. Each call verifies the MD5 of the
    compressed files.

    Parameters
    ----------
    split : str, default "balanced"
        One of the splits above.
    folder : str or os.PathLike, optional
        The only folder to search.
    download : bool, default True
        Whether missing files may be downloaded into the cache.

    Returns
    -------
    TrainTestImages
        The image set, with 47, 62, 47, 26, 10 or 10 classes and a `scale` of 255.

    Raises
    ------
    ValueError
        If there is no such split.
    DataNotFoundError
        If a file is not found, and the download fails or is not allowed.
    DataError
        If a file is damaged, or belongs to another data set.

    Examples
    --------
    >>> import xgrad
    >>> try:
    ...     names = xgrad.data.emnist("letters", download=False).class_names
    ... except xgrad.data.DataError:  # not on this machine
    ...     names = tuple("abcdefghijklmnopqrstuvwxyz")
    >>> len(names)
    26
    """
    if not isinstance(split, str) or f"emnist-{split}" not in SETS:
        splits = ", ".join(
            name.removeprefix("emnist-") for name in SETS if name.startswith("emnist-")
        )
        raise ValueError(f"emnist: expected a split out of {splits}, got {shown(split)}")
    return _published(f"emnist-{split}", folder, download)


#: Functions that return published image sets, by their names in `xgrad train`.
PUBLISHED: dict[str, Callable[..., TrainTestImages]] = {
    "mnist": mnist,
    "fashion-mnist": fashion_mnist,
    "kmnist": kmnist,
    **{
        name: partial(emnist, name.removeprefix("emnist-"))
        for name in SETS
        if name.startswith("emnist-")
    },
}


def _published(name: str, folder: str | os.PathLike[str] | None, download: bool) -> TrainTestImages:
    """Return a published image set from its files, downloaded if necessary and allowed."""
    known = SETS[name]
    arrays = read_arrays(name, folder, download)
    train, test = (
        Split(
            np.ascontiguousarray(x.transpose(0, 2, 1)) if known.transposed else x,
            y - np.uint8(known.first_label),
        )
        for x, y in zip(arrays[::2], arrays[1::2], strict=True)
    )
    return TrainTestImages(
        name, train, test, len(known.class_names), 255.0, known.source, known.class_names
    )
