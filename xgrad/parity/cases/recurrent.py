"""Cases of the ops of recurrent layers."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.ops import recurrent
from xgrad.parity.op_case import OpCase, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import RECURRENCES

HIDDEN = 2


def _with_torch(
    name: str, x: Any, weight: Any, *states: Any, bias: Any = None, reverse: bool = False
) -> Any:
    """Return the hidden states and the last cell of PyTorch's layer.

    The input projection of PyTorch's layer is the identity.
    """
    x = torch.flip(x, (0,)) if reverse else x
    first = tuple([state[None, ...] for state in states])
    weights = [torch.eye(x.shape[-1], dtype=x.dtype), weight]
    weights += [] if bias is None else [torch.zeros_like(bias), bias]
    hx = first if len(first) > 1 else first[0]
    out, _, *cell = getattr(torch, name)(
        x, hx, weights, bias is not None, 1, 0.0, False, False, False
    )
    out = torch.flip(out, (0,)) if reverse else out
    return (out, cell[0][0]) if cell else out


def _case(name: str, fn: Any, gates: int, states: int, **options: Any) -> OpCase:
    """Return the case of a layer: numbers of steps, batch sizes, orders of time, and layouts."""
    shapes: list[tuple[tuple[int, int], dict[str, Any]]] = [
        ((3, 2), {}),
        ((3, 2), {"reverse": True}),
        ((1, 2), {}),
        ((2, 0), {}),
    ]
    rows = gates * HIDDEN
    samples = [
        sample((*shape, rows), (rows, HIDDEN), *[(shape[1], HIDDEN)] * states, **order, **options)
        for shape, order in shapes
    ]
    transposed = sample(
        (3, 2, rows), (rows, HIDDEN), *[(2, HIDDEN)] * states, layout="transposed", **options
    )
    short = name.split(" ")[0]

    def reference(*inputs: Any, nonlinearity: str = "", **order: bool) -> Any:
        return _with_torch(f"rnn_{nonlinearity}" if nonlinearity else short, *inputs, **order)

    return op_case(name, RECURRENCES, *samples, transposed, fn=fn, torch=reference)


def _gru_of_bias(
    x: xgrad.Tensor, weight: xgrad.Tensor, h: xgrad.Tensor, bias: xgrad.Tensor
) -> xgrad.Tensor:
    return recurrent.gru(x, weight, h, bias)


CASES: list[OpCase] = [
    _case("lstm", recurrent.lstm, 4, 2),
    _case("gru", recurrent.gru, 3, 1),
    op_case(
        "gru with a bias",
        RECURRENCES,
        sample((3, 2, 3 * HIDDEN), (3 * HIDDEN, HIDDEN), (2, HIDDEN), (3 * HIDDEN,)),
        fn=_gru_of_bias,
        torch=lambda x, weight, h, bias: _with_torch("gru", x, weight, h, bias=bias),
    ),
    _case("rnn", recurrent.rnn, 1, 1, nonlinearity="tanh"),
    _case("rnn of relu", recurrent.rnn, 1, 1, nonlinearity="relu"),
]
