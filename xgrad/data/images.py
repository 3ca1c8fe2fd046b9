"""Labelled image sets, as NumPy arrays on the host."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from xgrad.data.idx import DataError, DataNotFoundError, parse_idx, read_bytes

# Of the decompressed contents, since mirrors compress differently.
_SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Images and their labels.

    Attributes
    ----------
    images : numpy.ndarray
        Grey values, uint8, of shape (N, H, W).
    labels : numpy.ndarray
        Class numbers, uint8, of shape (N,).

    Examples
    --------
    >>> import xgrad
    >>> len(xgrad.data.digits().test)
    360
    """

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise DataError(
                f"Split: expected a label for each image, got {len(self.images)} images and "
                f"{len(self.labels)} labels; pass arrays of one length"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Split(images={self.images.shape}, labels={self.labels.shape})"


@dataclass(frozen=True, eq=False)
class TrainTestImages:
    """A labelled image set.

    Attributes
    ----------
    name : str
        Its short name.
    train, test : Split
        What to fit and what to judge by.
    classes : int
        The number of classes; labels run from 0 to ``classes - 1``.
    scale : float
        The largest grey value: ``images / scale`` lies in [0, 1].
    source : str
        Authors, title and licence.

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


def mnist(folder: str | os.PathLike[str] | None = None, *, download: bool = True) -> TrainTestImages:
    """Return MNIST: 60 000 training and 10 000 test images of handwritten digits, 28 by 28 pixels.

    The four original IDX files are looked for in `folder` if it is given, else in the folder that the
    environment variable ``XGRAD_DATA`` names if it is set, else in the user's cache
    (``$XDG_CACHE_HOME/xgrad``, by default ``~/.cache/xgrad``; on Windows ``%LOCALAPPDATA%/xgrad``): in
    the folder itself, its ``mnist`` and its ``MNIST/raw``, each file as it is or with ``.gz``. What the
    cache lacks is downloaded into it. The SHA-256 of every file's contents is checked at every call.

    Parameters
    ----------
    folder : str or os.PathLike, optional
        The only place to look.
    download : bool, default: True
        Whether the network may be used to fill the cache.

    Returns
    -------
    TrainTestImages
        With 10 classes and a `scale` of 255.

    Raises
    ------
    DataNotFoundError
        If a file is not found and was not, or could not be, downloaded.
    DataError
        If a file does not hold what it should.

    Examples
    --------
    >>> import xgrad
    >>> try:
    ...     data = xgrad.data.mnist(download=False)
    ... except xgrad.data.DataNotFoundError:
    ...     data = xgrad.data.digits()
    >>> data.classes
    10
    """
    chosen = os.environ.get("XGRAD_DATA") or None if folder is None else folder
    root = _cache() if chosen is None else Path(chosen).expanduser()
    places = (root, root / "mnist", root / "MNIST" / "raw")

    files: dict[str, Path] = {}
    for name in _SHA256:
        candidates = (place / file for place in places for file in (name, f"{name}.gz"))
        if path := next(filter(Path.is_file, candidates), None):
            files[name] = path
    missing = [name for name in _SHA256 if name not in files]
    if missing and (chosen is not None or not download):
        raise _not_found(missing, places)
    if missing:
        from xgrad.data.mirrors import fetch  # not at the top: urllib takes half as long to import as NumPy

        for name in missing:
            files[name] = root / "mnist" / f"{name}.gz"
            if failures := fetch(files[name], _SHA256[name]):
                raise _not_found([name], places, failures)

    train_images, train_labels, test_images, test_labels = (_load(name, files[name]) for name in _SHA256)
    return TrainTestImages(
        "mnist",
        Split(train_images, train_labels),
        Split(test_images, test_labels),
        classes=10,
        scale=255.0,
        source="Y. LeCun, C. Cortes, C. J. C. Burges, The MNIST database of handwritten digits, CC BY-SA 3.0",
    )


def digits() -> TrainTestImages:
    """Return the UCI handwritten digits: 1797 images of 8 by 8 pixels, which come with this package.

    They are the ones that scikit-learn carries, the test part of the original set. The split is this
    library's own and always the same: with the images of each class in a fixed random order, one class
    after the other, every fifth is a test image. Both parts keep the original order. The split does not
    separate writers, so a test score tells nothing about unseen ones.

    Returns
    -------
    TrainTestImages
        With 10 classes and a `scale` of 16.

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
    # The raw bits, because NumPy may change what its permutations make of them.
    order = np.lexsort((np.random.Philox(key=0).random_raw(len(labels)), labels))
    test = np.zeros(len(labels), bool)
    test[order[::5]] = True
    return TrainTestImages(
        "digits",
        Split(images[~test], labels[~test]),
        Split(images[test], labels[test]),
        classes=10,
        scale=16.0,
        source="E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning "
        "Repository, 1998, doi:10.24432/C50P49, CC BY 4.0",
    )


def _cache() -> Path:
    base = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "xgrad"


def _not_found(missing: Sequence[str], places: Sequence[Path], failures: Sequence[str] = ()) -> DataNotFoundError:
    tried = f", nor at a mirror ({'; '.join(failures)})" if failures else ""
    return DataNotFoundError(
        f"MNIST: expected {', '.join(missing)} (each as it is or with .gz), found none of them in "
        f"{', '.join(map(str, places))}{tried}; set XGRAD_DATA to a folder that holds the four files, or let "
        "them be downloaded (with network, download=True, and neither a folder nor XGRAD_DATA), or use "
        "xgrad.data.digits(), which needs no download"
    )


def _load(name: str, path: Path) -> npt.NDArray[np.uint8]:
    content = read_bytes(path)
    if (got := hashlib.sha256(content).hexdigest()) != _SHA256[name]:
        raise DataError(
            f"{path}: expected contents with the SHA-256 {_SHA256[name]}, got {got}; delete the file and fetch it again"
        )
    return parse_idx(content, str(path))
