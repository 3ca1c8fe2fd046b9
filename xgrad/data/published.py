"""The image sets that are published as IDX files: names, digests, mirrors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase, digits

from xgrad.data.idx import DataError, decompress

ALGORITHMS = {"sha256": "SHA-256", "md5": "MD5"}


@dataclass(frozen=True)
class Published:
    """One image set.

    Attributes
    ----------
    title : str
        Its name in messages.
    folders : tuple of str
        Where it may be beneath the cache or a folder of data: the one that downloads go to, torchvision's.
    digests : mapping of str to str
        Of its files, in the order of training images, training labels, test images, test labels: for each name,
        ``algorithm:hexadecimal``. Under a name with ``.gz`` it is the digest of the compressed file as published,
        which is all that is known of it; else of the decompressed contents, for mirrors compress differently.
    class_names : tuple of str
        The classes.
    source : str
        Authors, title and licence.
    megabytes : int
        How much is downloaded. No file of it may be more than twice as large, or ten times when decompressed, and
        nothing is read beyond that.
    archive : str
        Name of the zip file in which the files are published, if they are, each in its folder ``gzip``.
    archive_digest : str
        Its digest, checked when it is downloaded.
    first_label : int
        The label of the first class in the files.
    transposed : bool
        Whether the files have the columns of an image where others have rows.
    """

    title: str
    folders: tuple[str, ...]
    digests: Mapping[str, str]
    class_names: tuple[str, ...]
    source: str
    megabytes: int
    archive: str = ""
    archive_digest: str = ""
    first_label: int = 0
    transposed: bool = False

    @property
    def most(self) -> int:
        """The most bytes that a file of it may have."""
        return 2 * self.megabytes * 10**6

    @property
    def most_decompressed(self) -> int:
        """The most bytes that a file of it may have when it is decompressed."""
        return 10 * self.megabytes * 10**6


def check(name: str, digest: str, raw: bytes, where: str, most: int) -> bytes:
    """Return the decompressed contents of a file of an image set, given its bytes.

    DataError if it is another one, or has over `most` bytes when it is decompressed.
    """
    data = raw if name.endswith(".gz") else decompress(raw, where, most)
    if (got := _digest(digest, data)) != digest:
        algorithm, _, value = digest.partition(":")
        what = "the compressed file as published," if name.endswith(".gz") else "contents"
        advice = "delete the file and fetch it again"
        if other := _identify(name, raw, where, most):
            advice = f"this is the file of {other}: keep the files of each data set in a folder of its own"
        raise DataError(
            f"{where}: expected {what} with the {ALGORITHMS[algorithm]} {value}, got {got.partition(':')[2]}; {advice}"
        )
    return decompress(data, where, most) if name.endswith(".gz") else data


def _digest(like: str, data: bytes) -> str:
    """Return the digest of data, by the algorithm of another digest."""
    algorithm = like.partition(":")[0]
    return f"{algorithm}:{hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()}"


def _identify(name: str, raw: bytes, where: str, most: int) -> str:
    """Return the title of the image set whose file of a name this is, or an empty text."""
    for known in SETS.values():
        for known_name, digest in known.digests.items():
            if known_name.removesuffix(".gz") == name.removesuffix(".gz"):
                data = raw if known_name.endswith(".gz") else decompress(raw, where, most)
                if _digest(digest, data) == digest:
                    return known.title
    return ""


def _mnist_names(*digests: str, end: str = "") -> dict[str, str]:
    parts = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return {f"{part}-ubyte{end}": digest for part, digest in zip(parts, digests, strict=True)}


def _emnist(split: str, class_names: str, *md5: str, first_label: int = 0) -> Published:
    parts = ("train-images-idx3", "train-labels-idx1", "test-images-idx3", "test-labels-idx1")
    return Published(
        f"EMNIST {split}",
        ("emnist", "EMNIST/raw", "gzip", "emnist/gzip", "EMNIST/raw/gzip"),
        {f"emnist-{split}-{part}-ubyte.gz": f"md5:{digest}" for part, digest in zip(parts, md5, strict=True)},
        tuple(class_names),
        "G. Cohen, S. Afshar, J. Tapson, A. van Schaik, EMNIST: an extension of MNIST to handwritten letters, "
        "arXiv:1702.05373, of NIST Special Database 19",
        562,
        archive="gzip.zip",  # with the digest that tensorflow_datasets has in url_checksums/emnist.txt
        archive_digest="sha256:fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e",
        first_label=first_label,
        transposed=True,
    )


_MERGED = digits + ascii_uppercase + "abdefghnqrt"  # other small letters look like their capitals

#: By name, as `xgrad train` takes it.
SETS = {
    "mnist": Published(
        "MNIST",
        ("mnist", "MNIST/raw"),
        _mnist_names(
            "sha256:ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "sha256:65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "sha256:0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "sha256:ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        tuple(digits),
        "Y. LeCun, C. Cortes, C. J. C. Burges, The MNIST database of handwritten digits, CC BY-SA 3.0",
        11,
    ),
    "fashion-mnist": Published(
        "Fashion-MNIST",
        ("fashion-mnist", "FashionMNIST/raw"),
        # Of the contents of the files whose own MD5 are those in the README of zalandoresearch/fashion-mnist.
        _mnist_names(
            "md5:f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "md5:9018921c3c673c538a1fc5bad174d6f9",
            "md5:8181f5470baa50b63fa0f6fddb340f0a",
            "md5:15d484375f8d13e6eb1aabb0c3f46965",
        ),
        ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        "H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST: a novel image dataset for benchmarking machine learning "
        "algorithms, arXiv:1708.07747, MIT",
        31,
    ),
    "kmnist": Published(
        "KMNIST",
        ("kmnist", "KMNIST/raw"),
        # tensorflow_datasets, url_checksums/kmnist.txt, which is of the compressed files
        _mnist_names(
            "sha256:51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
            "sha256:e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
            "sha256:edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
            "sha256:20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
            end=".gz",
        ),
        ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
        "T. Clanuwat and others, Deep learning for classical Japanese literature, arXiv:1812.01718, CC BY-SA 4.0",
        21,
    ),
    # Of the compressed files within the archive: mnists.EMNIST, and EmnistFetcher of Deeplearning4j.
    "emnist-byclass": _emnist(
        "byclass",
        digits + ascii_uppercase + ascii_lowercase,
        "712dda0bd6f00690f32236ae4325c377",
        "ee299a3ee5faf5c31e9406763eae7e43",
        "1435209e34070a9002867a9ab50160d7",
        "7a0f934bd176c798ecba96b36fda6657",
    ),
    "emnist-bymerge": _emnist(
        "bymerge",
        _MERGED,
        "4a792d4df261d7e1ba27979573bf53f3",
        "491be69ef99e1ab1f5b7f9ccc908bb26",
        "8eb5d34c91f1759a55831c37ec2a283f",
        "c13f4cd5211cdba1b8fa992dae2be992",
    ),
    "emnist-balanced": _emnist(
        "balanced",
        _MERGED,
        "4041b0d6f15785d3fa35263901b5496b",
        "7a35cc7b2b7ee7671eddf028570fbd20",
        "6818d20fe2ce1880476f747bbc80b22b",
        "acd3694070dcbf620e36670519d4b32f",
    ),
    "emnist-letters": _emnist(
        "letters",
        ascii_lowercase,
        "8795078f199c478165fe18db82625747",
        "c16de4f1848ddcdddd39ab65d2a7be52",
        "382093a19703f68edac6d01b8dfdfcad",
        "d4108920cd86601ec7689a97f2de7f59",
        first_label=1,
    ),
    "emnist-digits": _emnist(
        "digits",
        digits,
        "d2662ecdc47895a6bbfce25de9e9a677",
        "2223fcfee618ac9c89ef20b6e48bcf9e",
        "a159b8b3bd6ab4ed4793c1cb71a2f5cc",
        "8afde66ea51d865689083ba6bb779fac",
    ),
    "emnist-mnist": _emnist(
        "mnist",
        digits,
        "3663598a39195d030895b6304abb5065",
        "6c092f03c9bb63e678f80f8bc605fe37",
        "fb51b6430fc4dd67deaada1bf25d4524",
        "ae7f6be798a9a5d5f2bd32e078a402dd",
    ),
}
