"""Captured steps on devices that cannot replay them."""

from __future__ import annotations

import warnings

import pytest

import xgrad
from xgrad.capturing import CaptureWarning


def test_steps_on_a_device_that_cannot_replay_run_eagerly_and_say_so():
    double = xgrad.capture(lambda x: 2 * x)
    x = xgrad.ones(3, device="strict")
    with pytest.warns(CaptureWarning, match=r"test_devices\.py:\d+: steps on strict cannot be replayed yet"):
        assert double(x).tolist() == [2, 2, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        assert double(x).device == x.device
    assert double.program().startswith("runs eagerly: test_devices.py:")
