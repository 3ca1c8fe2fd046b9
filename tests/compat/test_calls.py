"""Calls of functions and methods, evaluated with each library: values, dtypes and gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from xgrad.compat import torch as compat

#: Expressions of ``x`` of shape (2, 3), ``y`` of shape (3,) and ``m`` of shape (2, 3, 4), all of
#: which require gradients in the comparison.
EXPRESSIONS = """
x + y
1 - x * 2 / (y + 3)
torch.add(x, y, alpha=2)
torch.sub(x, y, alpha=0.5)
torch.rsub(x, 1, alpha=2)
torch.div(x, y, rounding_mode='trunc')
torch.div(x, y, rounding_mode='floor')
torch.true_divide(x, 2)
x // 2
x % 2
abs(x) ** 0.5
x.pow(2)
2 ** x
torch.clamp(x, -1, 1)
x.clamp(min=0)
x.clamp_min(0.5)
torch.clip(x, max=y)
torch.maximum(x, y)
torch.max(x, y)
x.exp().log1p().sqrt().tanh().sigmoid().relu()
(x * x + 1).rsqrt()
torch.erf(x) + torch.lgamma(x * x + 1)
x.sum()
x.sum(0)
x.sum((0, 1))
x.sum(dim=[0], keepdim=True)
x.sum(axis=1, keepdims=True)
x.mean(-1)
x.mean(dtype=torch.float64)
x.prod()
x.prod(1, keepdim=True)
x.std()
x.std(1)
x.std(0, unbiased=False)
x.std(dim=(0, 1), keepdim=True, correction=0)
torch.var(x, False)
torch.var(x, 1, True)
torch.var_mean(x, dim=1)
torch.std_mean(x)
x.max()
x.max(1)
x.max(dim=0, keepdim=True)
x.min(-1).values
x.max(1)[0]
x.amax((0, 1))
x.aminmax(dim=1)
x.argmax()
x.argmax(1, keepdim=True)
x.argmin(dim=0)
x.norm()
x.norm(dim=1)
x.norm(p=1, dim=0, keepdim=True)
x.norm(2)
torch.norm(x, float('inf'))
x.logsumexp(1)
x.softmax(-1)
x.log_softmax(dim=0)
torch.softmax(x, 1, dtype=torch.float64)
x.cumsum(1)
x.cumprod(dim=0)
x.cummax(1)
x.sort()
x.sort(0, descending=True)
torch.sort(x, dim=1).indices
x.argsort(1, True)
x.topk(2)
x.topk(1, dim=0, largest=False)
x.kthvalue(2)
x.diff()
x.size(), x.size(0), x.shape[1], x.dim(), x.numel(), x.ndim
x.view(3, 2)
x.view(-1)
x.reshape(shape=(3, 2))
x.reshape((6,))
x.flatten()
m.flatten(1)
m.permute(2, 0, 1)
m.permute(dims=(2, 0, 1))
m.transpose(1, 2)
m.swapaxes(0, -1)
m.movedim(0, 2)
x.T
x.t()
m.mT
x.unsqueeze(1)
x[None].squeeze(0)
x.squeeze(1)
x[:1].squeeze()
y.expand(2, 3)
y.expand(4, -1)
y.repeat(2, 2)
x.repeat(1, 2, 1)
x.tile(2)
x.repeat_interleave(2, dim=1)
x.repeat_interleave(2)
x.unbind(1)
x.flip(0, 1)
x.flip(dims=[1])
x.roll(1)
x.roll((1, -1), dims=(0, 1))
x.rot90()
x.tril()
x.triu(diagonal=1)
torch.diag(y)
x.diagonal(offset=1)
torch.cat([x, x], dim=1)
torch.cat((x, y[None]))
torch.stack([y, y], 1)
torch.hstack([x, x])
torch.vstack([x, y])
torch.column_stack([y, y])
torch.meshgrid(y, y)
torch.meshgrid(y, x[0], indexing='xy')
torch.broadcast_tensors(x, y)
x[0]
x[:, 1:]
x[..., -1]
x[[1, 0]]
m[0, :, [0, 2]]
x[x > 0]
x.gather(1, torch.tensor([[0, 2], [1, 1]]))
x.index_select(1, torch.tensor([2, 0]))
torch.take(x, torch.tensor([5, 0]))
x.take_along_dim(torch.tensor([[0], [1]]), 1)
x.masked_fill(x > 0, float('-inf')).exp()
x.masked_select(x > 0)
torch.where(x > 0, x, y)
torch.where(x > 0, x, 0.5)
x.where(x > 0, torch.zeros(3))
torch.where(x > 0)
torch.nonzero(x > 0)
(x > 0).nonzero(as_tuple=True)
x.index_add(0, torch.tensor([0, 0]), x)
x @ y
x.matmul(m[0, :, :2])
torch.mm(x, x.T)
torch.bmm(m, m.transpose(1, 2))
torch.mv(x, y)
y.dot(y)
torch.outer(y, y)
torch.einsum('bij,bkj->bik', m, m)
torch.tensordot(x, x, dims=([1], [1]))
torch.addmm(torch.ones(2, 2), x, x.T, beta=0.5, alpha=2)
torch.baddbmm(torch.ones(1), m, m.transpose(1, 2))
torch.addcmul(x, x, x, value=0.5)
torch.addcdiv(x, x, x * x + 1)
torch.cross(y, x[0], dim=0)
torch.linalg.norm(x)
torch.linalg.vector_norm(x, ord=1, dim=1)
torch.linalg.matrix_norm(x)
torch.linalg.inv(x @ x.T + torch.eye(2))
torch.linalg.solve(m @ m.mT + torch.eye(3), x)
torch.linalg.svdvals(x)
torch.linalg.slogdet(x @ x.T + torch.eye(2))
torch.det(x @ x.T)
torch.fft.rfft(x, dim=1).abs()
torch.fft.fft2(m, dim=(0, 1)).real
torch.special.expit(x) + torch.special.xlogy(x * x, 2)
torch.dist(x, x + 1)
torch.isclose(x, x + 1e-9)
torch.allclose(x, x)
torch.equal(x, x), torch.equal(x, y)
torch.eq(x, x), x.ne(y), x.lt(0), x.ge(y)
torch.logical_and(x > 0, x < 1)
x.isnan().any(), x.isfinite().all(dim=1)
x.count_nonzero(dim=0)
x.unique()
(x > 0).sum(), (x > 0).float().mean()
torch.tensor([1, 1, 2]).unique(return_inverse=True, return_counts=True)
torch.searchsorted(torch.tensor([1.0, 2.0]), x.detach())
torch.bucketize(x.detach(), torch.tensor([0.0, 1.0]), right=True)
torch.zeros(2, 3), torch.zeros((2, 3)), torch.ones([2]), torch.full((2,), 7), torch.eye(2, 3)
torch.arange(5), torch.arange(1, 2, 0.25), torch.arange(3.0), torch.arange(5, 0, -2)
torch.linspace(0, 1, 5), torch.logspace(0, 2, 3)
torch.zeros_like(x), torch.full_like(x, 2), torch.ones_like(x, dtype=torch.int64)
torch.tensor([1, 2.5]), torch.tensor([True, False]), torch.tensor([[1], [2]]), torch.tensor(3)
torch.tensor(np.float64(3)), torch.tensor([np.float64(3)]), torch.tensor(np.arange(3, dtype='i2'))
torch.Tensor([1, 2]), torch.FloatTensor([1, 2]), torch.LongTensor([1, 2]), torch.Tensor(2, 3).shape
torch.tril_indices(3, 3), torch.triu_indices(2, 3, 1)
torch.complex(x, x).abs()
torch.polar(x.abs(), x).imag
x.type(torch.float64), x.double(), x.int(), x.bool(), x.to(torch.int64), x.half()
x.to('cpu', torch.float64, non_blocking=True), x.to(torch.zeros(1, dtype=torch.int32))
x.type(), x.is_cuda, x.is_floating_point(), x.element_size(), x.nelement(), x.stride(), x.T.stride()
torch.result_type(x, torch.tensor(1.0, dtype=torch.float64)) == torch.float32
torch.finfo(torch.float32).eps, torch.iinfo(torch.int8).min
torch.get_default_dtype() == torch.float32
torch.round(x, decimals=1), x.trunc(), x.frac(), x.sign(), x.floor(), x.ceil()
torch.logical_not(x), torch.isinf(x), torch.atan2(x, y), torch.hypot(x, y)
torch.cartesian_prod(y, y), torch.broadcast_shapes((2, 1), (3,))
torch.numel(x), torch.is_tensor(x), torch.is_tensor(1), len(x), [a.shape for a in x]
"""
CASES = EXPRESSIONS.strip().splitlines()
#: Expressions for which PyTorch has no gradient.
NO_GRADIENT = {"x // 2", "x.unique()"}


def values(library: Any, text: str, requires_grad: bool = False) -> tuple[Any, list[Any]]:
    random = np.random.default_rng(0)
    leaves = [
        library.tensor(random.normal(size=shape).astype("float32")) for shape in ((2, 3), (3,))
    ]
    leaves.append(library.tensor(random.normal(size=(2, 3, 4)).astype("float32")))
    for leaf in leaves:
        leaf.requires_grad_(requires_grad)
    names = {"torch": library, "np": np, **dict(zip("xym", leaves, strict=True))}
    return eval(text, names), leaves


def parts(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in parts(part)]
    return [value]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("text", CASES)
def test_calls_match_pytorch(torch: Any, text: str) -> None:
    expected, got = (parts(values(library, text)[0]) for library in (torch, compat))
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        if not isinstance(other, torch.Tensor):
            assert one == other
            continue
        assert type(one) is compat.Tensor
        assert str(one.dtype) == str(other.dtype).removeprefix("torch.")
        assert tuple(one.shape) == tuple(other.shape)
        np.testing.assert_allclose(
            one.numpy(), other.numpy(), rtol=1e-2 if other.dtype == torch.float16 else 2e-5,
            atol=1e-5,
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("text", [text for text in CASES if text not in NO_GRADIENT])
def test_gradients_match_pytorch(torch: Any, text: str) -> None:
    gradients = []
    for library in (torch, compat):
        result, leaves = values(library, text, requires_grad=True)
        terms = [x for x in parts(result) if getattr(x, "requires_grad", False)]
        if terms:
            sum((x.double() ** 2).sum() for x in terms).backward()  # type: ignore[attr-defined]
        gradients.append([None if leaf.grad is None else leaf.grad.numpy() for leaf in leaves])
    for one, other in zip(gradients[1], gradients[0], strict=True):
        if one is None or other is None:  # there is none, or it is 0
            assert all(g is None or not np.any(g) for g in (one, other))
        else:
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-4)


#: Expressions with their values, for a run without PyTorch.
LITERALS = {
    "x.sum().item()": 15,
    "x.max(1).values.tolist()": [2, 5],
    "x.max(1).indices.tolist()": [2, 2],
    "x.max().item()": 5,
    "x.size(0)": 2,
    "tuple(x.size())": (2, 3),
    "x.T.shape[0]": 3,
    "x[None].T.shape[2]": 1,
    "x.squeeze(1).shape[1]": 3,
    "x.repeat(2, 1).tolist()": [[0, 1, 2], [3, 4, 5], [0, 1, 2], [3, 4, 5]],
    "torch.cat([x, x], dim=1).shape[1]": 6,
    "torch.nonzero(x > 3).tolist()": [[1, 1], [1, 2]],
    "torch.where(x > 3)[1].tolist()": [1, 2],
    "torch.take(x, torch.tensor([5])).tolist()": [5],
    "torch.meshgrid(x[0], x[1])[0][2].tolist()": [2, 2, 2],
    "torch.triu(x, diagonal=1).tolist()": [[0, 1, 2], [0, 0, 5]],
    "torch.equal(x, x)": True,
    "round(x.std().item(), 4)": 1.8708,
    "round(x.var(0, unbiased=False)[0].item(), 4)": 2.25,
    "x.sum(dim=0, keepdim=True).tolist()": [[3, 5, 7]],
    "x.sort(1, descending=True).values.tolist()": [[2, 1, 0], [5, 4, 3]],
    "x.view(-1, 2)[2].tolist()": [4, 5],
    "x.norm(dim=1)[0].item()": math.sqrt(5),
    "torch.add(x, x, alpha=2)[1].tolist()": [9, 12, 15],
    "(torch.arange(3) / 2).tolist()": [0, 0.5, 1],
    "torch.arange(3).dtype == torch.int64": True,
    "x.masked_fill(x > 1, -1).tolist()": [[0, 1, -1], [-1, -1, -1]],
    "x.gather(1, torch.tensor([[2], [0]])).tolist()": [[2], [3]],
    "[row.tolist() for row in x.unbind()]": [[0, 1, 2], [3, 4, 5]],
    "x.type(torch.int32).type()": "torch.IntTensor",
}


@pytest.mark.parametrize("text", LITERALS)
def test_literal_values(text: str) -> None:
    names = {"torch": compat, "x": compat.arange(6.0).reshape(2, 3)}
    result = eval(text, names)
    expected = LITERALS[text]
    assert result == (pytest.approx(expected) if isinstance(expected, float) else expected)
