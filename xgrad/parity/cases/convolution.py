"""Cases of convolution and pooling."""

from __future__ import annotations

import numpy as np

from xgrad.ops import convolution, image_pooling
from xgrad.ops.windows import Window
from xgrad.parity.op_case import OpCase, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import SELECTED, SUMS

_CUBE = Window((3, 4, 2), (2, 2, 1), (1, 2, 1), ((1, 1), (0, 0), (0, 0)), (1, 1, 1))
_TIES = np.array(
    [[[0.0, 0, 1, 1, 0, 1], [1, 1, 1, 0, 0, 0], [0, 1, 0, 1, 0, 0], [0, 0, 1, 0, 1, 1]]]
)


def _distinct(*shape: int) -> np.ndarray:
    """Return numbers in a random order, no two of them close."""
    return (
        np.random.default_rng(1).permutation(np.linspace(-2, 2, int(np.prod(shape)))).reshape(shape)
    )


CASES: list[OpCase] = [
    op_case(
        "conv1d",
        SUMS,
        sample((2, 2, 5), (3, 2, 2), (3,)),
        sample((2, 5), (3, 2, 3), stride=2, padding=1),
        sample((1, 4, 6), (4, 2, 2), dilation=3, groups=2),
        sample((0, 2, 5), (3, 2, 2), (3,)),
        sample((2, 2, 5), (2, 2, 3), padding="same", layout="transposed"),
        fn=convolution.conv1d,
        torch="nn.functional.conv1d",
        complex=True,
    ),
    op_case(
        "conv2d",
        SUMS,
        sample((2, 2, 4, 3), (3, 2, 2, 3), (3,)),
        sample((1, 2, 5, 4), (2, 2, 3, 2), stride=(2, 1), padding=(1, 2)),
        sample((1, 1, 5, 5), (1, 1, 2, 2), stride=2, dilation=2),
        sample((2, 2, 3, 3), (4, 1, 2, 2), (4,), groups=2),
        sample((2, 3, 3, 2), (2, 3, 1, 1)),
        sample((2, 4, 4), (1, 2, 3, 3), padding=1, layout="reversed"),
        sample((1, 2, 3, 3), (2, 2, 3, 3), (2,), padding=1, layout="transposed"),
        fn=convolution.conv2d,
        torch="nn.functional.conv2d",
    ),
    op_case(
        "convolution over three axes",
        SUMS,
        sample((2, 1, 3, 4, 2), (2, 1, 2, 2, 1), (2,)),
        fn=lambda x, w, b: convolution.convolution(x, w, b, window=_CUBE, groups=1),
        torch=lambda x, w, b: torch.nn.functional.conv3d(
            x, w, b, stride=_CUBE.stride, padding=(1, 0, 0)
        ),
    ),
    op_case(
        "conv_transpose1d",
        SUMS,
        sample((2, 2, 3), (2, 3, 2), (3,)),
        sample((2, 4), (2, 1, 3), stride=2, padding=1, output_padding=1),
        fn=convolution.conv_transpose1d,
        torch="nn.functional.conv_transpose1d",
    ),
    op_case(
        "conv_transpose2d",
        SUMS,
        sample((2, 2, 2, 3), (2, 3, 2, 2), (3,)),
        sample((1, 4, 3, 2), (4, 1, 3, 2), stride=(2, 1), padding=(1, 0), groups=2),
        sample((1, 1, 2, 2), (1, 2, 2, 2), stride=2, output_padding=2, dilation=3),
        fn=convolution.conv_transpose2d,
        torch="nn.functional.conv_transpose2d",
    ),
    op_case(
        "max_pool1d",
        SELECTED,
        sample(_distinct(2, 2, 6), kernel_size=2),
        sample(_distinct(1, 8), kernel_size=3, stride=2, padding=1, dilation=2),
        fn=image_pooling.max_pool1d,
        torch="nn.functional.max_pool1d",
    ),
    op_case(
        "max_pool2d",
        SELECTED,
        sample(_distinct(2, 2, 4, 4), kernel_size=2),
        sample(_distinct(1, 2, 5, 4), kernel_size=3, stride=2, padding=1),
        sample(_distinct(1, 1, 5, 6), kernel_size=(2, 3), stride=(3, 2), ceil_mode=True),
        sample(_distinct(2, 4, 3), kernel_size=(2, 1), layout="transposed"),
        fn=image_pooling.max_pool2d,
        torch="nn.functional.max_pool2d",
    ),
    op_case(
        "max_pool2d of ties",
        SUMS,
        sample(_TIES, kernel_size=2),
        sample(_TIES, kernel_size=3, stride=1, padding=1),
        fn=image_pooling.max_pool2d,
        torch="nn.functional.max_pool2d",
        no_derivative="there is none at ties",
    ),
    op_case(
        "avg_pool1d",
        SUMS,
        sample((2, 2, 6), kernel_size=2),
        sample((1, 7), kernel_size=3, stride=2, padding=1, count_include_pad=False),
        fn=image_pooling.avg_pool1d,
        torch="nn.functional.avg_pool1d",
    ),
    op_case(
        "avg_pool2d",
        SUMS,
        sample((2, 2, 4, 4), kernel_size=2),
        sample((1, 2, 5, 4), kernel_size=3, stride=2, padding=1, ceil_mode=True),
        fn=image_pooling.avg_pool2d,
        torch="nn.functional.avg_pool2d",
    ),
    op_case(
        "adaptive_max_pool1d",
        SELECTED,
        sample(_distinct(2, 3, 6), output_size=3),
        sample(_distinct(3, 7), output_size=5),
        fn=image_pooling.adaptive_max_pool1d,
        torch="nn.functional.adaptive_max_pool1d",
    ),
    op_case(
        "adaptive_avg_pool1d",
        SUMS,
        sample((2, 3, 6), output_size=3),
        sample((3, 7), output_size=5),
        fn=image_pooling.adaptive_avg_pool1d,
        torch="nn.functional.adaptive_avg_pool1d",
    ),
    op_case(
        "adaptive_avg_pool2d",
        SUMS,
        sample((2, 2, 4, 6), output_size=(2, 3)),
        sample((2, 5, 4), output_size=3),
        fn=image_pooling.adaptive_avg_pool2d,
        torch="nn.functional.adaptive_avg_pool2d",
    ),
    op_case(
        "adaptive_max_pool2d",
        SELECTED,
        sample(_distinct(2, 2, 4, 6), output_size=(2, 3)),
        sample(_distinct(2, 5, 4), output_size=3),
        fn=image_pooling.adaptive_max_pool2d,
        torch="nn.functional.adaptive_max_pool2d",
    ),
]
