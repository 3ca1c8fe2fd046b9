"""Cases of losses, and of distances of vectors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from xgrad import asarray
from xgrad.nn import functional as F
from xgrad.parity.op_case import OpCase, Sample, Torch, a, ints, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import COMPOSED, SUMS, Tolerance

CLASSES = ints(0, 2, 1, 1)
POSITIVE = a(4, 3, low=0.1, high=0.9)
SIGNS = np.array([[1, -1, 1], [-1, 1, 1], [1, 1, -1], [-1, -1, 1]])
WEIGHTS = np.array([0.5, 2.0, 1.5])


def _case(
    name: str,
    tolerance: Tolerance,
    *samples: Sample,
    torch: Torch = "",
    fn: Any = None,
    **fields: Any,
) -> OpCase:
    function = name.split(" ")[0]
    torch = f"nn.functional.{function}" if torch == "" else torch
    return op_case(name, tolerance, *samples, fn=fn or getattr(F, function), torch=torch, **fields)


def _each(*inputs: Any, **options: Any) -> Sample:
    """Return a sample without a reduction; the table of modules tests reductions."""
    return sample(*inputs, reduction="none", **options)


def _sum_over_alignments(x: Any, blank: int = 0) -> Any:
    """Return the CTC loss of the labels 1, 2 for two sequences, as a sum over all alignments."""
    paths = [
        path
        for path in itertools.product(range(3), repeat=x.shape[0])
        if [k for k, _ in itertools.groupby(path) if k != blank] == [1, 2]
    ]
    logs = [sum(x[t, :, k] for t, k in enumerate(path)) for path in paths]
    return -torch.logsumexp(torch.stack(logs), 0)


CASES: list[OpCase] = [
    _case(
        "ctc_loss",
        COMPOSED,
        sample((4, 2, 3)),
        sample((2, 2, 3)),
        sample((3, 2, 3), layout="transposed"),
        fn=lambda x: F.ctc_loss(
            x,
            asarray([[1, 2], [1, 2]], device=x.device),
            [x.shape[0]] * 2,
            [2, 2],
            reduction="none",
        ),
        torch=_sum_over_alignments,
    ),
    # classes
    _case(
        "cross_entropy",
        COMPOSED,
        *[sample((4, 3), CLASSES, reduction=reduction) for reduction in ("mean", "sum", "none")],
        sample((3,), np.array(1)),
        sample((2, 3, 2), ints([0, 2], [1, 1])),
        sample((4, 3), CLASSES, label_smoothing=0.1),
        sample(np.array([[1e4, -1e4], [1e4, -1e4]]), ints(0, 1)),
        sample((2, 3), ints(0, 2), layout="transposed"),
    ),
    _case(
        "cross_entropy of weights",
        COMPOSED,
        _each((4, 3), CLASSES, WEIGHTS),
        sample((4, 3), CLASSES, ignore_index=1),
        sample((2, 3, 2), ints([0, 2], [1, 1]), WEIGHTS, ignore_index=0, label_smoothing=0.1),
        torch=None,  # PyTorch has no gradient of the weights
    ),
    _case(
        "cross_entropy of probabilities",
        COMPOSED,
        _each((4, 3), POSITIVE),
        sample((4, 3), POSITIVE, WEIGHTS, label_smoothing=0.1),
        sample((3,), POSITIVE[0]),
        sample((4, 3), POSITIVE, layout="transposed"),
    ),
    _case(
        "nll_loss",
        SUMS,
        _each((4, 3), CLASSES),
        sample((3,), np.array(1)),
        sample((2, 3, 2), ints([0, 2], [1, 1]), ignore_index=1),
        sample((2, 3), ints(0, 2), layout="transposed"),
    ),
    _case("nll_loss of weights", SUMS, _each((4, 3), CLASSES, WEIGHTS), torch=None),
    _case(
        "multi_margin_loss",
        COMPOSED,
        _each((4, 3), CLASSES),
        sample((3,), np.array(1)),
        sample((2, 3), ints(0, 2), layout="transposed"),
        sample((4, 3), CLASSES, p=2, margin=0.5),
    ),
    _case(
        "multilabel_soft_margin_loss",
        COMPOSED,
        _each((4, 3), POSITIVE),
        sample((4, 3), POSITIVE, WEIGHTS),
    ),
    # numbers
    _case(
        "mse_loss",
        SUMS,
        sample((2, 3), (2, 3)),
        sample((4,), (4,), reduction="sum"),
        sample((4,), (4,), reduction="none"),
        sample((), ()),
        sample(np.array([1e4, -1e4]), np.array([-1e4, 1e4])),
    ),
    *[
        _case(name, SUMS, _each((4, 3), (4, 3)), sample((2, 3), (2, 3), layout="transposed"))
        for name in ("l1_loss", "huber_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits")
    ],
    _case("binary_cross_entropy", COMPOSED, _each(POSITIVE, 1 - POSITIVE[::-1])),
    _case("kl_div", COMPOSED, _each((4, 3), POSITIVE), _each((4, 3), (4, 3), log_target=True)),
    _case(
        "poisson_nll_loss",
        COMPOSED,
        _each((4, 3), 3 * POSITIVE),
        sample((4, 3), 3 * POSITIVE, full=True),
        sample(POSITIVE, 3 * POSITIVE, log_input=False),
    ),
    _case(
        "gaussian_nll_loss",
        COMPOSED,
        _each((4, 3), (4, 3), POSITIVE),
        sample((4, 3), (4, 3), POSITIVE[:, 0], full=True),
    ),
    # margins
    *[
        _case(name, COMPOSED, _each((4, 3), SIGNS))
        for name in ("hinge_embedding_loss", "soft_margin_loss")
    ],
    _case(
        "cosine_embedding_loss",
        COMPOSED,
        _each((4, 3), (4, 3), SIGNS[:, 0]),
        sample((3,), (3,), np.array(-1), margin=-0.5),
        torch_rtol=(1e-11, "PyTorch adds 1e-12 to the squares of norms"),
    ),
    _case(
        "margin_ranking_loss",
        COMPOSED,
        _each((4, 3), (4, 3), SIGNS),
        sample((4, 3), (4, 3), SIGNS, margin=0.5),
    ),
    _case(
        "triplet_margin_loss",
        COMPOSED,
        _each((4, 3), (4, 3), (4, 3)),
        sample((3,), (3,), (3,), margin=3.0, p=3.0, swap=True),
    ),
    _case(
        "multilabel_margin_loss",
        COMPOSED,
        _each((3, 4), ints([3, 0, -1, 1], [1, 2, 3, 0], [-1, 0, 1, 2])),
        sample((4,), ints(2, 3, -1, 0)),
    ),
    _case(
        "triplet_margin_with_distance_loss",
        COMPOSED,
        _each((4, 3), (4, 3), (4, 3)),
        sample((3,), (3,), (3,), margin=3.0, swap=True),
    ),
    # distances
    _case(
        "cosine_similarity",
        COMPOSED,
        sample((2, 3), (2, 3)),
        sample((3,), (2, 3), axis=-1),
        sample((2, 3), (2, 3), axis=0, layout="transposed"),
        torch=lambda x1, x2, axis=1: torch.nn.functional.cosine_similarity(x1, x2, axis),
    ),
    _case(
        "pairwise_distance",
        COMPOSED,
        sample((2, 3), (2, 3)),
        sample((3,), (2, 3), p=1.0, keepdims=True),
        sample((2, 3), (2, 3), layout="transposed"),
        torch=lambda x1, x2, p=2.0, keepdims=False: torch.nn.functional.pairwise_distance(
            x1, x2, p, keepdim=keepdims
        ),
    ),
    _case(
        "normalize",
        COMPOSED,
        sample((2, 3)),
        sample((3,), axis=0, p=1.0),
        sample((2, 0)),
        sample((2, 3, 2), layout="transposed"),
        torch=lambda x, axis=1, p=2.0: torch.nn.functional.normalize(x, p, axis),
    ),
]
