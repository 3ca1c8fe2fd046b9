"""The summary of a model: its table, compared with known counts; the model is left unchanged."""

from __future__ import annotations

from typing import Any

import pytest

import xgrad
from xgrad import Tensor, nn
from xgrad.support.units import duration, size


class Pair(nn.Module):
    """A module with a layer that is called twice, one that is not called, and two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.unused = nn.Linear(2, 3, bias=False)
        self.tied = nn.Linear(4, 4, bias=False)
        self.tied.weight = self.layer.weight
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("count", xgrad.asarray(0))
        self.scale = nn.Parameter(2.0, requires_grad=False)

    def forward(self, x: Tensor, *, flip: bool = False) -> Any:
        y = self.dropout(self.layer(self.layer(x)))
        assert not y.requires_grad and not self.training
        return {"sum": y + x, "parts": [y, y[0] if flip else x]}


def test_table_has_a_row_for_each_layer():
    net = Pair()
    x = xgrad.ones((3, 4))
    summary = net.summary(x, flip=True)
    assert str(summary).splitlines() == [
        "layer    class    output                parameters  memory  activations",
        "         Pair     (3, 4), (3, 4), (4,)           1     4 B         48 B",
        "layer    Linear   (3, 4) x 2                    20    80 B         96 B",
        "unused   Linear   not called                     6    24 B",
        "tied     Linear   not called",
        "dropout  Dropout  (3, 4)",
        "total: 27 parameters (26 trainable) in 108 B, buffers of 8 B, activations of 144 B",
    ]
    assert [layer.calls for layer in summary.layers] == [1, 2, 0, 0, 1]
    assert summary.total("parameters") == sum(p.size for p in net.parameters())


def test_views_and_inputs_take_no_memory():
    net = nn.Sequential(nn.Identity(), nn.Flatten(), nn.Linear(6, 1))
    assert [layer.output_bytes for layer in net.summary(xgrad.ones((2, 3, 2))).layers] == [
        0,
        0,
        0,
        8,
    ]


def test_model_is_not_changed(device):
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Sequential(nn.ReLU())).to(device)
    net[0].eval()
    calls: list[int] = []
    net[2].register_forward_hook(lambda module, args, output: calls.append(1))
    before = [dict(vars(module)) for module in net.modules()]
    random = xgrad.random.rand(1)
    xgrad.manual_seed(0)
    expected = xgrad.random.rand(1).item()
    xgrad.manual_seed(0)
    net.summary(xgrad.ones((1, 2), device=device))
    assert xgrad.random.rand(1).item() == expected and random.shape == (1,)
    assert [dict(vars(module)) for module in net.modules()] == before and calls == [1]
    with pytest.raises(ValueError, match="Linear"):
        net.summary(xgrad.ones((1, 3), device=device))
    assert [dict(vars(module)) for module in net.modules()] == before


def test_captured_step_is_not_traced_again():
    net = nn.MLP([2, 2])
    step, x = xgrad.capture(lambda x: net(x).detach()), xgrad.ones((1, 2))
    step(x)
    net.summary(x)
    step(x)
    assert step.recordings == 1


@pytest.mark.parametrize(
    ("width", "memory"),
    [(1, "4 B"), (249, "996 B"), (250, "1.0 kB"), (249_999, "1.0 MB"), (10**9, "4.0 GB")],
)
def test_memory_has_a_unit(width, memory):
    assert size(4 * width) == memory


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 µs"),
        (1.5e-6, "1.50 µs"),
        (999.9e-6, "1.00 ms"),
        (0.0123456, "12.3 ms"),
        (1e3, "1000 s"),
    ],
)
def test_time_has_a_unit(seconds, text):
    assert duration(seconds) == text
