"""Transforms, gradients, captured steps and modules with tensors of the compatible namespace."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgrad
from tests.compat.compared import check_close, leaves
from xgrad import nn, optim
from xgrad.compat import torch
from xgrad.compat import torch as compat
from xgrad.compat.torch.tensor import Parameter, as_torch


def cube(x: Any) -> Any:
    assert type(x) is torch.Tensor
    return (x * x * x).sum(dim=0)


def test_transforms_call_functions_with_its_tensors() -> None:
    x = torch.tensor([1.0, 2.0])
    for result in (
        torch.func.grad(cube)(x),
        torch.func.jacrev(cube)(x),
        torch.func.jacfwd(cube)(x),
        torch.func.vjp(cube, x)[1](torch.tensor(1.0))[0],
        torch.func.grad_and_value(cube)(x)[0],
        torch.autograd.functional.jacobian(cube, x),
        torch.autograd.functional.vjp(cube, x)[1],
    ):
        assert type(result) is torch.Tensor
        assert result.tolist() == [3, 12]
    assert torch.func.hessian(cube)(x).tolist() == [[6, 0], [0, 12]]
    assert torch.func.jvp(cube, (x,), (torch.ones(2),))[1].item() == 15
    assert torch.autograd.functional.hessian(cube, x).tolist() == [[6, 0], [0, 12]]
    assert torch.autograd.functional.jvp(cube, x, torch.ones(2))[1].item() == 15
    assert torch.autograd.functional.hvp(cube, x, torch.ones(2))[1].tolist() == [6, 12]


def test_vmap_maps_methods_with_their_meaning_in_pytorch() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    mapped = torch.vmap(lambda row: (row.max(0).values, row.std(), row.size(0)))
    with pytest.raises(TypeError):
        mapped(x)  # an int is no result
    values, spread = torch.func.vmap(lambda row: (row.max(0).values, row.std()))(x)
    assert values.tolist() == [2, 5]
    assert spread.tolist() == [1, 1]
    slopes = torch.func.vmap(torch.func.grad(cube))(x)
    assert torch.allclose(slopes, 3 * x**2)


def test_gradients_are_its_tensors() -> None:
    x = torch.ones(2, requires_grad=True)
    (gradient,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    assert type(gradient) is torch.Tensor
    seen = []
    x.register_hook(lambda g: seen.append(type(g)))
    gradient.sum().backward()
    assert seen == [torch.Tensor]
    assert x.grad.tolist() == [2, 2]
    unused = torch.ones(1, requires_grad=True)
    found = torch.autograd.grad(x.sum(), [x, unused], materialize_grads=True)
    assert [g.tolist() for g in found] == [[1, 1], [0]]


MODULES = {
    "linear": (lambda: nn.Linear(4, 3), (5, 4)),
    "perceptron": (lambda: nn.MLP([4, 8, 3]), (5, 4)),
    "batch norm": (lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU()), (5, 4)),
    "layer norm": (lambda: nn.Sequential(nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)), (5, 4)),
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 2)
        ),
        (2, 3, 4, 4),
    ),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (2, 5, 8)),
    "group norm": (lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.SiLU()), (2, 4, 3)),
}
OPTIMIZERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01),
    "AdamW": lambda params: optim.AdamW(params, lr=0.01),
    "RMSprop": lambda params: optim.RMSprop(params, lr=0.01),
    "Adagrad": lambda params: optim.Adagrad(params, lr=0.1),
}


def losses(module: str, optimizer: str, compatible: bool, captured: bool) -> list[float]:
    make, shape = MODULES[module]
    xgrad.manual_seed(0)
    model = make()
    values = np.random.default_rng(0).normal(size=shape).astype("float32")
    x = torch.tensor(values) if compatible else xgrad.asarray(values)
    if compatible:
        as_torch(list(model.parameters()))
        assert all(type(p) is Parameter for p in model.parameters())
    update = OPTIMIZERS[optimizer](model.parameters())

    def step(x: Any) -> Any:
        update.zero_grad()
        out = model(x)
        loss = xgrad.mean(out * out)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update.step()
        return loss

    run = xgrad.capture(step) if captured else step
    return [run(x).item() for _ in range(4)]


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize(
    ("module", "optimizer"),
    [*((module, "SGD") for module in MODULES), *(("perceptron", name) for name in OPTIMIZERS)],
)
def test_training_has_the_bits_of_plain_tensors(
    module: str, optimizer: str, captured: bool
) -> None:
    plain = losses(module, optimizer, compatible=False, captured=False)
    assert losses(module, optimizer, compatible=True, captured=captured) == plain


def test_captured_function_returns_its_tensors() -> None:
    @torch.compile
    def function(x: Any) -> Any:
        return x.max(1), x.std(), {"size": x.size(0)}, x[0]

    x = torch.arange(6.0).reshape(2, 3)
    for _ in range(4):
        (values, indices), spread, sizes, row = function(x)
        assert [type(y) for y in (values, indices, spread, row)] == 4 * [torch.Tensor]
        assert (values.tolist(), indices.tolist(), sizes) == ([2, 5], [2, 2], {"size": 2})


def test_options_of_compile() -> None:
    def double(x: Any) -> Any:
        return 2 * x

    assert torch.compile(double, disable=True) is double
    assert torch.compile(disable=True)(double) is double
    compiled = torch.compile(mode="reduce-overhead", fullgraph=True, dynamic=False)(double)
    assert compiled(torch.ones(1)).item() == 2
    with pytest.raises(TypeError, match="foo"):
        torch.compile(double, foo=1)


def test_compiled_module_trains_and_predicts() -> None:
    model = nn.Linear(2, 2)
    x = torch.ones(1, 2)
    compiled = torch.compile(model)
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert compiled.in_features == 2
    for _ in range(3):
        with torch.no_grad():
            assert torch.equal(compiled(x), model(x))
    compiled(x).sum().backward()
    assert model.weight.grad is not None
    assert model.weight.grad.tolist() == [[1, 1], [1, 1]]
    other = copy.deepcopy(compiled)
    with torch.no_grad():
        other._orig_mod.bias += 1
        assert torch.allclose(other(x), model(x) + 1)
        assert torch.equal(compiled(x), model(x))


def test_save_and_load(tmp_path: Path) -> None:
    state = {"model": {"w": torch.ones(2)}, "steps": [1, 2.5], "name": "net", "none": None}
    torch.save(state, tmp_path / "state.pt")
    loaded = torch.load(tmp_path / "state.pt", map_location="cpu", weights_only=True)
    assert type(loaded["model"]["w"]) is torch.Tensor
    assert loaded["model"]["w"].tolist() == [1, 1]
    assert {key: loaded[key] for key in ("steps", "name", "none")} == {
        "steps": [1, 2.5],
        "name": "net",
        "none": None,
    }


def test_copies_and_pickles_keep_the_class() -> None:
    x = torch.ones(2, requires_grad=True)
    for y in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is torch.Tensor
        assert y.requires_grad
        assert y.tolist() == [1, 1]
    p = Parameter(torch.ones(2))
    assert type(copy.deepcopy(p)) is Parameter


def test_modes() -> None:
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert not (x + 1).requires_grad
        with torch.set_grad_enabled(True):
            assert (x + 1).requires_grad
    with torch.inference_mode():
        assert not torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)

    @torch.inference_mode()
    def one() -> Any:
        return x + 1

    @torch.no_grad
    def other() -> Any:
        return x + 1

    assert not one().requires_grad
    assert not other().requires_grad


def test_random_numbers_follow_seeds() -> None:
    torch.manual_seed(1)
    first = torch.randn(2, 3), torch.rand((2,)), torch.randint(0, 5, (4,)), torch.randperm(5)
    torch.manual_seed(1)
    second = torch.randn(2, 3), torch.rand(2), torch.randint(5, (4,)), torch.randperm(5)
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(3, generator=generator)
    assert torch.equal(x, torch.randn(3, generator=torch.Generator().manual_seed(3)))
    assert generator.initial_seed() == 3


def test_devices_and_settings() -> None:
    assert torch.device("cpu", 0) is torch.device("cpu") is torch.ones(1).device
    assert isinstance(torch.ones(1).device, torch.device)
    assert torch.cuda.is_available() == (torch.cuda.device_count() > 0)
    torch.backends.cudnn.benchmark = True
    assert not torch.backends.mps.is_available()
    if not torch.cuda.is_available():
        assert torch.accelerator.current_accelerator() is None


def test_mixed_precision() -> None:
    with torch.autocast("cpu", dtype=torch.float16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float16
    assert type(torch.GradScaler(enabled=False).scale(torch.ones(1))) is torch.Tensor


#: Calls of `torch.autograd.functional`, with ``x`` of shape (2, 3) and ``y`` of shape (3,).
FUNCTIONAL_CALLS = """
A.jacobian(lambda x, y: (x * y, (x * y).sum(1)), (x, y))
A.jacobian(torch.sin, y, vectorize=True)
A.jacobian(torch.sin, y, create_graph=True)
A.hessian(lambda x, y: (x**3 * y).sum(), (x, y))
A.vjp(torch.sum, x)
A.vjp(lambda x: (x**2, x.sum()), x, (x, x[0, 0]))
A.jvp(lambda x, y: x * y, (x, y), (x, y))
A.jvp(lambda x: x * 3, y[:1])
A.hvp(lambda x, y: (x**3 * y).sum(), (x, y), (x, y))
A.vhp(lambda x, y: (x**3 * y).sum(), (x, y), (x, y))
A.hvp(lambda x: (x**3).sum(), y, y, create_graph=True)
"""


@pytest.mark.parametrize("call", FUNCTIONAL_CALLS.strip().splitlines())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_derivatives_of_functions_match_pytorch(torch: Any, call: str) -> None:
    found = []
    for library in (compat, torch):
        names: dict[str, Any] = {"torch": library, "A": library.autograd.functional}
        names["x"] = library.arange(6.0).reshape(2, 3).requires_grad_()
        names["y"] = library.ones(3).mul_(0.5).requires_grad_()
        found.append(eval(call, names))
    check_close(found[0], found[1], 1e-6)
    assert [x.requires_grad for x in leaves(found[0])] == [
        x.requires_grad for x in leaves(found[1])
    ]


def test_derivatives_of_functions_need_a_vector_unless_there_is_one_element() -> None:
    functional = compat.autograd.functional
    x = compat.ones(3)
    with pytest.raises(RuntimeError, match="vjp: expected v"):
        functional.vjp(compat.sin, x)
    with pytest.raises(RuntimeError, match="jvp: expected v"):
        functional.jvp(compat.sin, x)
    with pytest.raises(RuntimeError, match="hvp: expected v"):
        functional.hvp(lambda x, y: (x * y).sum(), (x, x))
    with pytest.raises(NotImplementedError, match="strict"):
        functional.jacobian(compat.sin, x, strict=True)
    with pytest.raises(TypeError, match="foo"):
        functional.jacobian(compat.sin, x, foo=1)


def test_gradients_are_checked_with_differences() -> None:
    x = compat.tensor([1.0, 3.0], dtype=compat.float64, requires_grad=True)
    assert compat.autograd.gradcheck(lambda x: (x.max(0).values + x[0], x.std()), x)
    assert compat.autograd.gradgradcheck(lambda x: x**3, x)
    with pytest.raises(AssertionError, match="gradcheck"):
        compat.autograd.gradcheck(lambda x: x.detach() * x, x)
