"""Layers, losses, initialization and gradient clipping.

Values, distributions and shapes are compared with PyTorch, and devices with `cpu`.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import xgrad
from xgrad import nn

F = nn.functional


@pytest.fixture(autouse=True)
def _seeded():
    xgrad.manual_seed(0)


def assert_close(x: xgrad.Tensor, other, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(
        x.detach().cpu().numpy(), other.detach().numpy(), tolerance, tolerance
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 4, 3), (0, 3)])
def test_linear_matches_pytorch(bias, shape, device, torch):
    layer, reference = nn.Linear(3, 2, bias, device=device), torch.nn.Linear(3, 2, bias)
    reference.load_state_dict(
        {name: torch.tensor(x.tolist()) for name, x in layer.state_dict().items()}
    )
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    a, b = xgrad.asarray(x, device=device, requires_grad=True), torch.tensor(x, requires_grad=True)
    (layer(a) ** 2).sum().backward()
    (reference(b) ** 2).sum().backward()
    assert_close(layer(a), reference(b))
    assert_close(a.grad, b.grad)
    for p, q in zip(layer.parameters(), reference.parameters(), strict=True):
        assert_close(p.grad, q.grad)


def test_linear_has_the_shape_dtype_and_device_asked_for(device):
    layer = nn.Linear(7, 5, device=device, dtype=xgrad.float64)
    assert layer.weight.shape == (5, 7)
    assert layer.bias.shape == (5,)
    assert {(x.dtype, str(x.device)) for x in layer.parameters()} == {(xgrad.float64, device)}
    assert nn.Linear(7, 5, False).bias is None
    assert nn.Linear(np.int64(2), 1).in_features == 2
    before = layer.weight.tolist()
    layer.reset_parameters()
    assert layer.weight.tolist() != before
    for p in nn.Linear(400, 500, device=device).parameters():
        x = p.detach().cpu().numpy()
        assert (
            0.98 / 20 < abs(x).max() <= 1 / 20
            and abs(x.mean()) < 5e-3
            and abs(x.std() * 20 * 3**0.5 - 1) < 0.1
        )


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_linear_refuses_input_of_another_dtype(dtype, device):
    layer, x = nn.Linear(3, 2, device=device), xgrad.ones((4, 3), dtype=dtype, device=device)
    hint = ", or model.to(dtype=xgrad.float64)" if dtype == "float64" else ""
    text = (
        f"Linear: expected input of float32, the dtype of weight, got {dtype}: use"
        f" input.astype(xgrad.float32){hint}"
    )
    for refused in (x, x.cpu().numpy()) if device == "cpu" else (x,):
        with pytest.raises(TypeError, match=f"^{re.escape(text)}$"):
            layer(refused)
    layer(x.astype(xgrad.float32))
    if dtype == "float64":
        layer.to(dtype=xgrad.float64)(x)


def test_initial_weights_of_a_seed_are_those_of_cpu(device):
    states = []
    for each in ("cpu", device):
        xgrad.manual_seed(4)
        states.append(nn.MLP([5, 4, 3], device=each).state_dict())
    for name, x in states[0].items():
        assert x.numpy().tobytes() == states[1][name].cpu().numpy().tobytes()


@pytest.mark.parametrize("name", ["ReLU", "Sigmoid", "Tanh", "Identity", "Flatten"])
def test_layers_without_parameters_match_pytorch(name, device, torch):
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    layer = getattr(nn, name)()
    assert_close(layer(xgrad.asarray(x, device=device)), getattr(torch.nn, name)()(torch.tensor(x)))
    assert not list(layer.parameters())


def test_flatten_joins_axes_and_refuses_others():
    x = xgrad.ones((2, 3, 4, 5))
    assert nn.Flatten(0)(x).shape == (120,)
    assert nn.Flatten(1, 2)(x).shape == (2, 12, 5)
    assert nn.Flatten(-2)(x).shape == (2, 3, 20)
    assert nn.Flatten()(xgrad.ones((0, 3, 4))).shape == (0, 12)
    assert repr(nn.Flatten()) == "Flatten(start_axis=1, end_axis=-1)"
    for layer, shape in (
        (nn.Flatten(), (3,)),
        (nn.Flatten(2, 1), (2, 3, 4)),
        (nn.Flatten(0, 7), (2, 3)),
    ):
        with pytest.raises(ValueError, match=r"Flatten: expected axes .*, got an input of shape"):
            layer(xgrad.ones(shape))


# Dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [xgrad.float32, xgrad.float64])
def test_dropout_zeroes_a_share_and_scales_the_rest(p, dtype, device):
    x = xgrad.full((300, 200), 3.0, dtype=dtype, device=device)
    y = nn.Dropout(p)(x)
    assert (y.dtype, y.shape, str(y.device)) == (dtype, x.shape, device)
    values, counts = np.unique(y.cpu().numpy(), return_counts=True)
    assert values.tolist() == [0, pytest.approx(3 / (1 - p))]
    assert abs(counts[0] - p * x.size) < 4 * (x.size * p * (1 - p)) ** 0.5


def test_dropout_masks_are_those_of_cpu(device):
    masks = set()
    for each in ("cpu", device):
        for dtype in (xgrad.float32, xgrad.float64):
            x = xgrad.ones((7, 5, 3), dtype=dtype, device=each)
            y = F.dropout(x, 0.3, generator=xgrad.random.Generator(4))
            masks.add((y != 0).cpu().numpy().tobytes())
            xgrad.manual_seed(4)
            assert F.dropout(x, 0.3).tolist() == y.tolist()
    assert len(masks) == 1
    x = xgrad.ones((4, 5), device=device)
    assert F.dropout(x).tolist() != F.dropout(x).tolist()


def test_dropout_of_nothing_or_all_draws_nothing(device):
    x = xgrad.ones(5, device=device, requires_grad=True)
    xgrad.manual_seed(1)
    assert (
        F.dropout(x, 0.0) is x
        and F.dropout(x, 0.9, training=False) is x
        and nn.Dropout().eval()(x) is x
    )
    after = xgrad.random.rand(2).tolist()
    xgrad.manual_seed(1)
    assert xgrad.random.rand(2).tolist() == after  # nothing was drawn
    assert F.dropout(x, 1e-9).tolist() == [1] * 5
    for p in (1, 1.0, 1 - 1e-9):
        y = F.dropout(x, p)
        assert y.tolist() == [0] * 5
        assert xgrad.autograd.grad(y.sum(), x)[0].tolist() == [0] * 5
    assert F.dropout(xgrad.ones((0, 3), device=device)).shape == (0, 3)
    assert F.dropout(xgrad.asarray(1.0, device=device)).shape == ()


def test_gradient_of_dropout_is_its_mask(device):
    x = xgrad.asarray(np.linspace(1, 2, 12).reshape(3, 4), device=device, requires_grad=True)
    y = F.dropout(x, 0.4)
    # one node
    assert y.grad_fn.name == "dropout" and repr(y.grad_fn.inputs) == "{'x': <leaf (3, 4)>}"
    (g,) = xgrad.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose((g * x).detach().cpu().numpy(), y.detach().cpu().numpy())

    def fixed(x: xgrad.Tensor) -> xgrad.Tensor:
        return F.dropout(x * x, 0.4, generator=xgrad.random.Generator(1))

    assert xgrad.testing.gradcheck(fixed, [x])
    assert xgrad.testing.gradgradcheck(fixed, [x])


def test_mlp_has_activations_and_dropout_between_layers():
    assert sum(p.size for p in nn.MLP([3, 4, 4, 1]).parameters()) == 41
    for net, expected in [
        (nn.MLP([3, 4, 4, 1], activation=nn.Tanh), "Linear Tanh Linear Tanh Linear"),
        (nn.MLP([784, 128, 10]), "Linear ReLU Linear"),
        (nn.MLP((3, 1)), "Linear"),
        (nn.MLP([2, 2, 2], "relu"), "Linear ReLU Linear"),
        (nn.MLP([2, 2, 2], "tanh"), "Linear Tanh Linear"),
        (nn.MLP([2, 2, 2], "sigmoid"), "Linear Sigmoid Linear"),
        (nn.MLP([2, 2, 2], lambda: nn.Sequential(nn.Tanh())), "Linear Sequential Linear"),
        (nn.MLP([4, 3, 2], dropout=0), "Linear ReLU Linear"),
        (nn.MLP([4, 50, 50, 2], dropout=0.5), "Linear ReLU Dropout Linear ReLU Dropout Linear"),
    ]:
        assert " ".join(type(m).__name__ for m in net) == expected
    assert repr(net[2]) == "Dropout(p=0.5)"
    x = xgrad.ones((3, 4))
    assert net(x).tolist() != net(x).tolist()
    assert net.eval()(x).tolist() == net(x).tolist()
    assert net.train()(x).tolist() != net(x).tolist()


def test_sequential_chains_modules_and_has_items():
    relu = nn.ReLU()
    net = nn.Sequential(nn.Linear(2, 3), relu, nn.Linear(3, 3), relu)
    assert len(net) == 4
    assert [type(m) for m in net] == [nn.Linear, nn.ReLU] * 2
    assert net[1] is net[-1] is relu
    assert len(net[1:]) == 3
    assert type(nn.MLP([2, 3, 4])[:2]) is nn.Sequential
    assert (
        net(-xgrad.ones((1, 2))).tolist()
        == relu(net[2](relu(net[0](-xgrad.ones((1, 2)))))).tolist()
    )
    assert nn.Sequential()(5) == 5
    with pytest.raises(IndexError):
        net[4]
    with pytest.raises(
        TypeError, match=r"Sequential: expected modules, got <class .*ReLU'> at 1: call the class"
    ):
        nn.Sequential(nn.Linear(2, 2), nn.ReLU)
    with pytest.raises(TypeError, match=r"Sequential: expected modules, got .* at 0"):
        nn.Sequential(xgrad.tanh)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_match_pytorch(reduction, device, torch):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 6, 4)).astype("float32")
    target = generator.integers(0, 4, 6)
    tensors = [xgrad.asarray(a, device=device) for a in (x, y, target)]
    others = [torch.tensor(a) for a in (x, y, target)]
    assert_close(
        nn.MSELoss(reduction)(*tensors[:2]), torch.nn.MSELoss(reduction=reduction)(*others[:2])
    )
    for smoothing in (0.0, 0.3):
        a = nn.CrossEntropyLoss(reduction=reduction, label_smoothing=smoothing)(
            tensors[0], tensors[2]
        )
        b = torch.nn.CrossEntropyLoss(reduction=reduction, label_smoothing=smoothing)(
            others[0], others[2]
        )
        assert_close(a, b)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: nn.Linear(0, 2),
            ValueError,
            "Linear: expected an int above 0 for in_features, got 0",
        ),
        (
            lambda: nn.Linear(2, 2.0),
            ValueError,
            r"Linear: expected an int above 0 for out_features, got 2\.0",
        ),
        (
            lambda: nn.Linear(2, 2)(xgrad.ones((2, 3))),
            ValueError,
            "linear: expected input of shape",
        ),
        (
            lambda: nn.Linear(2, 2)(xgrad.ones(2, device="strict")),
            xgrad.DeviceError,
            "linear: .*weight on cpu",
        ),
        (
            lambda: nn.MLP([3]),
            ValueError,
            r"MLP: expected a list of at least two sizes, .*, got \[3\]",
        ),
        (lambda: nn.MLP(3), ValueError, "MLP: expected a list of at least two sizes"),
        (
            lambda: nn.MLP([3, -1]),
            ValueError,
            "Linear: expected an int above 0 for out_features, got -1",
        ),
        (
            lambda: nn.MLP([3, 2, 1], "swish"),
            ValueError,
            "MLP: expected an activation of .*'tanh'.*, got 'swish'",
        ),
        (
            lambda: nn.MLP([3, 2, 1], nn.ReLU()),
            TypeError,
            r"MLP: expected a class of activations, .*, got ReLU\(\)",
        ),
        (lambda: nn.MLP([3, 2, 1], dict), TypeError, "MLP: expected modules, got {} at 1"),
        (lambda: nn.Dropout(1.5), ValueError, r"Dropout: expected p from 0 to 1, got 1\.5"),
        (lambda: nn.Dropout("0.5"), TypeError, "Dropout: expected a number for p, got '0.5'"),
        (
            lambda: nn.MLP([3, 2, 1], dropout=-0.1),
            ValueError,
            r"MLP: expected p from 0 to 1, got -0\.1",
        ),
        (
            lambda: F.dropout(xgrad.ones(2), math.nan),
            ValueError,
            "dropout: expected p from 0 to 1, got nan",
        ),
        (
            lambda: F.dropout(xgrad.ones(2), True),
            TypeError,
            "dropout: expected a number for p, got True",
        ),
        (
            lambda: F.dropout(xgrad.arange(3)),
            TypeError,
            r"dropout: expected a floating x, got int64: use \.astype",
        ),
        (
            lambda: nn.Dropout().eval()(xgrad.arange(3)),
            TypeError,
            "dropout: expected a floating x, got int64",
        ),
        (
            lambda: F.dropout([1.0]),
            TypeError,
            "dropout: expected a tensor, an array or a number for x, got list",
        ),
        (
            lambda: F.dropout(xgrad.ones(2), generator=7),
            TypeError,
            "dropout: expected an xgrad.random.Generator",
        ),
        (
            lambda: nn.init.kaiming_normal_(xgrad.ones(3)),
            ValueError,
            r"kaiming_normal_: .* got shape \(3,\)",
        ),
        (
            lambda: nn.init.kaiming_uniform_(xgrad.ones((3, 3)), mode="fan"),
            ValueError,
            "a mode of .*, got 'fan'",
        ),
        (
            lambda: nn.init.kaiming_uniform_(xgrad.ones((3, 3)), nonlinearity="x"),
            ValueError,
            "calculate_gain: .* 'x'",
        ),
        (
            lambda: nn.init.normal_(xgrad.ones(3, dtype=xgrad.int64)),
            TypeError,
            "normal: expected a dtype of",
        ),
        (
            lambda: nn.utils.clip_grad_norm_([], -1.0),
            ValueError,
            r"clip_grad_norm_: expected max_norm >= 0, got -1\.0",
        ),
        (
            lambda: nn.MSELoss()(xgrad.ones(2), xgrad.ones((2, 1))),
            ValueError,
            "mse_loss: expected .* one shape",
        ),
        (
            lambda: nn.MSELoss("max")(xgrad.ones(2), xgrad.ones(2)),
            ValueError,
            "MSELoss: expected a reduction",
        ),
    ],
)
def test_invalid_arguments_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


# init


@pytest.mark.parametrize("shape", [(300, 200), (50, 40, 3, 5)])
@pytest.mark.parametrize("dtype", [xgrad.float32, xgrad.float64])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("uniform_", {"a": -1.0, "b": 3.0}),
        ("normal_", {"mean": -1.0, "std": 3.0}),
        ("xavier_uniform_", {"gain": 2.0}),
        ("xavier_normal_", {"gain": 2.0}),
        ("kaiming_uniform_", {"a": 0.5}),
        ("kaiming_uniform_", {"mode": "fan_out", "nonlinearity": "relu"}),
        ("kaiming_normal_", {"a": 0.5}),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "tanh"}),
    ],
)
def test_initializers_draw_from_the_distributions_of_pytorch(name, options, shape, dtype, torch):
    torch.manual_seed(0)
    p, q = xgrad.zeros(shape, dtype=dtype, requires_grad=True), torch.zeros(shape)
    edge = p._edge
    assert getattr(nn.init, name)(p, **options) is p
    assert p._edge is edge
    assert p.dtype == dtype
    x, y = p.detach().numpy(), getattr(torch.nn.init, name)(q, **options).numpy()
    assert abs(x.std() / y.std() - 1) < 0.02
    assert abs(x.mean() - y.mean()) < 0.02 * y.std()
    if "uniform" in name:
        assert abs(x.min() / y.min() - 1) < 0.001
        assert abs(x.max() / y.max() - 1) < 0.001
    else:
        centred = (x - x.mean()) / x.std()
        assert abs((centred**4).mean() - 3) < 0.15


def test_uniform_initializers_fill_their_bounds(device):
    w = xgrad.zeros((40, 60), device=device)
    for fill, bound in (
        (nn.init.xavier_uniform_, math.sqrt(6 / 100)),
        (nn.init.kaiming_uniform_, math.sqrt(6 / 60)),
        (lambda w: nn.init.kaiming_uniform_(w, a=math.sqrt(5)), math.sqrt(1 / 60)),
        (lambda w: nn.init.kaiming_uniform_(w, mode="fan_out"), math.sqrt(6 / 40)),
    ):
        x = abs(np.asarray(fill(w).tolist()))
        assert 0.99 * bound < x.max() <= bound * (1 + 1e-7)
        assert str(w.device) == device


def test_initializers_draw_from_a_generator(device):
    w = [xgrad.zeros((3, 4), device=device) for _ in range(2)]
    for name in (
        "uniform_",
        "normal_",
        "xavier_uniform_",
        "xavier_normal_",
        "kaiming_uniform_",
        "kaiming_normal_",
    ):
        a, b = (getattr(nn.init, name)(x, generator=xgrad.random.Generator(2)).tolist() for x in w)
        assert a == b
        assert getattr(nn.init, name)(w[0]).tolist() != b


def test_constant_initializers_keep_dtype_and_device(device):
    x = xgrad.zeros((2, 2), dtype=xgrad.int64, device=device)
    assert nn.init.constant_(x, 3).tolist() == [[3, 3], [3, 3]]
    assert nn.init.ones_(x).tolist() == [[1, 1], [1, 1]]
    assert nn.init.zeros_(x).tolist() == [[0, 0], [0, 0]]
    assert x.dtype == xgrad.int64
    assert str(x.device) == device


def test_gains_match_pytorch(torch):
    for name in ("linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert nn.init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert nn.init.calculate_gain("leaky_relu", 0.3) == pytest.approx(
        torch.nn.init.calculate_gain("leaky_relu", 0.3)
    )


def test_backward_through_a_graph_from_before_initialization_is_refused():
    layer = nn.Linear(2, 2)
    x = xgrad.ones((1, 2), requires_grad=True)
    loss = layer(x).sum()
    layer.reset_parameters()
    with pytest.raises(RuntimeError, match="linear needs the value that its 'weight'"):
        loss.backward()


# clip_grad_norm_


@pytest.mark.parametrize("max_norm", [0.0, 0.5, 3.0, 1e6])
def test_clipping_matches_pytorch(max_norm, device, torch):
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=shape).astype("float32") for shape in ((3, 4), (), (0,), (5,))]
    params = [xgrad.zeros(a.shape, device=device, requires_grad=True) for a in arrays]
    others = [torch.zeros(a.shape, requires_grad=True) for a in arrays]
    for p, q, a in zip(params, others, arrays, strict=True):
        p.grad, q.grad = xgrad.asarray(a, device=device), torch.tensor(a)
    held = params[0].grad
    norm = nn.utils.clip_grad_norm_([*params, xgrad.ones(2, requires_grad=True)], max_norm)
    assert_close(norm, torch.nn.utils.clip_grad_norm_(others, max_norm))
    assert str(norm.device) == device
    for p, q in zip(params, others, strict=True):
        assert_close(p.grad, q.grad)
        assert p.grad.dtype == xgrad.float32
    assert held.tolist() == arrays[0].tolist()


def test_clipping_of_several_dtypes_and_of_no_gradients():
    x, y = (
        xgrad.ones(1, dtype=dtype, requires_grad=True) for dtype in (xgrad.float32, xgrad.float64)
    )
    (3 * x).sum().backward()
    (4 * y).sum().backward()
    assert nn.utils.clip_grad_norm_([x, y], 1.0).item() == pytest.approx(5)
    assert (x.grad.dtype, y.grad.dtype) == (x.dtype, y.dtype)
    assert y.grad.item() == pytest.approx(0.8, rel=1e-5)
    assert nn.utils.clip_grad_norm_(iter([xgrad.ones(1)]), 1.0).item() == 0


def test_clipping_on_several_devices_is_refused():
    tensors = [xgrad.ones(1, device=device, requires_grad=True) for device in ("cpu", "strict")]
    for x in tensors:
        x.sum().backward()
    with pytest.raises(xgrad.DeviceError, match="expected tensors of one device"):
        nn.utils.clip_grad_norm_(tensors, 1.0)


def test_cross_entropy_refuses_targets_that_wrap_around():
    logits = xgrad.ones((1, 3))
    for value, dtype in ((2**64 - 1, np.uint64), (-1, np.int8), (3, np.uint8), (300, np.int32)):
        with pytest.raises(IndexError, match=rf"expected target from 0 to 2, got {value}"):
            nn.functional.cross_entropy(logits, xgrad.asarray(np.array([value], dtype)))
    with pytest.raises(IndexError, match="expected target from 0 to -1"):
        nn.functional.cross_entropy(xgrad.ones((1, 0)), xgrad.asarray([0]))
