"""Views, writes in place and ``out=``, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad.compat import torch as compat

#: Programs that change ``x`` of shape (2, 3), or a view of it, and leave a result in ``y``.
PROGRAMS = """
y = x.detach(); x.zero_()
y = x.data; x.add_(1)
y = x.flip(0); x.zero_()
y = x.flip(0); y.zero_(); y = x
y = x.T; x.mul_(2)
y = x.T; y[0] = 5; y = x
y = x.view(-1); y[2:] = 9; y = x
y = x.reshape(3, 2); y.zero_(); y = x
y = x.expand(4, 2, 3); x.zero_()
y = x[0]; y += 1; y = x
y = x[:, 1]; x.fill_(2)
y = x.clone(); x.zero_()
y = x.unbind(1)[1]; x.zero_()
y = +x; y.zero_(); y = x
y = x.squeeze(0); y.zero_(); y = x
y = x.unsqueeze(0); y.zero_(); y = x
y = torch.meshgrid(x[0], x[0])[0]; x.zero_()
y = x.contiguous(); y.zero_(); y = x
y = x.t().contiguous(); y.zero_(); y = x
y = x.real; y.zero_(); y = x
y = x.float(); y.zero_(); y = x
y = x.double(); y.zero_(); y = x
y = x.to(torch.float32); y.zero_(); y = x
y = x.diagonal(); y.fill_(7); y = x
y = x.transpose(0, 1); y.add_(1); y = x
y = x.movedim(0, 1); y.sub_(1); y = x
y = x.masked_fill_(x > 0, 3)
y = x.clamp_(-0.5, 0.5)
y = x.exp_().sqrt_().log_()
y = x.add_(x, alpha=2).sub_(1, alpha=3)
y = x.addcmul_(x, x, value=0.5)
y = x.addcdiv_(x, x + 3, value=-1)
y = x.copy_(torch.arange(3))
y = x.index_fill_(1, torch.tensor([0, 2]), -1)
y = x.index_add_(0, torch.tensor([0, 0]), torch.ones(2, 3))
y = x.tril_()
y = x.fill_diagonal_(4)
y = x.cumsum_(1)
y = x.floor_divide_(2)
y = x.remainder_(2)
y = x.neg_().abs_().pow_(2)
x /= 2; x -= 1; x **= 2; y = x
x[x > 0] = 0; y = x
x[:, 0] += 10; y = x
y = torch.empty(0); torch.add(x, 1, out=y)
y = torch.zeros(2); torch.sum(x, dim=1, out=y)
y = torch.zeros(2); i = torch.zeros(2, dtype=torch.int64); torch.max(x, dim=1, out=(y, i))
y = x.detach_().zero_()
y = x.set_(torch.ones(2, 3))
y = x.data; x.data = torch.ones(2, 3)
y = x.data; x.data = torch.ones(2, 3); x.data = y; y = x
y = x[0]; x.data = torch.ones(2, 3); x += 1
y = x.view(-1); y.data = torch.ones(6); y = x
y = x.detach(); y.data = torch.ones(2, 3); y = x
y = x.data; torch.nn.init.ones_(x)
y = torch.nn.Linear(3, 2, bias=False); z = y.weight.data; y.load_state_dict({'weight': x}); y = z
y = torch.nn.Linear(3, 2); z = y.state_dict(); torch.nn.init.eye_(y.weight); y = z['weight']
y = x.new_tensor([1, 2]); y += 1
y = x.new_zeros(2, 2) + x.new_ones((2, 2)) + x.new_full((2, 2), 3)
y = x.type('torch.DoubleTensor')
y = x.where(x > 0, torch.tensor(5.0))
"""
CASES = PROGRAMS.strip().splitlines()
VALUES = np.asarray([[0.5, -1.5, 2.0], [-0.25, 3.0, -2.0]], np.float32)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("program", CASES)
def test_programs_match_pytorch(torch: Any, program: str) -> None:
    results = []
    for library in (torch, compat):
        names: dict[str, Any] = {"torch": library, "x": library.tensor(VALUES)}
        exec(program, names)
        results.append(names["y"].detach().numpy())
    assert results[1].dtype == results[0].dtype
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6, equal_nan=True)


def test_write_in_place_keeps_the_object_and_its_gradient() -> None:
    x = compat.ones(3, requires_grad=True)
    y = 2 * x
    same = y.add_(1)
    assert same is y
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    with compat.no_grad():
        x -= 0.5 * x.grad
    assert x.tolist() == [0, 0, 0]
    assert x.is_leaf
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)


def test_parameter_of_xgrad_stays_the_same_object() -> None:
    from xgrad.compat.torch.tensor import Parameter, as_torch

    layer = xgrad.nn.Linear(2, 2)
    weight = layer.weight
    assert as_torch(weight) is weight is layer.weight
    assert type(weight) is Parameter
    assert isinstance(weight, xgrad.nn.Parameter)


def test_out_refuses_gradients_and_other_shapes() -> None:
    x = compat.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="exp: expected tensors that require no gradient"):
        compat.exp(x, out=compat.zeros(3))
    with pytest.raises(ValueError, match=r"exp: expected out= of shape \(3,\)"):
        compat.exp(x.detach(), out=compat.zeros(2))


def test_random_numbers_in_place_are_seeded() -> None:
    compat.manual_seed(3)
    first = compat.empty(4).normal_(), compat.empty(4).uniform_(2, 3)
    compat.manual_seed(3)
    second = compat.empty(4).normal_(), compat.empty(4).uniform_(2, 3)
    assert all(compat.equal(x, y) for x, y in zip(first, second, strict=True))
    assert ((first[1] >= 2) & (first[1] < 3)).all()
    assert compat.zeros(100, dtype=compat.int64).random_(0, 3).unique().tolist() == [0, 1, 2]
