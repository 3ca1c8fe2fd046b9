"""The networks of ``xgrad train``, for rows of grey values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import xgrad
from xgrad import nn
from xgrad.core.tensor import Tensor

Shape = tuple[int, int]


class Images(nn.Module):
    """Rows of grey values as images of one channel, of shape (N, 1, height, width)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, rows: Tensor) -> Tensor:
        return rows.reshape((-1, 1, *self.shape))

    def extra_repr(self) -> str:
        return f"{self.shape[0]}, {self.shape[1]}"


class Patches(nn.Module):
    """Images as sequences of square patches, of shape (N, patches, width).

    The elements of a sequence are linear functions of the patches.
    """

    def __init__(self, shape: Shape, width: int) -> None:
        super().__init__()
        size = 4 if min(shape) >= 16 else 2
        if shape[0] % size or shape[1] % size:
            raise ValueError(
                f"expected images with sides that are multiples of {size}, got {shape}: choose cnn"
            )
        self.count = (shape[0] // size) * (shape[1] // size)
        self.embedding = nn.Conv2d(1, width, size, stride=size)

    def forward(self, images: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(images)
        return embedded.flatten(2).mT


class MixerBlock(nn.Module):
    """A block of an MLP-Mixer.

    One MLP acts over the patches of each channel, and one over the channels of each patch.
    """

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.MLP([patches, 2 * width, patches])
        self.channels = nn.MLP([width, 2 * width, width])

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).mT).mT
        result: Tensor = x + self.channels(self.norm2(x))
        return result


class Mean(nn.Module):
    """The mean over patches."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(axis=1)


def lenet(shape: Shape, classes: int) -> nn.Module:
    """Return LeNet-5 with ReLU and maximum pooling.

    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document
    recognition", Proceedings of the IEEE 86, 1998.
    """
    height, width = ((n // 2 - 4) // 2 for n in shape)
    if min(height, width) < 1:
        raise ValueError(
            f"expected images of at least 12x12 pixels, got {shape[0]}x{shape[1]}: choose cnn"
        )
    return nn.Sequential(
        Images(shape),
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *(nn.Linear(16 * height * width, 120), nn.ReLU()),
        *(nn.Linear(120, 84), nn.ReLU()),
        nn.Linear(84, classes),
    )


def cnn(shape: Shape, classes: int) -> nn.Module:
    """Return a network of four convolutions with batch normalization."""

    def convolution(inputs: int, outputs: int) -> list[nn.Module]:
        return [
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        ]

    return nn.Sequential(
        Images(shape),
        *(*convolution(1, 16), nn.MaxPool2d(2)),
        *(*convolution(16, 32), nn.MaxPool2d(2)),
        *(*convolution(32, 64), *convolution(64, 64)),
        *(nn.AdaptiveMaxPool2d(1), nn.Flatten()),
        nn.Linear(64, classes),
    )


def mixer(shape: Shape, classes: int, width: int = 64, depth: int = 4) -> nn.Module:
    """Return a small MLP-Mixer.

    I. Tolstikhin and others, "MLP-Mixer: an all-MLP architecture for vision", NeurIPS 2021.
    """
    patches = Patches(shape, width)
    blocks = [MixerBlock(patches.count, width) for _ in range(depth)]
    return nn.Sequential(
        Images(shape), patches, *blocks, nn.LayerNorm(width), Mean(), nn.Linear(width, classes)
    )


class Positions(nn.Module):
    """Sequences of patches plus a learned vector for each position."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        # The weights are as large as the embeddings.
        self.weight = nn.Parameter(xgrad.random.normal((patches, width), 0.0, 0.5))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight


def vit(shape: Shape, classes: int, width: int = 64, depth: int = 4) -> nn.Module:
    """Return a small vision transformer, which averages over the patches.

    A. Dosovitskiy and others, "An image is worth 16x16 words: transformers for image recognition at
    scale", ICLR 2021; the average is from X. Zhai and others, "Scaling vision transformers", CVPR
    2022.
    """
    patches = Patches(shape, width)
    blocks = [
        nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        for _ in range(depth)
    ]
    embedding = (patches, Positions(patches.count, width))
    return nn.Sequential(
        Images(shape), *embedding, *blocks, nn.LayerNorm(width), Mean(), nn.Linear(width, classes)
    )


def shifted(rows: Tensor, shape: Shape, most: int, background: float) -> Tensor:
    """Return images, each shifted by up to `most` pixels along both axes, for training."""
    (height, width), device = shape, rows.device
    widths = ((0, 0), (most, most), (most, most))
    images = xgrad.pad(rows.reshape((-1, *shape)), widths, constant_values=background)
    start = xgrad.random.randint(0, 2 * most + 1, (2, len(rows), 1), device=device)
    y = start[0, ...] + xgrad.arange(height, device=device)
    x = start[1, ...] + xgrad.arange(width, device=device)
    index = y[:, :, None] * (width + 2 * most) + x[:, None, :]
    return xgrad.take_along_axis(
        images.reshape((len(rows), -1)), index.reshape((len(rows), -1)), axis=1
    )


#: The networks for images; the only other network is "mlp".
IMAGE_MODELS: dict[str, Callable[[Shape, int], nn.Module]] = {
    "lenet": lenet,
    "cnn": cnn,
    "mixer": mixer,
    "vit": vit,
}
MODELS = ("mlp", *IMAGE_MODELS)


def make_model(
    name: str, shape: Shape, classes: int, hidden: Sequence[int], activation: str, dropout: float
) -> nn.Module:
    """Return a network of `MODELS` for rows of grey values.

    Raise ValueError if it does not fit the shape of the images.
    """
    if name != "mlp":
        return IMAGE_MODELS[name](shape, classes)
    return nn.MLP([math.prod(shape), *hidden, classes], activation, dropout)
