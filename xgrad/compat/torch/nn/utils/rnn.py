"""`torch.nn.utils.rnn`: sequences of different lengths, padded or packed."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.tensor import torch_function
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.nn.utils import rnn
from xgrad.nn.utils.rnn import PackedSequence

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

pack_padded_sequence = torch_function(rnn.pack_padded_sequence)
pack_sequence = torch_function(rnn.pack_sequence)
pad_packed_sequence = torch_function(rnn.pad_packed_sequence)
pad_sequence = torch_function(rnn.pad_sequence)
unpack_sequence = torch_function(rnn.unpack_sequence)
unpad_sequence = torch_function(rnn.unpad_sequence)


def __getattr__(name: str) -> Any:
    raise_missing("torch.nn.utils.rnn", name)
