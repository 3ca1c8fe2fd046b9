"""Labelled image sets, as NumPy arrays on the host."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt

from xgrad.data.dataset import Dataset
from xgrad.data.idx import DataError, DataNotFoundError, parse_idx
from xgrad.data.published import SETS, Published, check
from xgrad.support.files import read
from xgrad.support.hints import shown


@dataclass(frozen=True, eq=False, repr=False)
class Split(Dataset[tuple[npt.NDArray[np.uint8], int]]):
    """Images and their labels, a dataset whose samples are pairs of an image and a class number.

    Attributes
    ----------
    images : numpy.ndarray
        Grey values, uint8, of shape (N, H, W).
    labels : numpy.ndarray
        Class numbers, uint8, of shape (N,).

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
    class_names : tuple of str
        What each class is, such as ``"Trouser"``; empty where it is not known.

    Raises
    ------
    DataError
        If a label is none of the classes, the two parts have images of different sizes, or the number of names is
        another than that of classes.

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
                raise TypeError(f"TrainTestImages: expected a Split for {part}, got {type(split).__name__}")
            labels = split.labels
            if len(labels) and not 0 <= labels.min() <= labels.max() < self.classes:
                raise DataError(
                    f"{self.name}: expected labels from 0 to {self.classes - 1}, got {labels.min()} to {labels.max()} "
                    f"in {part}"
                )
        if self.train.images.shape[1:] != self.test.images.shape[1:]:
            raise DataError(
                f"{self.name}: expected training and test images of one size, got {self.train.images.shape[1:]} and "
                f"{self.test.images.shape[1:]}"
            )
        if self.class_names and len(self.class_names) != self.classes:
            raise DataError(f"{self.name}: expected {self.classes} class names or none, got {len(self.class_names)}")


def mnist(folder: str | os.PathLike[str] | None = None, *, download: bool = True) -> TrainTestImages:
    """Return MNIST: 60 000 training and 10 000 test images of handwritten digits, 28 by 28 pixels.

    The four original IDX files are looked for in `folder` if it is given, else in the folder that the
    environment variable ``XGRAD_DATA`` names if it is set, else in the user's cache
    (``$XDG_CACHE_HOME/xgrad``, by default ``~/.cache/xgrad``; on Windows ``%LOCALAPPDATA%/xgrad``): in
    its ``mnist``, its ``MNIST/raw``, and the folder itself, each file as it is or with ``.gz``. What the
    cache lacks is downloaded into it. The SHA-256 of every file's contents is checked at every call.

    Parameters
    ----------
    folder : str or os.PathLike, optional
        The only folder to look into.
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
    return _published("mnist", folder, download)


def fashion_mnist(folder: str | os.PathLike[str] | None = None, *, download: bool = True) -> TrainTestImages:
    """Return Fashion-MNIST: 60 000 training and 10 000 test images of clothes, 28 by 28 pixels.

    Its files, which have the names of MNIST's, are looked for as `mnist` says, in the folders ``fashion-mnist`` and
    ``FashionMNIST/raw``. The MD5 of every file's contents is checked at every call.

    Parameters
    ----------
    folder : str or os.PathLike, optional
        The only folder to look into.
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
    ...     names = xgrad.data.fashion_mnist(download=False).class_names
    ... except xgrad.data.DataError:
    ...     names = ("T-shirt/top", "Trouser")
    >>> names[1]
    'Trouser'
    """
    return _published("fashion-mnist", folder, download)


def kmnist(folder: str | os.PathLike[str] | None = None, *, download: bool = True) -> TrainTestImages:
    """Return Kuzushiji-MNIST: 60 000 training and 10 000 test images of ten hiragana, 28 by 28 pixels.

    Its files, which have the names of MNIST's, are looked for as `mnist` says, in the folders ``kmnist`` and
    ``KMNIST/raw``, and compressed as they are published: the SHA-256 of the compressed files is checked at every call.

    Parameters
    ----------
    folder : str or os.PathLike, optional
        The only folder to look into.
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
    ...     names = xgrad.data.kmnist(download=False).class_names
    ... except xgrad.data.DataError:
    ...     names = ("o", "ki")
    >>> names[1]
    'ki'
    """
    return _published("kmnist", folder, download)


def emnist(
    split: str = "balanced", folder: str | os.PathLike[str] | None = None, *, download: bool = True
) -> TrainTestImages:
    """Return a split of EMNIST: images of handwritten digits and letters, 28 by 28 pixels.

    Images are upright, whereas the files hold them transposed, and the labels of `letters`, which begin with 1 in the
    files, begin with 0. The published archive ``gzip.zip`` (562 MB), or files of it as they are in it, are looked for
    as `mnist` says, in the folders ``emnist`` and ``EMNIST/raw``, and in a folder ``gzip`` of each. The MD5 of the
    compressed files is checked at every call.

    Parameters
    ----------
    split : {"balanced", "byclass", "bymerge", "letters", "digits", "mnist"}
        Which of the splits: digits, capitals and small letters, of which those that look like their capitals are
        merged with them, equally often; all 62 classes apart; the merged ones as often as they were written; the 26
        letters, capitals and small ones merged; digits; digits as many as in MNIST.
    folder : str or os.PathLike, optional
        The only folder to look into.
    download : bool, default: True
        Whether the network may be used to fill the cache.

    Returns
    -------
    TrainTestImages
        With 47, 62, 47, 26, 10 or 10 classes, and a `scale` of 255.

    Raises
    ------
    ValueError
        If there is no such split.
    DataNotFoundError
        If a file is not found and was not, or could not be, downloaded.
    DataError
        If a file does not hold what it should.

    Examples
    --------
    >>> import xgrad
    >>> try:
    ...     names = xgrad.data.emnist("letters", download=False).class_names
    ... except xgrad.data.DataError:
    ...     names = tuple("abcdefghijklmnopqrstuvwxyz")
    >>> len(names)
    26
    """
    if f"emnist-{split}" not in SETS:
        splits = ", ".join(name.removeprefix("emnist-") for name in SETS if name.startswith("emnist-"))
        raise ValueError(f"emnist: expected a split out of {splits}, got {shown(split)}")
    return _published(f"emnist-{split}", folder, download)


#: The functions that return published image sets, by the name that `xgrad train` takes.
PUBLISHED: dict[str, Callable[..., TrainTestImages]] = {
    "mnist": mnist,
    "fashion-mnist": fashion_mnist,
    "kmnist": kmnist,
    **{name: partial(emnist, name.removeprefix("emnist-")) for name in SETS if name.startswith("emnist-")},
}


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
        class_names=tuple("0123456789"),
    )


def _published(name: str, folder: str | os.PathLike[str] | None, download: bool) -> TrainTestImages:
    """Return a published image set from its files, which are downloaded where that is allowed and needed."""
    known = SETS[name]
    chosen = os.environ.get("XGRAD_DATA") or None if folder is None else folder
    root = _cache() if chosen is None else Path(os.path.expanduser(chosen))  # as it is where nobody has that name
    folders = [*(root / each for each in known.folders), root]

    files = {file: _find(known, file, folders) for file in known.digests}
    if missing := [file for file in files if files[file] is None]:
        if chosen is not None or not download:
            raise _not_found(known, missing, folders)
        files |= _download(name, known, missing, folders)
    train_images, train_labels, test_images, test_labels = (
        parse_idx(
            BytesIO(check(file, digest, *_read(known, file, files[file]), known.most_decompressed)), str(files[file])
        )
        for file, digest in known.digests.items()
    )
    if known.transposed:
        train_images, test_images = (np.ascontiguousarray(x.transpose(0, 2, 1)) for x in (train_images, test_images))
    train, test = (
        Split(images, labels - np.uint8(known.first_label))
        for images, labels in ((train_images, train_labels), (test_images, test_labels))
    )
    return TrainTestImages(name, train, test, len(known.class_names), 255.0, known.source, known.class_names)


def _find(known: Published, file: str, folders: Sequence[Path]) -> Path | None:
    """Return where a file is: by itself, or in the archive of the image set."""
    names = [file] if file.endswith(".gz") else [file, f"{file}.gz"]
    names += [known.archive] if known.archive else []
    return next(filter(Path.is_file, (folder / name for folder in folders for name in names)), None)


def _read(known: Published, name: str, path: Path | None) -> tuple[bytes, str]:
    """Return the bytes of a file, and its name for messages."""
    assert path is not None
    if path.name != known.archive:
        try:
            return read(path, known.most_decompressed), str(path)
        except ValueError as error:
            raise DataError(str(error)) from error
    with path.open("rb") as file:
        try:
            with ZipFile(file) as archive, archive.open(f"gzip/{name}") as packed:
                return packed.read(known.most + 1), f"{path}/gzip/{name}"
        except Exception as error:  # zipfile has no list of what it raises for a malformed file
            raise DataError(
                f"{path}: expected the archive of {known.title}, got another or a damaged one ({error}); delete it "
                "and fetch it again"
            ) from error


def _download(name: str, known: Published, missing: Sequence[str], folders: Sequence[Path]) -> dict[str, Path | None]:
    """Fill the cache, and return where each missing file is then."""
    from xgrad.data import mirrors  # not at the top: urllib takes half as long to import as NumPy

    urls = mirrors.MIRRORS[name.partition("-")[0] if known.archive else name]
    wanted = {known.archive: known.archive_digest} if known.archive else {file: known.digests[file] for file in missing}
    files: dict[str, Path | None] = {}
    for file, digest in wanted.items():
        path = folders[0] / (file if file.endswith((".gz", ".zip")) else f"{file}.gz")
        accept = partial(check, file, digest, where=path.name, most=known.most_decompressed)
        if failures := mirrors.fetch(path, urls, accept, known.most):
            raise _not_found(known, [file], folders, failures)
        files |= dict.fromkeys(missing, path) if known.archive else {file: path}
    return files


def _cache() -> Path:
    base = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    folder = base or os.path.expanduser("~/.cache")
    if folder.startswith("~"):
        raise DataNotFoundError("expected a home folder for the cache, got none: set XGRAD_DATA to a folder of data")
    return Path(folder) / "xgrad"


def _not_found(
    known: Published, missing: Sequence[str], folders: Sequence[Path], failures: Sequence[str] = ()
) -> DataNotFoundError:
    tried = f", nor at a mirror ({'; '.join(failures)})" if failures else ""
    form = "each as it is or with .gz" if not missing[0].endswith((".gz", ".zip")) else "as published"
    archive = f", or {known.archive}, which has them" if known.archive else ""
    return DataNotFoundError(
        f"{known.title}: files not found: {', '.join(missing)} ({form}){archive}, in "
        f"{', '.join(map(str, folders))}{tried}; set XGRAD_DATA to a folder that holds the files, or let "
        "them be downloaded (with network, download=True, and neither a folder nor XGRAD_DATA), or use "
        "xgrad.data.digits(), which needs no download"
    )
