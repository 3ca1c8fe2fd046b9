"""Cases of the ops of neural networks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import xgrad
from xgrad.backend import philox
from xgrad.nn import functional as F
from xgrad.ops import dropout
from xgrad.ops.gumbel_softmax import of_uniform
from xgrad.parity.op_case import INF, NAN, SPECIAL_VALUES, OpCase, ints, op_case, sample, unary
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import COMPOSED, ROUNDED, SELECTED, SUMS


def _mask(shape: tuple[int, ...], p: float) -> np.ndarray:
    """Return the factors of the dropout cases below, by an independent formula."""
    fractions = (philox.bits(3, 7, 16, math.prod(shape)) + 2.0**15) / 2**16
    return np.where(fractions < p, 0.0, 1 / (1 - p)).reshape(shape)


def _over_last(function: Any) -> Any:
    """Return a normalization over the shape of the weight, by default over the last axis."""
    return lambda x, *rest, **options: function(
        x, tuple(rest[0].shape) if rest else x.shape[-1:], *rest, **options
    )


def _statistics(x: Any, asarray: Any) -> tuple[Any, Any]:
    """Return a running mean and a running variance for the channels of an input."""
    mean, variance = [
        asarray([value] * x.shape[1], dtype=x.dtype, device=x.device) for value in (0.0, 1.0)
    ]
    return mean, variance


CASES: list[OpCase] = [
    op_case(
        "linear",
        SUMS,
        sample((2, 3), (4, 3), (4,)),
        sample((2, 3), (4, 3)),
        sample((3,), (4, 3), (4,)),
        sample((2, 2, 3), (4, 3), (4,)),
        sample((0, 3), (4, 3), (4,)),
        sample((2, 3), (4, 3), (4,), layout="transposed"),
        torch="nn.functional.linear",
    ),
    *[
        op_case(
            name,
            COMPOSED,
            sample((2, 3)),
            sample((2, 3), axis=0),
            sample((4,)),
            sample(np.array([1e4, -1e4, 0.0])),
            sample(np.array([[1e4, 1e4], [-1e4, -1e4]])),
            sample((2, 0)),
            sample((0, 3), axis=0),
            torch=lambda x, axis=-1, name=name: getattr(torch, name)(x, axis),
        )
        for name in ("softmax", "log_softmax")
    ],
    op_case(
        "softmin",
        COMPOSED,
        sample((2, 3)),
        sample((2, 3), axis=0),
        sample(np.array([1e4, -1e4, 0.0])),
        fn=F.softmin,
        torch=lambda x, axis=-1: torch.nn.functional.softmin(x, axis),
    ),
    op_case(
        "bilinear",
        SUMS,
        sample((2, 3), (2, 4), (5, 3, 4), (5,)),
        sample((3,), (4,), (2, 3, 4)),
        sample((2, 2, 3), (2, 2, 1), (2, 3, 1), (2,), layout="transposed"),
        sample((0, 3), (0, 4), (2, 3, 4)),
        fn=F.bilinear,
        torch="nn.functional.bilinear",
    ),
    *[
        op_case(
            name,
            COMPOSED,
            *samples,
            sample((3, 5), (5,)),
            sample((5,)),
            sample((2, 3, 5), (5,)),
            sample((2, 3, 4), (3, 4)),
            sample((0, 5), (5,)),
            sample((3, 5), (5,), layout="transposed"),
            sample((2, 4), eps=1.0),
            fn=_over_last(getattr(F, name)),
            torch=lambda x, *rest, name=name, **options: _over_last(
                getattr(torch.nn.functional, name)
            )(x, *rest, **options),
        )
        for name, samples in (
            (
                "layer_norm",
                [sample((3, 5), (5,), (5,)), sample(np.array([[1e4, 10001.0, 9999.0]]))],
            ),
            ("rms_norm", [sample(np.array([[1e4, 3e4]]))]),
        )
    ],
    op_case(
        "group_norm",
        COMPOSED,
        sample((2, 4, 3), 2, (4,), (4,)),
        sample((3, 8), 2, (8,), (8,)),
        sample((2, 4, 3, 2), 1),
        sample((0, 4, 3), 2),
        sample((3, 8), 2, layout="transposed"),
        fn=F.group_norm,
        torch="nn.functional.group_norm",
    ),
    op_case(
        "batch_norm",
        COMPOSED,
        sample((5, 4), (4,), (4,)),
        sample((3, 4, 2), (4,), (4,)),
        sample((3, 4, 2, 2)),
        sample((0, 4), (4,)),
        sample((5, 4), (4,), (4,), layout="transposed"),
        fn=lambda x, weight=None, bias=None: F.batch_norm(x, None, None, weight, bias, True),
        torch=lambda x, weight=None, bias=None: torch.nn.functional.batch_norm(
            x, None, None, weight, bias, True
        ),
    ),
    op_case(
        "batch_norm with running statistics",
        COMPOSED,
        sample((5, 4), (4,), (4,)),
        sample((3, 4, 2)),
        fn=lambda x, weight=None, bias=None: F.batch_norm(
            x, *_statistics(x, xgrad.asarray), weight, bias, True
        ),
        torch=lambda x, weight=None, bias=None: torch.nn.functional.batch_norm(
            x, *_statistics(x, torch.asarray), weight, bias, True
        ),
    ),
    op_case(
        "instance_norm",
        COMPOSED,
        sample((2, 4, 3), (4,), (4,)),
        sample((2, 4, 3, 2)),
        sample((0, 4, 2)),
        fn=lambda x, weight=None, bias=None: F.instance_norm(x, None, None, weight, bias),
        torch=lambda x, weight=None, bias=None: torch.nn.functional.instance_norm(
            x, None, None, weight, bias
        ),
    ),
    unary(
        "gelu",
        COMPOSED,
        fn=F.gelu,
        torch="nn.functional.gelu",
        torch_rtol=(1e-8, "1 + erf cancels for negative numbers"),
        low=-5,
        high=5,
        special_values=(*SPECIAL_VALUES[:-3], -INF, NAN),
    ),  # at inf, PyTorch's derivative is NaN
    unary(
        "gelu by tanh",
        COMPOSED,
        fn=lambda x: F.gelu(x, "tanh"),
        torch=lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        special_values=(*SPECIAL_VALUES[:-3], -INF, NAN),
    ),  # at inf, PyTorch's derivative is NaN here, too
    *[
        unary(name, COMPOSED, fn=getattr(F, name), torch=f"nn.functional.{name}", low=-5, high=5)
        for name in (
            "silu",
            "mish",
            "elu",
            "selu",
            "leaky_relu",
            "hardtanh",
            "relu6",
            "hardswish",
            "logsigmoid",
            "softshrink",
            "hardshrink",
        )
    ],
    unary(
        "hardsigmoid",
        COMPOSED,
        fn=F.hardsigmoid,
        torch="nn.functional.hardsigmoid",
        low=-5,
        high=5,
        special_values=SPECIAL_VALUES[:-1],
        torch_rtol=(1e-7, "PyTorch's derivative is 1/6 in float32"),
    ),
    unary(
        "softsign",
        COMPOSED,
        fn=F.softsign,
        torch="nn.functional.softsign",
        special_values=SPECIAL_VALUES[:5],
    ),
    unary(
        "tanhshrink",
        COMPOSED,
        fn=F.tanhshrink,
        torch="nn.functional.tanhshrink",
        low=1,
        high=5,
        special_values=SPECIAL_VALUES[:4],
    ),
    op_case(
        "celu",
        COMPOSED,
        sample((2, 3), alpha=0.5),
        sample((4,), alpha=-2.0),
        sample(()),
        fn=F.celu,
        torch="nn.functional.celu",
    ),
    op_case(
        "rrelu in evaluation",
        COMPOSED,
        sample((2, 3)),
        sample((4,), lower=0.5, upper=0.75, layout="reversed"),
        sample(()),
        fn=F.rrelu,
        torch="nn.functional.rrelu",
    ),
    op_case(
        "prelu",
        COMPOSED,
        sample((2, 3, 2), (3,)),
        sample((4,), (1,)),
        sample((2, 3), (3,), layout="transposed"),
        sample((0, 3), (3,)),
        sample((), (1,)),
        fn=F.prelu,
        torch="nn.functional.prelu",
    ),
    op_case(
        "softplus of a sharpness",
        COMPOSED,
        sample((2, 3), beta=2.0),
        sample((2, 3), beta=-0.5),
        sample((4,), beta=2.0, threshold=1.0),
        fn=F.softplus,
        torch="nn.functional.softplus",
    ),
    op_case(
        "glu",
        COMPOSED,
        sample((2, 6)),
        sample((4, 3), axis=0),
        sample((0, 2)),
        fn=F.glu,
        torch=lambda x, axis=-1: torch.nn.functional.glu(x, axis),
    ),
    op_case(
        "threshold",
        SELECTED,
        sample((2, 3), 0.5, 7.0),
        sample((4,), -0.5, -1.0),
        fn=F.threshold,
        torch="nn.functional.threshold",
    ),
    op_case(
        "embedding",
        SELECTED,
        sample(ints(2, 0, 2), (3, 2)),
        sample(ints([1], [0]), (3, 2)),
        sample(ints(2, 1), (3, 2), layout="transposed"),
        fn=F.embedding,
        torch="nn.functional.embedding",
    ),
    op_case(
        "embedding_bag",
        SUMS,
        *[sample(ints([2, 0, 2], [1, 1, 0]), (3, 2), mode=mode) for mode in ("sum", "mean", "max")],
        sample(ints(2, 0, 2, 1), (3, 2), ints(0, 3, 3), mode="sum"),
        sample(ints(2, 0, 2, 1), (3, 2), ints(0, 1), mode="max", padding_idx=2),
        sample(ints(2, 0, 2, 1), (3, 2), ints(0, 3), layout="transposed"),
        fn=F.embedding_bag,
        torch="nn.functional.embedding_bag",
    ),
    op_case(
        "embedding_bag of weights",
        SUMS,
        sample(ints(2, 0, 2, 1), (3, 2), ints(0, 3, 3), (4,)),
        sample(ints([2, 0], [2, 1]), (3, 2), None, (2, 2)),
        fn=lambda x, weight, offsets, factors: F.embedding_bag(
            x, weight, offsets, mode="sum", per_sample_weights=factors
        ),
        torch=lambda x, weight, offsets, factors: torch.nn.functional.embedding_bag(
            x, weight, offsets, mode="sum", per_sample_weights=factors
        ),
    ),
    op_case(
        "gumbel_softmax of uniform numbers",
        COMPOSED,
        sample((2, 3), np.linspace(0.1, 0.9, 6).reshape(2, 3)),
        sample((2, 0), np.zeros((2, 0))),
        fn=lambda x, noise: of_uniform(x, noise, 0.7, False, -1),
        torch=lambda x, noise: torch.softmax((x - torch.log(-torch.log(noise))) / 0.7, -1),
    ),
    op_case(
        "dropout of a seed",
        ROUNDED,
        sample((2, 3)),
        sample((5, 7), layout="transposed"),
        sample((2, 4, 2), layout="reversed"),
        sample((0, 3)),
        sample(()),
        fn=lambda x: dropout._dropout(x, seed=3, call=7, device=x.device, p=0.2),
        torch=lambda x: x * torch.tensor(_mask(x.shape, 0.2)),
    ),
]
