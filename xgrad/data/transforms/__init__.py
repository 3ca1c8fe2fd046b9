"""Transforms of images, as a dataset or a training loop calls them.

Except for `ToTensor`, they take tensors of shape (..., channels, height, width): an image, or a
batch of images, which all get the same crop or flip. NumPy arrays of this shape become tensors on
the default device. Random transforms draw from the generator of `xgrad.manual_seed`, on the host:
the same seed gives the same images on every device, and in a `xgrad.data.DataLoader` with any
number of workers. They read these numbers, and so belong before a captured step, not into it.
"""

from xgrad.data.transforms.augmentation import (
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomVerticalFlip,
)
from xgrad.data.transforms.deterministic import (
    CenterCrop,
    Compose,
    Lambda,
    Normalize,
    Pad,
    ToTensor,
)
from xgrad.data.transforms.resizing import Resize
from xgrad.support import hints

__all__ = [
    "CenterCrop",
    "Compose",
    "Lambda",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "Resize",
    "ToTensor",
]
hints.install(__name__)
