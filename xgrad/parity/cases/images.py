"""Cases of ops on images and volumes: pooling, padding, folding, interpolation, samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.nn import functional as F
from xgrad.ops import folding, interpolation
from xgrad.ops.windows import Window
from xgrad.parity.op_case import OpCase, Sample, ints, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import COMPOSED, EXACT, SELECTED, SUMS, Tolerance

_PLANE = Window((4, 3), (2, 2), (1, 2), ((1, 1), (0, 0)), (1, 1))


def _distinct(*shape: int) -> np.ndarray:
    """Return numbers in a random order, no two of them close, none of them close to 0."""
    count = int(np.prod(shape))
    numbers = np.linspace(0.5, 2.5, count) * np.resize([1, -1], count)
    return np.random.default_rng(1).permutation(numbers).reshape(shape)


def _positive(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).uniform(0.5, 2, shape)


def _grid(*shape: int, outside: bool = True) -> np.ndarray:
    """Return places in and around an image, away from the places of elements."""
    reach = 1.4 if outside else 0.9
    return np.random.default_rng(3).uniform(-reach, reach, shape)


def _case(name: str, tolerance: Tolerance, *samples: Sample, **fields: Any) -> OpCase:
    """Return the case of a function of `xgrad.nn.functional` with PyTorch's name."""
    function = name.split(" ")[0]
    fields = {"fn": getattr(F, function), "torch": f"nn.functional.{function}", **fields}
    return op_case(name, tolerance, *samples, **fields)


def _indices(name: str, find: Callable[[str], Any]) -> Callable[..., Any]:
    """Return a function of the indices of a maximum pooling."""
    return lambda x, **options: find(name)(x, return_indices=True, **options)[1]


#: Prefixes of maximum poolings, and two sets of options for each.
_MAXIMA: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("max", {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("adaptive_max", {"output_size": 2}, {"output_size": 3}),
]
VOLUMES = [
    _case(
        "conv3d",
        SUMS,
        sample((2, 2, 3, 4, 2), (3, 2, 2, 2, 1), (3,)),
        sample((2, 3, 3, 3), (2, 1, 2, 2, 2), stride=2, padding=1, dilation=(1, 2, 1), groups=2),
        sample((0, 1, 3, 2, 2), (2, 1, 2, 2, 2)),
        sample((1, 2, 3, 2, 2), (1, 2, 3, 1, 1), padding="same", layout="transposed"),
    ),
    _case(
        "conv_transpose3d",
        SUMS,
        sample((1, 2, 2, 2, 1), (2, 2, 2, 1, 2), (2,)),
        sample((2, 2, 1, 2), (2, 1, 2, 2, 2), stride=2, padding=1, output_padding=(1, 1, 0)),
    ),
    _case(
        "max_pool3d",
        SELECTED,
        sample(_distinct(1, 2, 4, 3, 3), kernel_size=(2, 3, 1)),
        sample(_distinct(2, 3, 4, 3), kernel_size=2, padding=1, ceil_mode=True),
    ),
    _case(
        "avg_pool3d",
        SUMS,
        sample((1, 2, 4, 3, 2), kernel_size=2, padding=1),
        sample((2, 3, 3, 3), kernel_size=2, stride=1, divisor_override=3),
    ),
    _case(
        "adaptive_avg_pool3d",
        SUMS,
        sample((1, 2, 4, 3, 2), output_size=2),
        sample((2, 3, 4, 2), output_size=(2, None, 1)),
    ),
    _case(
        "adaptive_max_pool3d",
        SELECTED,
        sample(_distinct(1, 2, 4, 3, 2), output_size=2),
        sample(_distinct(2, 3, 4, 2), output_size=(2, None, 1)),
    ),
]
POOLING = [
    *[
        _case(
            f"{name} indices",
            EXACT,
            sample(_distinct(2, 1, *shape), **options),
            sample(_distinct(2, *shape), layout="transposed", **more),
            fn=_indices(name, lambda name: getattr(F, name)),
            torch=_indices(name, lambda name: getattr(torch.nn.functional, name)),
            differentiable=False,
        )
        for kind, options, more in _MAXIMA
        for name, shape in (
            (f"{kind}_pool1d", (7,)),
            (f"{kind}_pool2d", (5, 4)),
            (f"{kind}_pool3d", (4, 3, 3)),
        )
    ],
    *[
        _case(
            f"max_unpool{len(shape)}d",
            SELECTED,
            sample((1, 2, *shape), indices.reshape(1, 2, *shape), 2),
            sample((2, *shape), indices.reshape(2, *shape), kernel_size=2, output_size=longer),
        )
        for shape, indices, longer in (
            ((2,), ints(0, 3, 1, 2), (5,)),
            ((2, 1), ints(3, 5, 0, 6), (4, 2)),
            ((1, 1, 2), ints(3, 5, 0, 14), (2, 2, 4)),
        )
    ],
    *[
        _case(
            f"lp_pool{len(shape)}d",
            COMPOSED,
            sample(_positive(2, 1, *shape), 2.0, 2),
            sample(_positive(2, *shape), 3.0, 2, stride=1),
            sample(_positive(1, *shape), 1.0, 2, ceil_mode=True, layout="transposed"),
        )
        for shape in ((7,), (5, 4), (4, 3, 3))
    ],
]
PADDING = [
    _case(
        "pad by widths from the last axis",
        EXACT,
        sample((2, 3), pad=(1, 2)),
        sample((2, 3), pad=(1, 0, 2, 1), mode="constant", value=2.5),
        sample((2, 3), pad=(-1, 1, 1, -2)),
        sample((2, 0), pad=(1, 1)),
        sample((), pad=()),
        sample((2, 4), pad=(1, 2), layout="transposed"),
        fn=F.pad,
        torch="nn.functional.pad",
    ),
    *[
        _case(
            f"pad with mode {mode}",
            SUMS,
            sample((2, 4), pad=(2, 1), mode=mode),
            sample((1, 2, 4, 3), pad=(1, 2, 2, 0), mode=mode),
            sample((2, 3, 4), pad=(-1, 2), mode=mode),
            sample((1, 2, 3, 2, 4), pad=(1, 1, 1, 0, 2, 2), mode=mode),
            sample((2, 4), pad=(2, 1), mode=mode, layout="reversed"),
        )
        for mode in ("reflect", "replicate", "circular")
    ],
]
FOLDING = [
    _case(
        "unfold",
        SUMS,
        sample((2, 2, 4, 3), 2),
        sample((2, 5, 4), kernel_size=(3, 2), dilation=(1, 2), padding=1, stride=2),
        sample((0, 2, 3, 3), 2),
        sample((1, 2, 3, 4), 2, layout="transposed"),
    ),
    _case(
        "fold",
        SUMS,
        sample((2, 8, 6), output_size=(4, 3), kernel_size=2),
        sample((4, 6), output_size=(3, 2), kernel_size=2, padding=1, stride=(2, 1)),
        sample((1, 8, 6), output_size=(4, 3), kernel_size=2, layout="transposed"),
    ),
    op_case(
        "windows_unfolded",
        SUMS,
        sample((2, 3, 4, 3)),
        fn=lambda x: folding.windows_unfolded(x, window=_PLANE),
        torch=lambda x: torch.nn.functional.unfold(x, 2, padding=(1, 0), stride=(1, 2)),
    ),
    _case(
        "pixel_shuffle",
        EXACT,
        sample((2, 8, 2, 3), 2),
        sample((9, 1, 2), 3),
        sample((2, 4, 3, 1), 2, layout="transposed"),
    ),
    _case(
        "pixel_unshuffle",
        EXACT,
        sample((2, 1, 4, 6), 2),
        sample((2, 3, 3), 3),
        sample((2, 2, 2, 4), 2, layout="transposed"),
    ),
    _case(
        "channel_shuffle",
        EXACT,
        sample((2, 6, 2), 3),
        sample((1, 4, 2, 3), 2, layout="transposed"),
    ),
]
INTERPOLATION = [
    _case(
        "interpolate by the nearest element",
        SUMS,
        sample((2, 2, 5), size=7),
        sample((1, 2, 4, 3), scale_factor=2),
        sample((1, 1, 6, 5), size=(2, 3), mode="nearest-exact"),
        sample((1, 2, 2, 3, 2), scale_factor=(2, 1, 1.5)),
        sample((0, 2, 3), size=2),
        sample((1, 2, 4, 3), size=4, layout="transposed"),
    ),
    _case(
        "interpolate by lines",
        SUMS,
        sample((2, 2, 5), size=7, mode="linear"),
        sample((1, 2, 4, 3), scale_factor=2, mode="bilinear"),
        sample((1, 2, 4, 3), size=(3, 6), mode="bilinear", align_corners=True),
        sample((1, 1, 2, 3, 2), size=(3, 2, 3), mode="trilinear"),
        sample((1, 2, 7), scale_factor=0.6, mode="linear", recompute_scale_factor=True),
        sample((0, 2, 3), size=2, mode="linear"),
        sample((1, 2, 4, 3), size=5, mode="bilinear", layout="transposed"),
    ),
    _case(
        "interpolate by cubics",
        SUMS,
        sample((1, 2, 4, 3), scale_factor=2, mode="bicubic"),
        sample((1, 2, 5, 6), size=(3, 7), mode="bicubic", align_corners=True),
    ),
    _case(
        "interpolate against aliasing",
        SUMS,
        sample((1, 2, 7, 5), size=(3, 2), mode="bilinear", antialias=True),
        sample((1, 1, 7, 9), size=(4, 3), mode="bicubic", antialias=True),
        sample((1, 1, 3, 4), size=(5, 6), mode="bicubic", antialias=True),
    ),
    _case("interpolate by areas", SUMS, sample((1, 2, 5, 6), size=(3, 2), mode="area")),
    _case(
        "upsample",
        SUMS,
        sample((1, 2, 2, 3), scale_factor=2),
        torch="nn.functional.interpolate",
    ),
    op_case(
        "resample",
        SUMS,
        sample((2, 3)),
        fn=lambda x: interpolation.resample(
            x, axis=1, taps=interpolation.Taps(3, ((0, 2), (1, 1)), ((0.5, 1.0), (2.0, 0.0)))
        ),
        torch=lambda x: torch.stack([x[:, 0] / 2 + 2 * x[:, 1], x[:, 2]], dim=1),
    ),
]
SAMPLING = [
    *[
        _case(
            f"grid_sample by mode {mode}",
            COMPOSED,
            *[
                sample((1, 2, 4, 3), _grid(1, 2, 3, 2), mode, padding, align)
                for padding in ("zeros", "border", "reflection")
                for align in (False, True)
            ],
            *more,
        )
        for mode, more in (
            (
                "bilinear",
                [
                    sample((2, 1, 2, 3, 2), _grid(2, 1, 2, 2, 3), align_corners=False),
                    sample((0, 1, 2, 3), np.zeros((0, 2, 2, 2)), align_corners=True),
                    sample(
                        (1, 2, 4, 3), _grid(1, 2, 3, 2), align_corners=True, layout="transposed"
                    ),
                ],
            ),
            (
                "nearest",
                [sample((1, 1, 2, 3, 2), _grid(1, 1, 2, 2, 3), "nearest", align_corners=False)],
            ),
            ("bicubic", []),
        )
    ],
    _case(
        "affine_grid",
        SUMS,
        sample((2, 2, 3), size=(2, 1, 3, 4), align_corners=False),
        sample((1, 2, 3), size=(1, 1, 2, 3), align_corners=True),
        sample((1, 3, 4), size=(1, 1, 2, 1, 3), align_corners=False),
    ),
]
CASES: list[OpCase] = [
    *VOLUMES,
    *POOLING,
    *PADDING,
    *FOLDING,
    *INTERPOLATION,
    *SAMPLING,
    _case(
        "local_response_norm",
        COMPOSED,
        sample((2, 4, 3), 2, alpha=0.5),
        sample((1, 3, 2, 2), 3, alpha=0.5, beta=0.5, k=2.0),
        sample((2, 3, 2), 5, layout="transposed"),
    ),
]
