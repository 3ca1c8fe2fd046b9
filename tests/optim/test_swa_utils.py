"""Averages of models, compared with PyTorch, with eager steps and with means over batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim
from xgrad.optim import swa_utils

#: Arguments by name, with PyTorch's where they differ.
AVERAGES: dict[str, tuple[str, tuple[float, ...], bool]] = {
    "mean": ("get_swa_avg_fn", (), False),
    "ema": ("get_ema_avg_fn", (0.9,), False),
    "ema of buffers": ("get_ema_avg_fn", (0.5,), True),
}


def ours(device: str) -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).to(
        device, dtype=xgrad.float64
    )


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_of_a_training_run_are_those_of_pytorch(
    name: str, device: str, torch: Any
) -> None:
    function, arguments, use_buffers = AVERAGES[name]
    model = ours(device)
    reference = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
    ).double()
    reference.load_state_dict(
        {k: torch.tensor(x.tolist(), dtype=torch.float64) for k, x in model.state_dict().items()}
    )
    averaged = swa_utils.AveragedModel(
        model, avg_fn=getattr(swa_utils, function)(*arguments), use_buffers=use_buffers
    )
    average = getattr(torch.optim.swa_utils, function)(*arguments)
    expected = torch.optim.swa_utils.AveragedModel(
        reference, avg_fn=average, use_buffers=use_buffers
    )
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    other = torch.optim.SGD(reference.parameters(), lr=0.5)
    for x in np.random.default_rng(0).normal(size=(5, 8, 3)):
        optimizer.zero_grad()
        other.zero_grad()
        (model(xgrad.asarray(x, device=device)) ** 2).mean().backward()
        (reference(torch.tensor(x)) ** 2).mean().backward()
        optimizer.step()
        other.step()
        averaged.update_parameters(model)
        expected.update_parameters(reference)
    assert list(averaged.state_dict()) == list(expected.state_dict())
    for key, value in expected.state_dict().items():
        if not (use_buffers and "num_batches" in key):  # an integer, which PyTorch averages
            np.testing.assert_allclose(
                averaged.state_dict()[key].cpu().numpy(), value.numpy(), rtol=1e-9, atol=1e-12
            )


def test_update_is_part_of_a_captured_step_without_a_new_recording(capturing_device: str) -> None:
    def train(captured: bool) -> list[Any]:
        xgrad.manual_seed(0)
        model = ours(capturing_device)
        optimizer = optim.SGD(model.parameters(), lr=0.5)
        averaged = swa_utils.AveragedModel(model, avg_fn=swa_utils.get_ema_avg_fn(0.5))

        def step(x: xgrad.Tensor) -> None:
            optimizer.zero_grad()
            (model(x) ** 2).mean().backward()
            optimizer.step()
            averaged.update_parameters(model)

        run: Any = xgrad.capture(step) if captured else step
        for x in np.random.default_rng(0).normal(size=(5, 8, 3)):
            run(xgrad.asarray(x, device=capturing_device))
        assert not captured or (run.recordings, run.refusal) == (1, None)
        return [x.cpu().numpy() for x in averaged.state_dict().values()]

    for one, two in zip(train(False), train(True), strict=True):
        np.testing.assert_array_equal(one, two)


def test_statistics_of_an_averaged_model_are_means_over_batches(device: str) -> None:
    batches = np.random.default_rng(0).normal(size=(3, 8, 4))
    model = nn.Sequential(nn.BatchNorm1d(4)).to(device, dtype=xgrad.float64)
    averaged = swa_utils.AveragedModel(model).eval()
    swa_utils.update_bn([(xgrad.asarray(x),) for x in batches], averaged, device)
    layer = averaged.module[0]
    np.testing.assert_allclose(layer.running_mean.cpu().numpy(), batches.mean((0, 1)))
    np.testing.assert_allclose(layer.running_var.cpu().numpy(), batches.var(1, ddof=1).mean(0))
    assert layer.momentum == 0.1 and not averaged.training


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="AveragedModel: expected a module, got 3"):
        swa_utils.AveragedModel(3)
    with pytest.raises(TypeError, match=r"AveragedModel: expected a function for avg_fn, got 0\.9"):
        swa_utils.AveragedModel(nn.Linear(2, 2), avg_fn=0.9)
    with pytest.raises(ValueError, match="get_ema_avg_fn: expected a decay from 0 to 1, got 2"):
        swa_utils.get_ema_avg_fn(2)
    averaged = swa_utils.AveragedModel(nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"update_parameters: expected .* got \['bias'\]"):
        averaged.update_parameters(nn.Linear(2, 2, bias=False))
    with pytest.raises(ValueError, match=r"update_parameters: expected .* got other shapes"):
        averaged.update_parameters(nn.Linear(3, 2))
