"""Normalization layers beyond the table of modules: running statistics, accuracy and errors.

They are compared with PyTorch, with NumPy in float64 and, for captured steps, with eager steps.
"""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, on
from xgrad import nn, optim

F = nn.functional


def batches(count: int = 4) -> list[np.ndarray]:
    """Return batches of images with 3 channels."""
    rng = np.random.default_rng(0)
    return [rng.normal(2, 3, (4, 3, 5, 2)).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
def test_running_statistics_of_several_batches_match_pytorch(momentum, device, torch):
    layer = nn.BatchNorm2d(3, momentum=momentum, device=device)
    other = torch.nn.BatchNorm2d(3, momentum=momentum)
    for x in batches():
        layer(on(device, x))
        other(torch.tensor(x))
    for name, value in layer.state_dict().items():
        np.testing.assert_allclose(
            host(value), other.state_dict()[name].detach().numpy(), 1e-5, 1e-6, err_msg=name
        )
    x = batches(5)[-1]
    y = layer.eval()(on(device, x))
    np.testing.assert_allclose(host(y), other.eval()(torch.tensor(x)).detach().numpy(), 1e-4, 1e-5)
    assert layer.num_batches_tracked.item() == 4  # not changed in evaluation


def test_running_statistics_are_the_same_tensors_and_are_reset():
    layer = nn.BatchNorm1d(2)
    buffers = dict(layer.named_buffers())
    state = {name: value.tolist() for name, value in buffers.items()}
    layer(xgrad.asarray([[1.0, 2.0], [3.0, 5.0]]))
    assert all(getattr(layer, name) is buffer for name, buffer in buffers.items())
    assert layer.running_mean.tolist() != state["running_mean"]
    assert not any(buffer.requires_grad for buffer in buffers.values())
    layer.reset_parameters()
    assert {name: value.tolist() for name, value in layer.named_buffers()} == state


def stacked(xp):
    both = xp.reshape(xp.arange(6.0, dtype="float32"), (2, 3))
    return both, both[0], both[1]


def overlapping(xp):
    memory = xp.arange(4.0, dtype="float32")
    return memory, memory[:3], memory[1:]


def strided(xp):
    memory = xp.arange(12.0, dtype="float32")
    return memory, memory[::4], memory[11::-4]


def same(xp):
    both = xp.arange(3.0, dtype="float32")
    return both, both, both


def viewed(xp):
    mean = xp.arange(3.0, dtype="float32")
    return mean[1:], mean, xp.ones(3, dtype="float32")


def wider(xp):
    return (
        xp.zeros(1, dtype="float32"),
        xp.arange(3.0, dtype="float64"),
        xp.ones(3, dtype="float32"),
    )


@pytest.mark.parametrize("momentum", [0.25, 1, "tensor", "tensors"])
@pytest.mark.parametrize("buffers", [stacked, overlapping, strided, same, viewed, wider])
def test_buffers_in_shared_memory_or_of_other_dtypes_are_updated_as_arrays_are(buffers, momentum):
    """One after the other, so that the second update reads what the first wrote."""
    (x,) = batches(1)
    memory, *running = buffers(xgrad)
    expected, *arrays = buffers(np)
    factor = {"tensor": np.float32(0.25), "tensors": np.array([0.25, 0.5, 1], "f4")}.get(
        momentum, momentum
    )
    y = F.batch_norm(
        xgrad.asarray(x),
        *running,
        training=True,
        momentum=xgrad.asarray(factor) if isinstance(momentum, str) else factor,
    )
    for part, new in zip(arrays, (x.mean((0, 2, 3)), x.var((0, 2, 3), ddof=1)), strict=True):
        part += (new - part) * factor
    for part, array in zip((memory, *running), (expected, *arrays), strict=True):
        assert part.dtype == host(part).dtype == array.dtype
        np.testing.assert_allclose(host(part), array, 1e-5)
    plain = F.batch_norm(xgrad.asarray(x), None, None, training=True)
    assert y.tolist() == plain.tolist()


def test_momentum_of_another_shape_is_refused():
    mean, var = xgrad.zeros(3), xgrad.ones(3)
    with pytest.raises(ValueError, match=r"expected a value that broadcasts to shape \(3,\)"):
        F.batch_norm(xgrad.ones((4, 3)), mean, var, training=True, momentum=xgrad.ones((1, 3)))
    assert mean.shape == var.shape == (3,)


def test_copies_keep_the_statistics_of_before():
    layer = nn.BatchNorm1d(3)
    kept = [f(layer.running_mean) for f in (xgrad.positive, xgrad.Tensor.clone)]
    layer(xgrad.asarray(np.eye(4, 3), dtype=xgrad.float32))
    assert layer.running_mean.tolist() != [0, 0, 0]
    assert all(x.tolist() == [0, 0, 0] for x in kept)


def test_backward_after_another_forward_in_training_uses_the_statistics_of_its_own():
    layer = nn.BatchNorm1d(3).eval()
    x = xgrad.asarray(np.eye(4, 3), dtype=xgrad.float32, requires_grad=True)
    loss = (layer(x) ** 2).sum()
    (expected,) = xgrad.autograd.grad(loss, x, retain_graph=True)
    layer.train()(x * 3)
    (got,) = xgrad.autograd.grad(loss, x)
    assert got.tolist() == expected.tolist()


def test_captured_training_step_updates_running_statistics_as_the_eager_step():
    def made() -> tuple[nn.Module, optim.Optimizer]:
        xgrad.manual_seed(1)
        layers = (
            nn.Linear(10, 4),
            nn.BatchNorm1d(4),
            nn.ReLU(),
            nn.LayerNorm(4),
            nn.BatchNorm1d(4, momentum=None),
        )
        model = nn.Sequential(nn.Flatten(2), nn.Flatten(0, 1), *layers)
        return model, optim.SGD(model.parameters(), lr=0.1)

    def step_of(model: nn.Module, optimizer: optim.Optimizer):
        def step(x):
            optimizer.zero_grad()
            loss = (model(x) ** 2 * xgrad.arange(4, dtype=xgrad.float32)).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    (eager_model, eager_optimizer), (model, optimizer) = made(), made()
    eager, step = step_of(eager_model, eager_optimizer), xgrad.capture(step_of(model, optimizer))
    for x in batches():
        assert host(eager(on("cpu", x))).tobytes() == host(step(on("cpu", x))).tobytes()
    assert step.refusal is None and step.recordings == 1
    for name, value in model.state_dict().items():
        assert host(value).tobytes() == host(eager_model.state_dict()[name]).tobytes(), name
    assert model.state_dict()["3.num_batches_tracked"].item() == 4


def test_functional_call_does_not_change_running_statistics():
    layer, x = nn.BatchNorm1d(2), xgrad.asarray([[1.0, 2.0], [3.0, 5.0]])
    before = {name: value.tolist() for name, value in layer.state_dict().items()}
    new = {"weight": xgrad.asarray([2.0, 2.0]), "running_mean": xgrad.zeros(2)}
    y = nn.utils.functional_call(layer, new, x)
    assert {name: value.tolist() for name, value in layer.state_dict().items()} == before
    assert new["running_mean"].tolist() == [0, 0]
    assert y.tolist() == (2 * layer(x)).tolist()


@pytest.mark.parametrize(
    "normalize",
    [
        lambda x: F.layer_norm(x, 50),
        lambda x: F.group_norm(x, 1),
        lambda x: F.batch_norm(x.mT, None, None, training=True).mT,
        lambda x: F.instance_norm(x[:, None, :])[:, 0, :],
    ],
    ids=["layer", "group", "batch", "instance"],
)
def test_large_mean_costs_few_digits(normalize, device):
    x = np.random.default_rng(0).integers(-50, 50, (4, 50)) / 64 + 10000
    y = host(normalize(on(device, x.astype(np.float32))))
    np.testing.assert_allclose(
        y, (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), 5e-3, 5e-3
    )


@pytest.mark.parametrize(
    ("normalize", "channels"),
    [
        (lambda x, b: F.layer_norm(x, 5, None, b), 5),
        (lambda x, b: F.group_norm(x.reshape((2, 6, 5)), 2, None, b), 6),
        (lambda x, b: F.batch_norm(x.reshape((2, 6, 5)), None, None, None, b, training=True), 6),
        (lambda x, b: F.instance_norm(x.reshape((2, 6, 5)), bias=b), 6),
    ],
    ids=["layer", "group", "batch", "instance"],
)
def test_bias_without_a_weight_has_a_gradient(normalize, channels, device):
    x, g = np.random.default_rng(0).standard_normal((2, 12, 5))
    bias = on(device, np.zeros(channels)).requires_grad_()
    out = normalize(on(device, x), bias)
    weights = g.reshape(out.shape)
    xgrad.sum(out * on(device, weights)).backward()
    axes = tuple(i for i, n in enumerate(out.shape) if n != channels)
    np.testing.assert_allclose(host(bias.grad), weights.sum(axes), 1e-5)


def test_float16_is_computed_in_float32():
    x = np.random.default_rng(0).normal(0, 200, (3, 300)).astype(np.float16)
    for function in (
        lambda x: F.layer_norm(x, 300),
        lambda x: F.rms_norm(x, 300),
        lambda x: F.group_norm(x, 3),
    ):
        half = xgrad.asarray(x, requires_grad=True)
        y = function(half)
        assert y.dtype == np.float16
        np.testing.assert_allclose(
            host(y), host(function(xgrad.asarray(x.astype(np.float32)))), 1e-3, 1e-3
        )
        y.sum().backward()
        assert half.grad.dtype == np.float16
    running = xgrad.asarray(np.zeros(300, np.float16)), xgrad.asarray(np.ones(300, np.float16))
    y = F.batch_norm(xgrad.asarray(x / 10), *running, training=True)
    assert {part.dtype.name for part in (y, *running)} == {"float16"}
    assert np.isfinite(host(running[1])).all()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "nn.LayerNorm(0)",
            "ValueError: LayerNorm: expected an int above 0 for normalized_shape, got 0",
        ),
        (
            "nn.LayerNorm(())",
            "ValueError: LayerNorm: expected a normalized_shape of at least one axis, got ()",
        ),
        (
            "nn.RMSNorm((2, 1.5))",
            "ValueError: RMSNorm: expected an int above 0 for normalized_shape, got 1.5",
        ),
        (
            "nn.LayerNorm(3)(xp.ones((3, 2)))",
            "ValueError: layer_norm: expected an input whose last axes have the shape (3,), "
            "got (3, 2)",
        ),
        ("nn.LayerNorm((2, 3))(xp.ones(3))", "ValueError: layer_norm: … shape (2, 3), got (3,)"),
        (
            "nn.LayerNorm(3, eps=-1.0)(xp.ones(3))",
            "ValueError: layer_norm: expected eps >= 0, got -1.0",
        ),
        (
            "nn.LayerNorm(3)(xp.ones(3, dtype=xp.float64))",
            "TypeError: LayerNorm: expected input of float32, … got float64: "
            "use input.astype(xgrad.float32)",
        ),
        (
            "nn.LayerNorm(3, elementwise_affine=False)(xp.arange(3))",
            "TypeError: layer_norm: expected a floating input, got int64: use .astype(float32)",
        ),
        (
            "F.layer_norm(xp.ones(3), 3, xp.ones(2))",
            "ValueError: layer_norm: expected weight of shape (3,), got (2,)",
        ),
        (
            "F.layer_norm(xp.ones(3), True)",
            "TypeError: layer_norm: expected an int for normalized_shape, got True",
        ),
        ("F.layer_norm([1.0], 1)", "TypeError: layer_norm: expected a tensor, …"),
        ("nn.RMSNorm(3)(xp.ones(2))", "ValueError: rms_norm: expected an input whose last axes …"),
        (
            "nn.GroupNorm(0, 4)",
            "ValueError: GroupNorm: expected an int above 0 for num_groups, got 0",
        ),
        (
            "nn.GroupNorm(3, 4)",
            "ValueError: GroupNorm: expected num_groups that divides num_channels, got 3 and 4",
        ),
        (
            "nn.GroupNorm(2, 4)(xp.ones((4, 2)))",
            "ValueError: GroupNorm: expected an input of shape (batch, 4, ...), got (4, 2)",
        ),
        (
            "F.group_norm(xp.ones((2, 4)), 3)",
            "ValueError: group_norm: expected num_groups that divides 4 channels, got 3",
        ),
        (
            "F.group_norm(xp.ones(4), 2)",
            "ValueError: group_norm: expected an input of shape (batch, channels, ...), got (4,)",
        ),
        (
            "nn.BatchNorm1d(True)",
            "ValueError: BatchNorm1d: expected an int above 0 for num_features, got True",
        ),
        (
            "nn.BatchNorm1d(3, momentum=2)",
            "ValueError: BatchNorm1d: expected momentum from 0 to 1, or None, got 2",
        ),
        (
            "nn.BatchNorm1d(3, momentum='x')",
            "ValueError: BatchNorm1d: expected momentum from 0 to 1, or None, got 'x'",
        ),
        (
            "nn.BatchNorm1d(3)(xp.ones((2, 4)))",
            "ValueError: BatchNorm1d: expected an input of shape (batch, 3) or (batch, 3, length), "
            "got (2, 4)",
        ),
        (
            "nn.BatchNorm2d(3)(xp.ones((2, 3)))",
            "ValueError: BatchNorm2d: expected an input of shape (batch, 3, height, width), "
            "got (2, 3)",
        ),
        (
            "nn.BatchNorm1d(3)(xp.ones((1, 3)))",
            "ValueError: batch_norm: expected more than 1 value for each channel in training, "
            "got an input of shape (1, 3)",
        ),
        (
            "nn.BatchNorm1d(3)(xp.ones((2, 3), dtype=xp.float64))",
            "TypeError: BatchNorm1d: expected input of float32",
        ),
        (
            "F.batch_norm(xp.ones((2, 3)), 1, None)",
            "TypeError: batch_norm: expected a tensor for running_mean",
        ),
        (
            "F.batch_norm(xp.ones((2, 3)), None, None)",
            "ValueError: batch_norm: expected running_mean, got None",
        ),
        (
            "F.batch_norm(xp.ones((2, 3)), xp.ones(2), xp.ones(3))",
            "ValueError: batch_norm: expected running_mean of shape (3,), got (2,)",
        ),
        (
            "F.batch_norm(xp.ones((2, 3)), xp.ones(3), xp.ones(3), xp.ones(2))",
            "ValueError: batch_norm: expected weight of shape (3,), got (2,)",
        ),
        ("nn.BatchNorm1d(3, device='strict')(xp.ones((2, 3)))", "DeviceError: … strict"),
        (
            "nn.InstanceNorm1d(3)(xp.ones((2, 3)))",
            "ValueError: InstanceNorm1d: expected an input of shape (batch, 3, length) or "
            "(3, length), got (2, 3)",
        ),
        (
            "nn.InstanceNorm1d(3)(xp.ones((2, 3, 1)))",
            "ValueError: instance_norm: expected more than 1 value for each channel of a sample, "
            "got an input of shape (2, 3, 1)",
        ),
        (
            "nn.InstanceNorm1d(3, momentum=None)",
            "ValueError: InstanceNorm1d: expected momentum from 0 to 1, got None",
        ),
        (
            "F.instance_norm(xp.ones((2, 3)))",
            "ValueError: instance_norm: expected an input of shape (batch, channels, length, ...), "
            "got (2, 3)",
        ),
    ],
)
def test_invalid_arguments_are_refused(call, error):
    check_error(call, error, nn=nn, F=F)
