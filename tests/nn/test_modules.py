"""Modules and losses of the table, compared with PyTorch, finite differences and eager steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host
from nn.module_cases import CASES, ModuleCase
from xgrad import Tensor, nn

TOLERANCE = {"float32": 1e-5, "float64": 1e-9}


def values(case: ModuleCase, dtype: str = "float64") -> list[np.ndarray]:
    """Return the arguments of the call."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=x) if isinstance(x, tuple) else x for x in case.inputs]
    return [x.astype(dtype) if x.dtype.kind == "f" else x for x in arrays]


def parts(result: Any) -> Iterator[Any]:
    """Return the tensors in a result, such as the output and the state of an LSTM."""
    if isinstance(result, tuple):
        for part in result:
            yield from parts(part)
    elif result is not None:
        yield result


def weighted(result: Any, as_weight: Any) -> Any:
    """Return a scalar that depends on every element of the floating results.

    Each element has a weight of its own.
    """
    outs = [out for out in parts(result) if "float" in str(out.dtype)]
    terms = [
        (out * as_weight(np.cos(np.arange(np.prod(out.shape)) + 1.0).reshape(out.shape))).sum()
        for out in outs
    ]
    return sum(terms[1:], terms[0])


def made(case: ModuleCase, device: str = "cpu", dtype: str = "float64") -> nn.Module:
    """Return the module of a case with weights of normal random numbers."""
    options = {
        k: xgrad.asarray(v) if isinstance(v, np.ndarray) else v for k, v in case.options.items()
    }
    module = getattr(nn, case.name)(*case.args, **options).to(device, dtype=getattr(xgrad, dtype))
    rng = np.random.default_rng(2)
    for p in module.parameters():
        p.data = xgrad.asarray(0.5 * rng.normal(size=p.shape), dtype=p.dtype, device=device)
    return module


def tensors(
    case: ModuleCase, device: str = "cpu", dtype: str = "float64"
) -> tuple[list[Tensor], dict[str, Any]]:
    """Return the arguments of the call on a device, with floating ones as leaves."""
    inputs = [
        xgrad.asarray(x, device=device, requires_grad=x.dtype.kind == "f")
        for x in values(case, dtype)
    ]
    call = {
        k: xgrad.asarray(v, device=device) if isinstance(v, np.ndarray) else v
        for k, v in case.call.items()
    }
    return inputs, call


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # of PyTorch's Transformer
@pytest.mark.filterwarnings("ignore:LSTM with projections")  # of PyTorch's LSTM
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("case", "training"),
    [
        pytest.param(case, training, id=f"{case}-{'train' if training else 'eval'}")
        for case in CASES
        for training in ((True,) if case.is_loss else (True, False))  # losses have no modes
    ],
)
def test_module_matches_pytorch(case, training, dtype, device, torch):
    module = made(case, device, dtype).train(training)
    options = {
        k: torch.tensor(v) if isinstance(v, np.ndarray) else v
        for k, v in case.named_for_torch().items()
    }
    reference = getattr(torch.nn, case.name)(*case.args, **options).to(getattr(torch, dtype))
    reference.train(training).load_state_dict(
        {name: torch.tensor(host(x)) for name, x in module.state_dict().items()}
    )
    assert list(module.state_dict()) == list(reference.state_dict())
    inputs, call = tensors(case, device, dtype)
    others = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in values(case, dtype)]
    named = {
        key: torch.tensor(v) if isinstance(v, np.ndarray) else v for key, v in case.call.items()
    }

    result, expected = module(*inputs, **call), reference(*others, **named)
    weighted(
        result, lambda w: xgrad.asarray(w, dtype=getattr(xgrad, dtype), device=device)
    ).backward()
    weighted(expected, lambda w: torch.tensor(w, dtype=getattr(torch, dtype))).backward()

    pairs = dict(enumerate(zip(parts(result), parts(expected), strict=True)))
    pairs |= {
        f"input {i}": (x.grad, y.grad)
        for i, (x, y) in enumerate(zip(inputs, others, strict=True))
        if x.requires_grad
    }
    gradients = dict(reference.named_parameters())
    pairs |= {name: (p.grad, gradients[name].grad) for name, p in module.named_parameters()}
    state = reference.state_dict()
    pairs |= {f"buffer {name}": (buffer, state[name]) for name, buffer in module.named_buffers()}
    for name, (x, y) in pairs.items():
        y = y.detach().numpy()
        assert x.shape == y.shape, name
        scale = max(1.0, float(np.max(np.abs(np.where(np.isfinite(y), y, 0)), initial=0)))
        tolerance = max(TOLERANCE[dtype], case.torch_tolerance)
        np.testing.assert_allclose(host(x), y, tolerance, tolerance * scale, err_msg=str(name))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_of_module_match_finite_differences(case):
    module = made(case)
    inputs, call = tensors(case)
    floats = [x for x in inputs if x.requires_grad]
    state = dict(module.named_parameters())

    def scalar(*leaves: Tensor) -> Tensor:
        new = iter(leaves)
        arguments = tuple([next(new) if x.requires_grad else x for x in inputs])
        result = nn.utils.functional_call(
            module, dict(zip(state, new, strict=True)), arguments, call
        )
        return weighted(result, lambda w: xgrad.asarray(w))

    assert xgrad.testing.gradcheck(
        scalar, [*floats, *(p.detach().requires_grad_() for p in state.values())]
    )


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.is_loss or list(made(c).parameters())], ids=str
)
def test_captured_step_of_module_equals_eager(case, capturing_device):
    twins = [made(case, capturing_device, "float32") for _ in range(2)]

    def step_of(module: nn.Module) -> Any:
        def step(*inputs: Tensor) -> tuple[Any, ...]:
            module.zero_grad()
            leaves = [
                x.detach().requires_grad_(case.is_loss and x.dtype.kind == "f") for x in inputs
            ]
            result = module(*leaves, **call)
            sum((x * x).sum() for x in parts(result) if x.dtype.kind == "f").backward()
            gradients = [p.grad for p in (*module.parameters(), *leaves)]
            return (*parts(result), *(g for g in gradients if g is not None))

        return step

    inputs, call = tensors(case, capturing_device, "float32")
    inputs = [x.detach() for x in inputs]
    eager, captured = step_of(twins[0]), xgrad.capture(step_of(twins[1]))
    for _ in range(3):
        for x, y in zip(eager(*inputs), captured(*inputs), strict=True):
            assert host(x).tobytes() == host(y).tobytes()
    assert captured.refusal is None
