"""`torch.nn.utils.rnn`: sequences of different lengths in one tensor."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.compat.torch.tensor import as_torch
from xgrad.compat.torch.unavailable import raise_missing

__all__ = ["pad_sequence", "unpad_sequence"]


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Stack sequences, each padded along its first axis to the length of the longest."""
    sequences = list(sequences)
    if padding_side not in ("left", "right"):
        raise ValueError(f"pad_sequence: expected 'left' or 'right', got {padding_side!r}")
    longest = max(x.shape[0] for x in sequences)
    padded = []
    for x in sequences:
        missing = longest - x.shape[0]
        first = (missing, 0) if padding_side == "left" else (0, missing)
        value = padding_value if x.dtype.kind in "fc" else int(padding_value)
        padded.append(xgrad.pad(x, (first, *[(0, 0)] * (x.ndim - 1)), constant_values=value))
    return as_torch(xgrad.stack(padded, axis=0 if batch_first else 1))


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Return the sequences without padding at the end."""
    axis = 0 if batch_first else 1
    parts = xgrad.unstack(padded_sequences, axis=axis)
    return [as_torch(x[: int(n), ...]) for x, n in zip(parts, lengths, strict=True)]


def __getattr__(name: str) -> Any:
    raise_missing("torch.nn.utils.rnn", name)
