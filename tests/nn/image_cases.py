"""Rows of the table of modules for layers of images and volumes: see `module_cases.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn.module_case import ModuleCase, case


def _distinct(*shape: int) -> np.ndarray:
    """Return numbers in a random order, no two of them close."""
    count = int(np.prod(shape))
    return np.random.default_rng(1).permutation(np.linspace(-2, 2, count)).reshape(shape)


def _indices(*shape: int) -> np.ndarray:
    """Return different indices below 16 in the last axes of an array of shape (channels, ...)."""
    rng, count = np.random.default_rng(2), int(np.prod(shape[1:]))
    return np.stack([rng.permutation(16)[:count] for _ in range(shape[0])]).reshape(shape)


_VOLUME, _SINGLE = (2, 2, 4, 3, 3), (2, 4, 3, 3)
_BY_AXES: dict[int, tuple[int, ...]] = {1: (2, 4, 6), 2: (2, 4, 4, 6), 3: (1, 2, 4, 4, 3)}

CONVOLUTION = [
    case("Conv3d", 2, 3, 2, of=(_VOLUME,)),
    case("Conv3d", 2, 4, (2, 1, 3), of=(_SINGLE,), stride=2, padding=(1, 0, 1), groups=2),
    case("Conv3d", 2, 1, 2, of=((0, 2, 3, 3, 3),), dilation=2, bias=False),
    case("Conv3d", 1, 1, 3, of=((1, 1, 3, 2, 4),), padding="same"),
    *[
        case("Conv3d", 1, 2, 2, of=((1, 1, 3, 3, 2),), padding=1, padding_mode=mode)
        for mode in ("reflect", "replicate", "circular")
    ],
    case("ConvTranspose3d", 2, 2, 2, of=((1, 2, 2, 3, 2),)),
    case(
        "ConvTranspose3d",
        2,
        2,
        2,
        of=((2, 2, 1, 2),),
        stride=2,
        padding=1,
        output_padding=(0, 1, 1),
        groups=2,
    ),
]
POOLING = [
    case("MaxPool3d", 2, of=(_VOLUME,)),
    case("MaxPool3d", (2, 3, 1), of=(_SINGLE,), stride=1, padding=(1, 1, 0), ceil_mode=True),
    case("AvgPool3d", 2, of=(_VOLUME,)),
    case("AvgPool3d", 2, of=(_SINGLE,), stride=1, padding=1, count_include_pad=False),
    case("AvgPool3d", 2, of=(_SINGLE,), divisor_override=5),
    case("AvgPool2d", 2, of=((1, 2, 4, 5),), divisor_override=3),
    case("AdaptiveAvgPool3d", (2, None, 1), of=(_VOLUME,)),
    case("AdaptiveMaxPool3d", (3, None, 2), of=(_VOLUME,)),
    *[
        case(f"{name}{len(shape)}d", *args, of=(_distinct(2, *shape),), return_indices=True)
        for shape in ((7,), (5, 4), (4, 3, 3))
        for name, *args in (["MaxPool", 2, 1], ["AdaptiveMaxPool", 2])
    ],
    *[
        case(f"MaxUnpool{len(shape)}d", 2, of=((2, *shape), _indices(2, *shape)), call=call)
        for shape, call in (
            ((8,), {}),
            ((8,), {"output_size": (17,)}),
            ((2, 2), {}),
            ((1, 2, 2), {}),
        )
    ],
    *[
        case(f"LPPool{len(shape)}d", norm, 2, of=(np.abs(_distinct(2, *shape)),), **options)
        for shape in ((7,), (5, 4), (4, 3, 3))
        for norm, options in ((2, {}), (3.0, {"stride": 1}), (1.0, {"ceil_mode": True}))
    ],
]
NORMALIZATION = [
    *[
        case("BatchNorm3d", 2, of=(_VOLUME,), **options)
        for options in ({}, {"affine": False}, {"bias": False}, {"track_running_stats": False})
    ],
    *[
        case("InstanceNorm3d", 2, of=(shape,), **options)
        for shape in (_VOLUME, _SINGLE)
        for options in ({}, {"affine": True, "track_running_stats": True})
    ],
    case("BatchNorm1d", 4, of=((5, 4),), bias=False),
    case("BatchNorm2d", 4, of=((2, 4, 3, 2),), bias=False),
    case("InstanceNorm1d", 4, of=((2, 4, 3),), affine=True, bias=False),
    case("InstanceNorm2d", 4, of=((2, 4, 3, 2),), affine=True, bias=False),
    case("GroupNorm", 2, 4, of=((2, 4, 3),), bias=False),
    case("LocalResponseNorm", 2, of=((2, 4, 3),), alpha=0.5),
    case("LocalResponseNorm", 3, of=((1, 4, 2, 3),), alpha=0.5, beta=0.5, k=2.0),
]
PADDING = [
    *[
        case(f"{kind}Pad{axes}d", padding, *value, of=(_BY_AXES[axes],))
        for kind, *value in (
            ["Constant", 2.5],
            ["Zero"],
            ["Reflection"],
            ["Replication"],
            ["Circular"],
        )
        for axes in (1, 2, 3)
        for padding in (1, (2, 0) * axes)
    ],
    case("ZeroPad2d", (-1, 1, 0, -2), of=((3, 4, 5),)),
    case("ReflectionPad2d", 1, of=((3, 4, 5),)),
]
RESIZING = [
    *[
        case("Upsample", of=(shape,), **options)
        for shape, options in (
            ((2, 3, 5), {"size": 8}),
            ((2, 2, 5), {"scale_factor": 1.5, "mode": "linear"}),
            ((1, 2, 3, 4), {"scale_factor": 2}),
            ((1, 2, 3, 4), {"scale_factor": (2, 1.5), "mode": "bilinear"}),
            ((1, 2, 3, 4), {"size": (5, 3), "mode": "bicubic", "align_corners": True}),
            ((1, 1, 5, 4), {"size": (3, 4), "mode": "area"}),
            ((1, 1, 2, 3, 2), {"scale_factor": 2, "mode": "trilinear"}),
            (
                (1, 2, 7),
                {"scale_factor": 0.6, "mode": "linear", "recompute_scale_factor": True},
            ),
        )
    ],
    case("UpsamplingNearest2d", of=((1, 2, 3, 4),), scale_factor=2),
    case("UpsamplingBilinear2d", of=((1, 2, 3, 4),), size=(5, 6)),
]
FOLDING = [
    case("Unfold", 2, of=((2, 2, 4, 3),)),
    case("Unfold", (3, 2), of=((2, 5, 4),), dilation=(1, 2), padding=1, stride=2),
    case("Fold", (4, 3), 2, of=((2, 8, 6),)),
    case("Fold", (3, 2), 2, of=((4, 6),), padding=1, stride=(2, 1)),
    case("PixelShuffle", 2, of=((2, 8, 2, 3),)),
    case("PixelUnshuffle", 3, of=((2, 3, 6),)),
    case("ChannelShuffle", 3, of=((2, 6, 2),)),
]


def _axis(name: str, *shapes: tuple[int, ...], axis: int) -> ModuleCase:
    """Return a case of a module whose option `axis` is PyTorch's `dim`."""
    torch: dict[str, Any] = {"axis": None, "dim": axis}
    return case(name, of=shapes, axis=axis, torch=torch)


VECTORS = [
    case("Bilinear", 3, 4, 2, of=((5, 3), (5, 4))),
    case("Bilinear", 3, 1, 2, of=((2, 4, 3), (2, 4, 1)), bias=False),
    case("CosineSimilarity", of=((4, 3), (4, 3))),
    _axis("CosineSimilarity", (4, 3), (4, 3), axis=0),
    case("PairwiseDistance", of=((4, 3), (4, 3))),
    case("PairwiseDistance", 1.0, 0.1, True, of=((4, 3), (4, 3))),
    _axis("Softmin", (2, 3, 4), axis=1),
    *[case("Softmax2d", of=(shape,)) for shape in ((2, 3, 2, 1), (3, 2, 2))],
]
DROPOUT = [
    *[case("Dropout3d", 0.0, of=(shape,)) for shape in ((2, 3, 2, 1, 2), (3, 2, 1, 2))],
    case("AlphaDropout", 0.0, of=((2, 3),)),
    case("FeatureAlphaDropout", 0.0, of=((2, 3, 2),)),
    case("RReLU", 0.25, 0.25, of=((2, 3),)),
]
LOSSES = [
    case(
        "MultiLabelMarginLoss",
        of=((3, 4), np.array([[3, 0, -1, 1], [1, 2, 3, 0], [-1, 0, 1, 2]])),
        reduction=reduction,
    )
    for reduction in ("mean", "sum", "none")
] + [
    case("MultiLabelMarginLoss", of=((4,), np.array([2, 3, -1, 0]))),
    case("TripletMarginWithDistanceLoss", of=((4, 3), (4, 3), (4, 3))),
    case("TripletMarginWithDistanceLoss", of=((4, 3), (4, 3), (4, 3)), margin=2.0, swap=True),
]
CASES = [
    *CONVOLUTION,
    *POOLING,
    *NORMALIZATION,
    *PADDING,
    *RESIZING,
    *FOLDING,
    *VECTORS,
    *DROPOUT,
    *LOSSES,
]
