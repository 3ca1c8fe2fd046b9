"""Odd arguments of public functions raise documented errors, without a hang or a crash.

Known cases are compared with their messages; random ones are a short run of ``python -m tests.fuzz
calls``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import nn

x = xgrad.asarray([1.0, 2.0])
DEEP: Any = 1
for _ in range(3000):
    DEEP = [DEEP]

CALLS: dict[str, Callable[[], Any]] = {
    "dot: expected a tensor": lambda: x.dot((1, 2)),
    "gather: expected a tensor": lambda: x.gather(0, [0]),
    "expand_as: expected a tensor": lambda: x.expand_as([]),
    "view_as: expected a tensor": lambda: x.view_as(3),
    "type_as: expected a tensor": lambda: x.type_as({}),
    r"grad: expected a tensor for inputs\[0\], got int": lambda: xgrad.autograd.grad(x, (3,)),
    r"grad: expected a tensor, or a sequence of tensors, for outputs, got int": lambda: (
        xgrad.autograd.grad(1, x.detach().requires_grad_())
    ),
    r"backward: expected a tensor for tensors\[0\], got str": lambda: xgrad.autograd.backward("x"),
    r"clip_grad_norm_: expected a tensor for parameters\[0\], got int": lambda: (
        nn.utils.clip_grad_norm_([0], 1.0)
    ),
    "uniform_: expected a tensor for tensor, got list": lambda: nn.init.uniform_([1]),
    "normal_: expected a tensor for tensor, got float": lambda: nn.init.normal_(1.0),
    "constant_: expected a tensor for tensor, got ndarray": lambda: nn.init.constant_(
        np.ones(2), 1
    ),
    "xavier_normal_: expected a tensor for tensor, got int": lambda: nn.init.xavier_normal_(1),
    "indexing: expected ints or None in a slice, got str": lambda: x["a":],
    "setitem: expected a tensor, an array or a number for value|expected numbers": lambda: (
        x.__setitem__(0, np.datetime64("2020"))
    ),
    "from_dlpack: expected an array with __dlpack__": lambda: xgrad.from_dlpack(1),
    "Optimizer: expected a dict of defaults": lambda: xgrad.optim.Optimizer([x], 1),
    "default_collate: expected a sequence of samples, got Float32DType": lambda: (
        xgrad.data.default_collate(x.dtype)
    ),
    "TrainTestImages: expected a Split for train, got int": lambda: xgrad.data.TrainTestImages(
        "a", 0, 0, 2, 1.0, ""
    ),
    "dtype: expected one such as xgrad.float32, got '.udc80'": lambda: x.astype("\udc80"),
    "dtype: expected one such as xgrad.float32, got 'nope'": lambda: xgrad.cumulative_sum(
        x, dtype="nope"
    ),
    "dtype: expected one such as xgrad.float32, got ": lambda: nn.Linear(1, 1).to(dtype=DEEP),
    "Device: expected a name such as 'cpu' or 'cuda:1', got ": lambda: xgrad.device(DEEP),
    "Flatten: expected an int for start_axis, got ": lambda: nn.Flatten(DEEP),
    "rand: expected a dtype of xgrad.float32 or xgrad.float64, got ": lambda: xgrad.random.rand(
        2, dtype="\udc80"
    ),
    "linear: expected tensors, got input None": lambda: nn.functional.linear(
        None, xgrad.ones((2, 2))
    ),
    "calculate_gain: expected a real number for param, got 1j": lambda: nn.init.calculate_gain(
        "leaky_relu", 1j
    ),
    "shape: expected an int, got ": lambda: xgrad.zeros(DEEP),
    "uniform: expected an int or a tuple of ints as the shape": lambda: xgrad.random.uniform(DEEP),
    "SGD: expected groups that are dicts": lambda: xgrad.optim.SGD([x], lr=0.1).add_param_group(
        DEEP
    ),
}


@pytest.mark.parametrize("message", CALLS)
def test_wrong_argument_is_named(message: str) -> None:
    with pytest.raises(
        AttributeError if message.startswith("from_dlpack") else TypeError, match=message
    ):
        CALLS[message]()


def test_random_calls_raise_documented_errors() -> None:
    """The variable FUZZ_CALLS sets the number of calls, FUZZ_SEED the seed."""
    count = os.environ.get("FUZZ_CALLS", "1500")
    command = [sys.executable, "-m", "tests.fuzz", "calls", count, os.environ.get("FUZZ_SEED", "0")]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", errors="replace", cwd=root
    )
    assert done.stdout == "done\n", done.stdout + done.stderr[-2000:]
