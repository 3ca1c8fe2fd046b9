"""Catalog of image sets published as IDX files: titles, file names, digests and classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase, digits


@dataclass(frozen=True)
class ImageSet:
    """One published image set."""

    title: str  # name in messages
    # in the cache or a data folder: the target of downloads, then torchvision's folders
    folders: tuple[str, ...]
    #: ``algorithm:hexadecimal`` of each file, in the order of training images, training labels,
    #: test images, test labels. A name with ``.gz`` has the digest of the compressed file as
    #: published, since no other digest is known; other names have the digest of the decompressed
    #: contents, since mirrors compress differently.
    digests: Mapping[str, str]
    class_names: tuple[str, ...]
    source: str  # authors, title and licence
    megabytes: int  # size of the download
    archive: str = ""  # name of the zip file that holds the files in its folder ``gzip``, if any
    archive_digest: str = ""  # verified after a download
    first_label: int = 0  # label of the first class in the files
    transposed: bool = False  # whether the files hold the columns of an image as rows

    @property
    def max_bytes(self) -> int:
        """The largest size of a file; no more is read."""
        return 2 * self.megabytes * 10**6

    @property
    def max_decompressed(self) -> int:
        """The largest size of a file after decompression; no more is decompressed."""
        return 10 * self.megabytes * 10**6


def _mnist_names(*digests: str, end: str = "") -> dict[str, str]:
    parts = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return {f"{part}-ubyte{end}": digest for part, digest in zip(parts, digests, strict=True)}


def _emnist(split: str, class_names: str, *md5: str, first_label: int = 0) -> ImageSet:
    parts = ("train-images-idx3", "train-labels-idx1", "test-images-idx3", "test-labels-idx1")
    return ImageSet(
        f"EMNIST {split}",
        ("emnist", "EMNIST/raw", "gzip", "emnist/gzip", "EMNIST/raw/gzip"),
        {
            f"emnist-{split}-{part}-ubyte.gz": f"md5:{digest}"
            for part, digest in zip(parts, md5, strict=True)
        },
        tuple(class_names),
        "G. Cohen, S. Afshar, J. Tapson, A. van Schaik, EMNIST: an extension of MNIST to"
        " handwritten letters, arXiv:1702.05373, of NIST Special Database 19",
        562,
        archive="gzip.zip",  # url_checksums/emnist.txt of tensorflow_datasets
        archive_digest="sha256:fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e",
        first_label=first_label,
        transposed=True,
    )


# without the lowercase letters that look like their capitals
_MERGED = digits + ascii_uppercase + "abdefghnqrt"

#: Image sets by their names in `xgrad train`.
SETS = {
    "mnist": ImageSet(
        "MNIST",
        ("mnist", "MNIST/raw"),
        _mnist_names(
            "sha256:ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "sha256:65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "sha256:0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "sha256:ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        tuple(digits),
        "Y. LeCun, C. Cortes, C. J. C. Burges, The MNIST database of handwritten digits, CC"
        " BY-SA 3.0",
        11,
    ),
    "fashion-mnist": ImageSet(
        "Fashion-MNIST",
        ("fashion-mnist", "FashionMNIST/raw"),
        # Contents of the files that have the MD5 in the README of zalandoresearch/fashion-mnist.
        _mnist_names(
            "md5:f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "md5:9018921c3c673c538a1fc5bad174d6f9",
            "md5:8181f5470baa50b63fa0f6fddb340f0a",
            "md5:15d484375f8d13e6eb1aabb0c3f46965",
        ),
        (
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
        "H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST: a novel image dataset for benchmarking"
        " machine learning algorithms, arXiv:1708.07747, MIT",
        31,
    ),
    "kmnist": ImageSet(
        "KMNIST",
        ("kmnist", "KMNIST/raw"),
        # Compressed files: url_checksums/kmnist.txt of tensorflow_datasets.
        _mnist_names(
            "sha256:51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
            "sha256:e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
            "sha256:edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
            "sha256:20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
            end=".gz",
        ),
        ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
        "T. Clanuwat and others, Deep learning for classical Japanese literature, arXiv:1812.01718,"
        " CC BY-SA 4.0",
        21,
    ),
    # Compressed files within the archive: mnists.EMNIST, and EmnistFetcher of Deeplearning4j.
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
