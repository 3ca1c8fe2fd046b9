"""Methods with PyTorch's names: values and gradients compared with PyTorch, and errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad.ops.torch_methods import METHODS

UNARY = """absolute acos asin atan asinh atanh ceil cos cosh expm1 floor isfinite isinf isnan log10
    log1p log2 neg negative reciprocal round rsqrt sign signbit sin sinh square tan trunc clone
    contiguous ravel flatten squeeze numel dim element_size is_floating_point is_complex t float
    double long int bool amax amin count_nonzero diff norm argsort"""
BINARY = """add atan2 copysign div divide true_divide eq ge greater_equal gt greater hypot le
    less_equal logaddexp lt less maximum minimum mul multiply ne not_equal pow remainder sub
    subtract view_as reshape_as type_as expand_as"""
NUMBER = "add sub mul div pow eq ne lt le gt ge remainder"
CHANGES = "abs_ exp_ neg_ sqrt_ zero_"
CHANGES_BY = "add_ sub_ subtract_ mul_ multiply_ div_ divide_ pow_ copy_"

#: Calls that mean the same in PyTorch: `x` and `y` are positive and of shape (3, 4), `v` and `w` of
#: shape (4,), `i` indices, `p` indices that differ
#: along both axes, `m` bools, `k` integers, `z` of shape (1, 3, 1).
CALLS = [
    *[f"x.{name}()" for name in UNARY.split()],
    *[f"x.{name}(y)" for name in BINARY.split()],
    *[f"x.{name}(2.0)" for name in NUMBER.split()],
    *[f"x.clone().{name}()" for name in CHANGES.split()],
    *[f"x.clone().{name}({other})" for name in CHANGES_BY.split() for other in ("y", "w")],
    "(x + 1).acosh()",
    "y.floor_divide(y + 1)",
    "y.floor_divide(2.0)",
    *[f"m.{name}()" for name in ("logical_not", "bitwise_not", "float", "long")],
    *[f"m.{name}(m)" for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and")],
    *[
        f"k.{name}(k + 1)"
        for name in ("bitwise_or", "bitwise_xor", "bitwise_and", "add", "div", "pow")
    ],
    "k.float()",
    "k.bool()",
    "k.cumsum(0)",
    "k.abs()",
    "k.clamp(1, 3)",
    "m.count_nonzero()",
    "m.cumsum(0)",
    "x.clamp(0.5, 1.0)",
    "x.clamp(max=1.0)",
    "x.clip(min=0.5)",
    "x.clone().clamp_(0.5, 1.0)",
    "x.clone().clamp_(min=1.0)",
    "x.clone().clip_(max=1.0)",
    "x.clone().fill_(2.0)",
    "x.clone().masked_fill_(m, 2.0)",
    "x.clone().add_(1)",
    "x.clone().mul_(2.5)",
    "x.clone().copy_(k.float()[:1])",
    "(x * 2).add_(x).mul_(y).sum()",
    "x.masked_fill(m, 2.0)",
    "x.masked_fill(m[0], -1)",
    "x.where(m, y)",
    "x.where(x > 1, 0.0)",
    "x.matmul(y.t())",
    "x.mm(y.t())",
    "x.matmul(v)",
    "z.expand(2, 3, 4).bmm(y.expand(2, 3, 4).transpose(1, 2))",
    "v.dot(w)",
    "v.outer(w)",
    "v.t()",
    "x.unsqueeze(0)",
    "x.unsqueeze(-1)",
    "x.unsqueeze(dim=1)",
    "z.squeeze()",
    "z.squeeze(0)",
    "x.squeeze()",
    "x.permute(1, 0)",
    "x.permute((1, 0))",
    "x.permute(dims=(-1, 0))",
    "z.permute(2, 0, 1)",
    "x.transpose(0, 1)",
    "z.transpose(-1, 0)",
    "z.swapaxes(1, 2)",
    "z.transpose(dim0=0, dim1=1)",
    "z.movedim(1, 0)",
    "z.moveaxis((0, 1), (1, 2))",
    "x.view(-1)",
    "x.view(2, 6)",
    "x.view((4, 3))",
    "x.reshape(2, -1)",
    "z.flatten(1)",
    "z.flatten(0, 1)",
    "z.flatten(start_dim=-2)",
    "x.sum().flatten()",
    "x.sum().ravel()",
    "z.expand(2, 3, 4)",
    "z.expand(-1, -1, 5)",
    "v.expand(3, -1)",
    "v.expand((2, 4))",
    "v.expand_as(x)",
    "x.tile(2)",
    "x.tile((2, 1))",
    "v.tile(2, 2)",
    "x.tril()",
    "x.triu(1)",
    "x.tril(diagonal=-1)",
    "x.amax(0)",
    "x.amin(1, True)",
    "x.amax(dim=(0, 1), keepdim=True)",
    "x.count_nonzero(0)",
    "x.argsort(1)",
    "x.argsort(dim=0, descending=True)",
    "x.cumsum(0)",
    "x.cumsum(dim=-1)",
    "x.cumprod(1)",
    "x.cumprod(dim=0)",
    "x.diff(dim=0)",
    "x.diff(2)",
    "x.diff(1, 0, prepend=y)",
    "x.flip(0)",
    "x.flip(0, 1)",
    "x.flip((1,))",
    "x.flip(dims=(0, 1))",
    "x.roll(1)",
    "x.roll(2, 0)",
    "x.roll((1, 2), (0, 1))",
    "x.roll(1, dims=-1)",
    "x.softmax(1)",
    "x.softmax(dim=0)",
    "x.log_softmax(-1)",
    "x.log_softmax(dim=0)",
    "x.logsumexp(1)",
    "x.logsumexp(dim=(0, 1), keepdim=True)",
    "x.norm(1)",
    "x.norm(dim=1)",
    "x.norm(p=1, dim=0, keepdim=True)",
    "x.norm('fro')",
    "x.norm(3, (0, 1))",
    "x.repeat_interleave(2)",
    "x.repeat_interleave(2, 1)",
    "x.repeat_interleave(k[:3], dim=0)",
    "x.unbind()",
    "x.unbind(1)",
    "x.unbind(dim=-1)",
    "x.index_select(0, k[:2])",
    "x.index_select(dim=1, index=k)",
    "x.gather(0, i)",
    "x.gather(1, i)",
    "x.gather(dim=-1, index=i[:1])",
    # with factors and roundings
    "x.add(y, alpha=2)",
    "x.add(2.0, alpha=0.5)",
    "x.sub(w, alpha=-1.5)",
    "x.subtract(other=y, alpha=3)",
    "k.add(k, alpha=2)",
    "x.clone().add_(y, alpha=0.25)",
    "x.clone().sub_(1, alpha=2)",
    "x.clone().subtract_(w, alpha=2)",
    *[
        f"{a}.div({b}, rounding_mode='{mode}')"
        for mode in ("floor", "trunc")
        for a, b in (("(x - 1)", "y"), ("(x * 9 - 4)", "2.0"), ("(k - 2)", "2"), ("(2 - k)", "-2"))
    ],
    "x.divide(y, rounding_mode=None)",
    "(x * 9).div_(2, rounding_mode='floor')",
    "(x * -9).divide_(y, rounding_mode='trunc')",
    "(x - 0.5).fmod(y)",
    "(x * -9).fmod(2)",
    "(k - 2).fmod(2)",
    "(x * 9 - 5).frac()",
    "x.clone().fmod_(0.25)",
    "x.clamp_min(0.5)",
    "x.clamp_max(max=0.5)",
    "x.clone().clamp_min_(0.5)",
    "x.clone().clamp_max_(0.5)",
    "x.erf()",
    "x.lerp(y, 0.25)",
    "x.lerp(y, 0.75)",
    "x.lerp(y, x)",
    "x.lerp(end=w, weight=y)",
    "x.clone().lerp_(y, 0.25)",
    "x.addcmul(x, y)",
    "x.addcmul(x, w, value=2)",
    "x.addcdiv(x, y, value=-0.5)",
    "x.clone().addcmul_(x, y, value=2)",
    "x.clone().addcdiv_(x, y)",
    "x.addmm(x[:, :3], x)",
    "v.addmm(x[:, :3], x, beta=0.5, alpha=2)",
    "v.addmm(x[:, :3], x, beta=0)",
    "x.clone().addmm_(x[:, :3], x, alpha=-1)",
    "z.baddbmm(x.view(2, 3, 2), x.view(2, 2, 3), beta=2)",
    "x.where(m, float('nan')).nan_to_num()",
    "x.where(m, float('inf')).nan_to_num(1.0, 2.0, -3.0)",
    "x.where(m, float('-inf')).nan_to_num_(neginf=-3.0, posinf=4.0)",
    # parts
    "x.split(2)",
    "x.split(3, 1)",
    "x.split([1, 0, 3], dim=1)",
    "x.split(split_size=4, dim=-1)",
    "x[:0].split(2)",
    "x.chunk(2)",
    "x.chunk(3, dim=1)",
    "x[:0].chunk(2)",
    "x.tensor_split(3, 1)",
    "x.tensor_split((1, 3), dim=1)",
    "x.tensor_split([2, 9])",
    "x.tensor_split([-1])",
    "x.narrow(1, 1, 2)",
    "x.narrow(0, -2, 1)",
    "x.narrow(dim=0, start=3, length=0)",
    "x.unfold(1, 2, 1)",
    "x.unfold(0, 2, 2)",
    "v.unfold(0, 3, 1)",
    "x.unfold(-1, 0, 2)",
    "x.unfold(dimension=1, size=4, step=3)",
    "x.masked_select(m)",
    "x.masked_select(v > 0.5)",
    "x.fliplr()",
    "x.flipud()",
    "x.rot90()",
    "x.rot90(2)",
    "x.rot90(-1)",
    "z.rot90(1, [2, 1])",
    "z.rot90(k=4, dims=(0, 1))",
    # writes at indices
    "x.scatter(0, p, y[:2])",
    "x.scatter(0, p, y)",
    "x.scatter(1, p, 2.0)",
    "x.scatter(dim=0, index=p[:1], value=-1.0)",
    "x.scatter_add(0, i, y)",
    "x.scatter_add(dim=1, index=i, src=y)",
    "x.index_add(0, k[:3], x)",
    "x.index_add(1, k, y, alpha=2)",
    "x.index_copy(0, k[:2], x[1:])",
    "x.index_copy(dim=1, index=k[1:3], source=y[:, :2])",
    "x.index_fill(0, k, 2.0)",
    "x.index_fill(1, k[:2], -1)",
    "x.clone().scatter_(0, p, x[1:, 1:])",
    "x.clone().scatter_(1, p, value=3.0)",
    "x.clone().scatter_add_(0, i, x[1:, 1:])",
    "x.clone().index_add_(0, k[:3], x, alpha=0.5)",
    "x.clone().index_copy_(0, k[:2], x[1:])",
    "x.clone().index_fill_(1, k[:2], 7)",
    "(x * 1).narrow(0, 1, 2).mul_(2)",
    "x.topk(2)",
    "x.topk(2, 0, False)",
    "x.topk(k=1, dim=1, sorted=True)",
    "x.isclose(y)",
    "x.isclose(x + 1e-7, atol=1e-3)",
    "x.allclose(x)",
    "k.bincount()",
    "k.bincount(w, 5)",
    "k.bincount(minlength=2)",
    "x.cov()",
    "x.cov(correction=0, fweights=k + 1)",
    "v.cov()",
    "x.corrcoef()",
    "x.allclose(y, 0.0, 10.0)",
    "x.softmax(1, dtype=w.dtype)",
    "k.softmax(0, dtype=x.dtype)",
    "k.log_softmax(dim=0, dtype=x.dtype)",
    # dtypes and devices
    "k.byte()",
    "x.half()",
    "k.short()",
    "x.to(k)",
    "k.to(x.dtype)",
    "k.to(x)",
    "k.to(x.device, x.dtype)",
    "k.to(x.device, x.dtype, True)",
    "x.to('cpu', non_blocking=True)",
    "x.to(x.dtype, copy=True)",
    "x.new_zeros(2, 3)",
    "x.new_ones((2, 3))",
    "k.new_full((2,), 7)",
    "k.new_ones(3)",
    "k.type_as(x)",
    "k.new_zeros(2)",
    "k.is_floating_point()",
    "k.element_size()",
    "z.dim()",
    "x.cpu()",
]


def inputs(make: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {"x": (3, 4), "v": 4, "z": (1, 3, 1)}
    tensors = {name: make(rng.uniform(0.1, 0.9, shape), True) for name, shape in shapes.items()}
    tensors |= {
        name: make(rng.uniform(0.1, 1.9, shape), False)
        for name, shape in {"y": (3, 4), "w": 4}.items()
    }
    tensors["k"] = make(np.asarray([0, 2, 1, 3]) % 3, False)
    return tensors | {
        "i": make(rng.integers(0, 3, (2, 3)), False),
        "m": make(rng.uniform(size=(3, 4)) > 0.5, False),
        "p": make(np.asarray([[0, 2, 1], [2, 0, 2]]), False),
    }


def run(call: str, library: Any = xgrad) -> tuple[list[np.ndarray], list[Any]]:
    """Return the results of a call, and the gradients of x, v and z."""
    tensors = inputs(
        lambda values, requires_grad: library.tensor(values, requires_grad=requires_grad)
    )
    result = eval(call, {}, tensors)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for out in results:
        if getattr(out, "requires_grad", False):
            (out * out).sum().backward(retain_graph=True)
    gradients = [tensors[name].grad for name in "xvz"]
    return [np.asarray(r.detach() if hasattr(r, "detach") else r) for r in results], gradients


@pytest.mark.parametrize("call", CALLS)
def test_method_of_a_pytorch_name_has_the_result_of_pytorch(call: str, torch: Any) -> None:
    (got, gradients), (wanted, expected) = run(call), run(call, torch)
    for a, b in zip(got, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-6)
    for name, a, b in zip("xvz", gradients, expected, strict=True):
        a, b = (np.zeros(()) if g is None else np.asarray(g) for g in (a, b))
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12, err_msg=f"gradient of {name}")


def test_every_alias_is_in_the_table_and_runs() -> None:
    called = {name for call in CALLS for name in re.findall(r"\.(\w+)\(", call)}
    public = {name for name in METHODS if not name.startswith("_")}
    assert public - called == {"cuda", "bernoulli"}
    for call in CALLS:
        run(call)


@pytest.mark.parametrize(
    "name", [name for name in METHODS if name.endswith("_") and not name.startswith("_")]
)
def test_methods_in_place_change_and_return_the_tensor(name: str) -> None:
    arguments: Any = {
        "addcdiv_": (xgrad.ones(2), xgrad.ones(2)),
        "addcmul_": (xgrad.ones(2), xgrad.ones(2)),
        "clamp_max_": (1,),
        "clamp_min_": (5,),
        "index_add_": (0, xgrad.asarray([1]), xgrad.ones(1)),
        "index_copy_": (0, xgrad.asarray([1]), xgrad.ones(1)),
        "index_fill_": (0, xgrad.asarray([1]), 2),
        "lerp_": (xgrad.ones(2), 0.5),
        "masked_fill_": (xgrad.asarray([True, False]), 2.0),
        "scatter_": (0, xgrad.asarray([1]), 2),
        "scatter_add_": (0, xgrad.asarray([1]), xgrad.ones(1)),
        "clamp_": (0, 1),
        "clip_": (0, 1),
    }
    others = () if name in [*CHANGES.split(), "nan_to_num_"] else arguments.get(name, (2,))
    if name == "addmm_":
        assert xgrad.ones((2, 2)).addmm_(xgrad.ones((2, 1)), xgrad.ones((1, 2))).tolist()[0][0] == 2
        return
    x = xgrad.asarray([4.0, 9.0])
    assert getattr(x, name)(*others) is x
    assert x.tolist() != [4.0, 9.0] or name in ("abs_", "nan_to_num_")
    with pytest.raises(RuntimeError, match="leaf that requires a gradient"):
        getattr(xgrad.ones(2, requires_grad=True), name)(*others)


def test_methods_in_place_change_parameters_under_no_grad() -> None:
    p = xgrad.nn.Parameter([1.0, 2.0])
    with xgrad.no_grad():
        p.mul_(2).add_(1).clamp_(max=4)
    assert p.tolist() == [3, 4] and p.is_leaf and p.requires_grad
    with pytest.raises(
        TypeError, match="in place: expected a result of a dtype that int64 can hold, got float32"
    ):
        xgrad.asarray([1, 2]).div_(2)


def test_aliases_refuse_wrong_shapes_and_axes() -> None:
    x = xgrad.ones((2, 3, 4))
    with pytest.raises(
        ValueError, match=r"dot: expected vectors, got shapes \(2, 3, 4\) and \(4,\): use @"
    ):
        x.dot(xgrad.ones(4))
    with pytest.raises(ValueError, match="T: expected a matrix"):
        x.t()
    with pytest.raises(ValueError, match="broadcast_to"):
        x.expand(3, 4)
