"""Captured steps on devices without replay run eagerly, with eager results and one warning."""

from __future__ import annotations

import re
import warnings

import pytest

import xgrad
from xgrad import nn
from xgrad.capture import CaptureWarning


@pytest.mark.parametrize("source", ["argument", "state", "default"])
def test_step_on_a_device_that_cannot_replay_runs_eagerly_and_warns_once(
    device: str, source: str
) -> None:
    if device in ("cpu", "cuda"):
        pytest.skip("replays")
    layer, x = nn.Linear(3, 1).to(device=device), xgrad.ones((2, 3), device=device)
    step = {
        "argument": lambda x: 2 * x,
        "state": lambda _: layer(x).detach(),
        "default": lambda _: xgrad.ones(3) * 2,
    }
    captured, argument = xgrad.capture(step[source]), x if source == "argument" else None
    with warnings.catch_warnings(record=True) as caught, xgrad.default_device(device):
        warnings.simplefilter("always")
        for _ in range(3):
            out = captured(argument)
            assert str(out.device) == device and out.tolist() == step[source](argument).tolist()
    assert [(w.category, w.filename) for w in caught] == [(CaptureWarning, __file__)]
    assert re.match(
        rf"capture: test_no_replay.py:\d+: steps on {device} cannot be replayed",
        str(caught[0].message),
    )
    assert captured.recordings == 0 and captured.program().startswith(
        "runs eagerly: test_no_replay.py:"
    )
