"""Cases of attention."""

from __future__ import annotations

from typing import Any

import numpy as np

import xgrad
from xgrad.ops import attention
from xgrad.ops.dropout import dropout_mask
from xgrad.parity.op_case import INF, OpCase, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import ATTENTION

LATER = np.where(np.triu(np.ones((3, 3)), 1) > 0, -INF, 0.0)


def _of_earlier(query: xgrad.Tensor, key: xgrad.Tensor, value: xgrad.Tensor) -> xgrad.Tensor:
    mask = xgrad.triu(xgrad.full((3, 3), -INF, dtype=query.dtype, device=query.device), k=1)
    return attention.scaled_dot_product_attention(query, key, value, mask)


def _of_seed(query: xgrad.Tensor, key: xgrad.Tensor, value: xgrad.Tensor) -> xgrad.Tensor:
    random: dict[str, Any] = {"p": 0.3, "seed": 3, "call": 7, "device": query.device}
    return attention._attention(query, key, value, causal=False, scale=0.5, **random)


def _with_torch(query: Any, key: Any, value: Any) -> Any:
    """Return attention by PyTorch, with the dropout mask that xgrad draws on the CPU."""
    weights = torch.softmax(query @ key.mT / 2, -1)
    cpu = xgrad.Device("cpu")
    mask = dropout_mask(cpu.xp, np.empty(weights.shape), 3, 7, cpu, 0.3)
    return (weights * torch.tensor(mask, dtype=weights.dtype)) @ value


CASES: list[OpCase] = [
    op_case(
        "scaled_dot_product_attention",
        ATTENTION,
        *[
            sample((*batch, 3, 4), (*batch, 5, 4), (*batch, 5, 2))
            for batch in ((), (2,), (2, 2), (0,))
        ],
        sample((3, 4), (3, 4), (3, 2), is_causal=True),
        sample((2, 3, 4), (5, 4), (5, 2), scale=0.1),
        sample((2, 3, 4), (2, 5, 4), (2, 5, 2), layout="transposed"),
        fn=attention.scaled_dot_product_attention,
        torch="nn.functional.scaled_dot_product_attention",
    ),
    op_case(
        "scaled_dot_product_attention with a mask",
        ATTENTION,
        sample((2, 3, 4), (2, 3, 4), (2, 3, 2), (3, 3)),
        sample((2, 3, 4), (2, 5, 4), (2, 5, 2), (2, 1, 5)),
        fn=attention.scaled_dot_product_attention,
        torch="nn.functional.scaled_dot_product_attention",
    ),
    op_case(
        "scaled_dot_product_attention with an infinite mask",
        ATTENTION,
        sample((3, 4), (3, 4), (3, 2)),
        fn=_of_earlier,
        torch=lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, torch.tensor(LATER, dtype=q.dtype)
        ),
    ),
    op_case(
        "scaled_dot_product_attention of shared heads",
        ATTENTION,
        sample((4, 3, 4), (2, 5, 4), (2, 5, 2), enable_gqa=True),
        # not causal, where a query with one key has the gradient 0, of which rounding leaves 1e-16
        sample((2, 2, 3, 4), (2, 1, 5, 4), (2, 1, 5, 2), enable_gqa=True),
        fn=attention.scaled_dot_product_attention,
        torch="nn.functional.scaled_dot_product_attention",
    ),
    op_case(
        "scaled_dot_product_attention of a seed",
        ATTENTION,
        sample((2, 3, 4), (2, 5, 4), (2, 5, 2)),
        fn=_of_seed,
        torch=_with_torch,
    ),
]
