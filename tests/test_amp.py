"""Mixed precision: dtypes under autocast, compared with a table, and loss scaling, with PyTorch.

Captured steps are compared with eager steps.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host
from xgrad import amp, nn, optim
from xgrad.nn import functional
from xgrad.ops import recurrent


@pytest.fixture(autouse=True)
def _has_float16(request: pytest.FixtureRequest) -> None:
    if "device" in request.fixturenames and request.getfixturevalue("device") == "strict":
        pytest.skip("array-api-strict has no float16")


def array(*shape: int, device: str = "cpu", dtype: str = "float32") -> Any:
    values = np.random.default_rng(0).normal(size=shape)
    return xgrad.asarray(values, dtype=getattr(xgrad, dtype), device=device)


X, W, LABELS = (4, 3), (3, 3), [0, 1, 2, 0]
#: Calls, and the dtype of the result for float32 and float16 under autocast.
CALLS = {
    "x @ w": "float16",
    "xp.matmul(x, w)": "float16",
    "xp.tensordot(x, w, axes=1)": "float16",
    "xp.einsum('ij,jk->ik', x, w)": "float16",
    "f.linear(x, w)": "float16",
    "f.conv1d(xp.reshape(x, (1, 4, 3)), xp.reshape(w, (9, 1, 1))[:4], groups=4)": "float16",
    (
        "f.conv_transpose1d(xp.reshape(x, (1, 4, 3)), xp.reshape(w, (9, 1, 1))[:4], x[:, 0], "
        "groups=4)"
    ): "float16",
    "f.scaled_dot_product_attention(x, w, w)": "float16",
    "f.prelu(x, w[0])": "float16",
    "recurrent.lstm(steps, v, steps[0, :, :1], v[:1])[1]": "float16",
    "recurrent.gru(steps[..., :3], v[:3], v[:1])": "float16",
    "recurrent.rnn(steps[..., :1], v[:1], v[:1])": "float16",
    "f.softmax(x)": "float32",
    "f.log_softmax(x)": "float32",
    "f.cross_entropy(x, labels)": "float32",
    "f.nll_loss(x, labels)": "float32",
    "f.multi_margin_loss(x, labels)": "float32",
    "f.mse_loss(x, x)": "float32",
    "f.l1_loss(x, x)": "float32",
    "f.binary_cross_entropy_with_logits(x, x)": "float32",
    "f.kl_div(x, x, log_target=True)": "float32",
    "f.cosine_similarity(x, x)": "float32",
    "f.pairwise_distance(x, x)": "float32",
    "f.layer_norm(x, 3)": "float32",
    "f.rms_norm(x, 3)": "float32",
    "f.group_norm(x, 1)": "float32",
    "f.softplus(x)": "float32",
    "f.normalize(x)": "float32",
    "x ** 2": "float32",
    "2 ** x": "float32",
    "x.sum()": "float32",
    "xp.prod(x)": "float32",
    "xp.cumulative_sum(x, axis=0)": "float32",
    "xp.cumulative_prod(x, axis=0)": "float32",
    "xp.linalg.vector_norm(x)": "float32",
    "xp.linalg.matrix_norm(x)": "float32",
    "xp.special.erfinv(x / 9)": "float32",
}
CALLS |= {
    f"xp.{name}(abs(x) / 9)": "float32"
    for name in "exp expm1 log log10 log1p log2 reciprocal".split()
}
CALLS |= {f"xp.{name}(x / 9)": "float32" for name in "acos asin cosh sinh tan".split()}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_ops_cast_inputs_within_autocast_only(call, dtype, device):
    x, w = array(*X, device=device, dtype=dtype), array(*W, device=device)
    labels = xgrad.asarray(LABELS, device=device)
    steps, v = array(2, 1, 4, device=device, dtype=dtype), array(4, 1, device=device)
    names = {"xp": xgrad, "f": functional, "recurrent": recurrent, "x": x, "w": w, "labels": labels}
    names |= {"steps": steps, "v": v}
    for _ in range(2):  # the second time by the fast path
        outside = eval(call, names)
        with amp.autocast(device):
            assert eval(call, names).dtype == CALLS[call]
            with amp.autocast(device, enabled=False):
                assert eval(call, names).dtype == outside.dtype
        assert eval(call, names).dtype == outside.dtype
    with amp.autocast(
        "cpu" if device != "cpu" else "torch" if _usable("torch") else "cpu",
        enabled=device != "cpu",
    ):
        assert eval(call, names).dtype == outside.dtype


def _usable(name: str) -> bool:
    try:
        xgrad.Device(name)
    except xgrad.DeviceError:
        return False
    return True


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sqrt", "abs"])
def test_method_casts_within_autocast_also_after_calls_outside(name, device):
    x = xgrad.abs(array(3, device=device, dtype="float16"))
    getattr(x, name)()  # which takes, and keeps, the fast path
    with amp.autocast(device):
        assert getattr(x, name)().dtype == getattr(xgrad, name)(x).dtype


def test_attention_takes_masks_of_float32(device):
    layer = nn.MultiheadAttention(4, 2, batch_first=True, device=device)
    x, mask = array(2, 3, 4, device=device), array(3, 3, device=device)
    expected = host(layer(x, x, x, attn_mask=mask)[0])
    with amp.autocast(device):
        out, _ = layer(x, x, x, attn_mask=mask)
    assert out.dtype == "float16"
    np.testing.assert_allclose(host(out), expected, atol=1e-2)


def test_float64_is_left_alone(device):
    with amp.autocast(device):
        x = array(*X, device=device, dtype="float64")
        assert (x @ array(*W, device=device, dtype="float64")).dtype == "float64"
        assert functional.softmax(x).dtype == "float64"


def test_gradients_of_parameters_are_float32(device):
    # for 3 seeds of 1000, a ReLU's input is so near to 0 that it has another sign in float16
    xgrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)).to(device)
    x, labels = array(*X, device=device), xgrad.asarray(LABELS, device=device)
    functional.cross_entropy(model(x), labels).backward()
    exact = [host(p.grad) for p in model.parameters()]
    model.zero_grad()
    with amp.autocast(device):
        loss = functional.cross_entropy(model(x), labels)
    loss.backward()
    assert loss.dtype == "float32"
    for p, g in zip(model.parameters(), exact, strict=True):
        assert p.grad.dtype == p.dtype == "float32"
        np.testing.assert_allclose(host(p.grad), g, atol=5e-3)


def training(device: str, make: Any, **options: Any) -> tuple[Any, Any, Any, Any]:
    """Return a model, an optimizer, a scaler, and a step of mixed precision."""
    xgrad.manual_seed(0)
    model = nn.MLP([3, 8, 3]).to(device)
    optimizer, scaler = make(model.parameters()), amp.GradScaler(device, **options)

    def step(x: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        with amp.autocast(device):
            loss = functional.cross_entropy(model(x), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss, norm

    return model, optimizer, scaler, step


OPTIMIZERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
    "Adam": lambda params: optim.Adam(params, lr=0.01),
    "Adamax": lambda params: optim.Adamax(params, lr=0.01),
}


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_step_with_infinite_gradients_changes_nothing_but_the_scale(name, device):
    model, optimizer, scaler, step = training(
        device, OPTIMIZERS[name], init_scale=8.0, growth_interval=2
    )
    x, labels = array(*X, device=device), xgrad.asarray(LABELS, device=device)
    scales = []
    for i in range(6):
        before = [host(p) for p in model.parameters()]
        step(x * float("inf") if i in (0, 3) else x, labels)
        unchanged = [(host(p) == q).all() for p, q in zip(model.parameters(), before, strict=True)]
        assert all(unchanged) if i in (0, 3) else not any(unchanged)
        scales.append(scaler.get_scale())
    assert scales == [4.0, 4.0, 8.0, 4.0, 4.0, 8.0]
    state = optimizer.state_dict()["state"]
    assert all(
        np.isfinite(host(x)).all()
        for s in state.values()
        for x in s.values()
        if isinstance(x, xgrad.Tensor)
    )


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_captured_step_equals_eager(name, capturing_device):
    x, labels = array(*X, device=capturing_device), xgrad.asarray(LABELS, device=capturing_device)
    runs = []
    for capture in (lambda step: step, xgrad.capture):
        model, optimizer, scaler, step = training(
            capturing_device, OPTIMIZERS[name], init_scale=8.0, growth_interval=3
        )
        step = capture(step)
        for i in range(12):
            step(x * float("inf") if i == 5 else x, labels)
        weights = [host(p).tobytes() for p in model.parameters()]
        runs.append((weights, repr(optimizer.state_dict()), scaler.state_dict()))
    assert runs[0] == runs[1]
    assert step.refusal is None
    assert step.recordings == 1


def test_scaler_of_an_object_is_state_of_a_captured_step():
    run = SimpleNamespace(scaler=amp.GradScaler("cpu", init_scale=8.0))
    step = xgrad.capture(lambda x: run.scaler.scale(x))
    assert [step(array(3) * 0 + i).tolist()[0] for i in range(3)] == [0.0, 8.0, 16.0]
    assert step.refusal is None


def test_autocast_around_a_captured_step_has_its_own_trace():
    step = xgrad.capture(lambda x: x @ x)
    x = array(3, 3)
    for _ in range(2):
        assert step(x).dtype == "float32"
        with amp.autocast("cpu"):
            assert step(x).dtype == "float16"
    assert step.recordings == 2


def test_scale_follows_pytorch(torch):
    ours = amp.GradScaler(
        init_scale=16.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=2
    )
    other = torch.amp.GradScaler(
        "cpu", init_scale=16.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=2
    )
    p, q = xgrad.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], 0.1, momentum=0.9)
    reference = torch.optim.SGD([q], 0.1, momentum=0.9)
    for bad in (True, False, False, False, True, True, False, False, False, False):
        factor = float("inf") if bad else 1.0
        optimizer.zero_grad()
        reference.zero_grad()
        ours.scale((p * p).sum() * factor).backward()
        other.scale((q * q).sum() * factor).backward()
        ours.step(optimizer)
        other.step(reference)
        ours.update()
        other.update()
        np.testing.assert_allclose(p.tolist(), q.tolist(), 1e-6)
        assert ours.state_dict() == other.state_dict()
    follower = amp.GradScaler()
    follower.load_state_dict(ours.state_dict())
    assert follower.state_dict() == ours.state_dict()


def test_scaler_that_is_not_enabled_does_nothing():
    p = xgrad.ones(2, requires_grad=True)
    scaler, optimizer, loss = amp.GradScaler(enabled=False), optim.SGD([p], 0.5), (p * p).sum()
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "amp.autocast('cpu', dtype='bfloat16')",
            "TypeError: autocast: expected dtype float16, got bfloat16, which NumPy",
        ),
        (
            "amp.autocast('cpu', dtype=xp.float64)",
            "TypeError: autocast: expected dtype float16, got …",
        ),
        ("amp.autocast('cpu', dtype='x')", "TypeError: autocast: expected dtype float16, got 'x'"),
        ("amp.autocast('nowhere')", "DeviceError: …"),
        ("amp.autocast(5)", "TypeError: Device: expected a name such as 'cpu' or 'cuda:1', got 5"),
        (
            "amp.GradScaler(init_scale=0)",
            "ValueError: GradScaler: expected init_scale above 0, … got 0, 2.0 and 0.5",
        ),
        (
            "amp.GradScaler(growth_factor=1.0)",
            "ValueError: GradScaler: expected init_scale above 0",
        ),
        (
            "amp.GradScaler(growth_interval=1.5)",
            "ValueError: … expected an int above 0 for growth_interval, got 1.5",
        ),
        (
            "s.update()",
            "RuntimeError: GradScaler.update: expected a call of step() or unscale_() before, "
            "got none",
        ),
        (
            "s.step(empty)",
            "RuntimeError: GradScaler.unscale_: expected gradients, got none: "
            "call backward() before",
        ),
        (
            "[s.unscale_(o), s.unscale_(o)]",
            "RuntimeError: GradScaler.unscale_: expected one call before update(), got two",
        ),
        (
            "[s.step(o), s.step(o)]",
            "RuntimeError: GradScaler.step: expected one call before update(), got two",
        ),
        (
            "s.step(half)",
            "TypeError: GradScaler.unscale_: expected parameters of float32, got float16: "
            "use autocast()",
        ),
        (
            "s.step(lbfgs)",
            "TypeError: LBFGS: expected a call of step(closure), got one of GradScaler",
        ),
        (
            "s.load_state_dict({})",
            "ValueError: GradScaler.load_state_dict: expected ['_growth_tracker', …",
        ),
        (
            "s.load_state_dict(s.state_dict() | {'growth_factor': 'x'})",
            "ValueError: GradScaler.load_state_dict: expected growth_factor of the types of 2.0, "
            "got 'x'",
        ),
    ],
)
def test_errors(call, expected):
    p, q = (xgrad.ones(2, requires_grad=True) for _ in range(2))
    r = xgrad.ones(2, requires_grad=True, dtype=xgrad.float16)
    p.grad, r.grad = xgrad.ones(2), xgrad.ones(2, dtype=xgrad.float16)
    made = {"o": optim.SGD([p], 0.1), "empty": optim.SGD([q], 0.1), "half": optim.SGD([r], 0.1)}
    check_error(call, expected, amp=amp, s=amp.GradScaler(), lbfgs=optim.LBFGS([p]), **made)
