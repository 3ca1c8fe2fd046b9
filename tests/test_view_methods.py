"""Writes to a function's result reach its input, or not, as in PyTorch, in all memory layouts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgrad

#: Expressions of a tensor `x` that mean the same in both libraries.
METHODS = """x.view(-1) | x.view(x.shape) | x.view(1, *x.shape) | x.view_as(x) | x.reshape(-1)
    x.reshape(x.shape) | x.reshape_as(x) | x.ravel() | x.flatten() | x.flatten(-1) | x.t() | x.T
    x.mT | x.transpose(0, -1) | x.swapaxes(0, 1) | x.permute(*range(x.ndim)[::-1])
    x.permute(*range(x.ndim)) | x.movedim(0, -1) | x.moveaxis(-1, 0) | x.unsqueeze(0)
    x.unsqueeze(-1) | x.squeeze() | x.squeeze(0) | x.squeeze(-1) | x.expand(x.shape)
    x.expand(2, *x.shape) | x.expand_as(x) | x.unbind()[0] | x.unbind(-1)[-1] | x.flip(0)
    x.flip(-1) | x.roll(1) | x.roll(1, 0) | x.roll(0, 0) | x.tile(1) | x.tile(2) | x.contiguous()
    x.t().contiguous() | x.contiguous().view(-1) | x.t().view(-1) | x.transpose(0, -1).reshape(-1)
    x.transpose(0, -1).view(x.shape[::-1]) | x[1:].view(-1) | x[..., 1:].view(-1)
    x[..., ::2].contiguous() | x[..., :1].contiguous() | x[:1].contiguous() | x.T.T.contiguous()
    x.T.T.view(-1) | x.unsqueeze(-1).transpose(-1, 0).contiguous() | x.flatten().view(x.shape)
    x.clone() | x.cpu() | x.to('cpu') | x.double() | x.float() | x.long() | x.to(x.dtype)
    x.type_as(x) | x.data | x.detach() | x[0] | x[...] | x[:] | x[None] | x[..., 0] | x[..., ::2]
    x[1:] | x[0, :] | x[[0]] | x[x > 0] | x[x.argsort(0)] | x.abs() | x.neg() | x.conj()
    x.clip(0, 99) | x.masked_fill(x > 99, 1.0) | x.where(x > 0, x) | x.gather(0, x.argsort(0))
    x.tril(9) | x.triu(-9) | x.diff(n=0) | x.repeat_interleave(1) | x.repeat_interleave(1, 0)
    x.sum(0) | x.amax(0) | x.amax(()) | x.cumsum(0) | x.softmax(0) | x.round() | x.trunc()
    x.relu() | x.mul(1) | x.pow(1) | x.requires_grad_(x.requires_grad) | +x | x.zero_()
    x.add_(1).view(-1) | x.squeeze().contiguous().view(-1)"""

#: Functions of xgrad, and their counterparts of PyTorch.
FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "reshape": (lambda xp, x: xp.reshape(x, (-1,)), lambda torch, x: torch.reshape(x, (-1,))),
    "squeeze": (
        lambda xp, x: xp.squeeze(x, 0),
        lambda torch, x: torch.squeeze(x, 0) if x.shape[0] == 1 else x[99],
    ),
    "expand_dims": (
        lambda xp, x: xp.expand_dims(x, axis=1),
        lambda torch, x: torch.unsqueeze(x, 1),
    ),
    "permute_dims": (
        lambda xp, x: xp.permute_dims(x, (1, 0)),
        lambda torch, x: torch.permute(x, (1, 0)),
    ),
    "matrix_transpose": (lambda xp, x: xp.matrix_transpose(x), lambda torch, x: x.mT),
    "moveaxis": (lambda xp, x: xp.moveaxis(x, 0, -1), lambda torch, x: torch.moveaxis(x, 0, -1)),
    "broadcast_to": (
        lambda xp, x: xp.broadcast_to(x, (2, *x.shape)),
        lambda torch, x: x.broadcast_to(2, *x.shape),
    ),
    "broadcast_arrays": (
        lambda xp, x: xp.broadcast_arrays(x, x)[0],
        lambda torch, x: torch.broadcast_tensors(x, x)[0],
    ),
    "unstack": (lambda xp, x: xp.unstack(x)[0], lambda torch, x: torch.unbind(x)[0]),
    "iteration": (lambda xp, x: list(x)[-1], lambda torch, x: list(x)[-1]),
    "flip": (lambda xp, x: xp.flip(x, axis=0), lambda torch, x: torch.flip(x, (0,))),
    "flip of all axes": (
        lambda xp, x: xp.flip(x),
        lambda torch, x: torch.flip(x, tuple(range(x.ndim))),
    ),
    "roll": (lambda xp, x: xp.roll(x, 0), lambda torch, x: torch.roll(x, 0)),
    "diagonal": (lambda xp, x: xp.diagonal(x), lambda torch, x: torch.diagonal(x)),
    "diagonal above": (lambda xp, x: xp.diagonal(x, 1), lambda torch, x: torch.diagonal(x, 1)),
    "diagonal of axes": (
        lambda xp, x: xp.diagonal(x, 0, 1, 0),
        lambda torch, x: torch.diagonal(x, 0, 1, 0),
    ),
    "linalg.diagonal": (
        lambda xp, x: xp.linalg.diagonal(x),
        lambda torch, x: torch.linalg.diagonal(x),
    ),
    "diag": (lambda xp, x: xp.diag(x), lambda torch, x: torch.diag(x)),
    "tril": (lambda xp, x: xp.tril(x, k=9), lambda torch, x: torch.tril(x, 9)),
    "concat": (lambda xp, x: xp.concat([x]), lambda torch, x: torch.cat([x])),
    "stack": (lambda xp, x: xp.stack([x]), lambda torch, x: torch.stack([x])),
    "tile": (lambda xp, x: xp.tile(x, (1,)), lambda torch, x: torch.tile(x, (1,))),
    "asarray": (lambda xp, x: xp.asarray(x), lambda torch, x: torch.asarray(x)),
    "astype": (lambda xp, x: xp.astype(x, x.dtype), lambda torch, x: x.to(x.dtype, copy=True)),
    "positive": (lambda xp, x: xp.positive(x), lambda torch, x: torch.positive(x)),
    "take": (
        lambda xp, x: xp.take(x, xp.arange(1), axis=0),
        lambda torch, x: x.index_select(0, torch.arange(1)),
    ),
    "where": (lambda xp, x: xp.where(x > 0, x, x), lambda torch, x: torch.where(x > 0, x, x)),
    "sort": (lambda xp, x: xp.sort(x), lambda torch, x: torch.sort(x).values),
    "max of no axes": (lambda xp, x: xp.max(x, axis=()), lambda torch, x: torch.amax(x, ())),
    "meshgrid": (
        lambda xp, x: xp.meshgrid(x[0], x[0])[0],
        lambda torch, x: torch.meshgrid(x[0], x[0])[0],
    ),
    "real": (lambda xp, x: xp.real(x), lambda torch, x: torch.real(x)),
    "imag": (lambda xp, x: xp.imag(x), lambda torch, x: torch.imag(x) if x.is_complex() else x[99]),
    "conj": (lambda xp, x: xp.conj(x), lambda torch, x: torch.conj(x)),
}
EXPRESSIONS = [part.strip() for line in METHODS.split("\n") for part in line.split("|")]

#: The tensors to which the functions are applied, made from a tensor `x` of shape (3, 4) and a
#: tensor `v` of shape (1, 4).
SOURCES = """x | x.T | x[:, ::2] | x[1:] | x[:, 1:] | x.unsqueeze(1)
    x.unsqueeze(0).permute(2, 0, 1) | x[0] | x[:, 0] | v | v.T | v.expand(3, 4) | v.T.expand(4, 3)
    v[0] | x[:0] | x[:, :0] | x.sum() | x[0, 0, None] | x * 1 | x.T * 1"""

#: A result of an op, which PyTorch stores in the order of `x.T`; here all results are contiguous,
#: as docs/pytorch.md says.
RESULT = "x.T * 1"
#: Expressions and functions that differ from PyTorch without an error, with the row in the table of
#: views and copies in docs/pytorch.md.
DIFFERENCES = {
    **dict.fromkeys(["x.flip(0)", "x.flip(-1)", "flip", "flip of all axes"], "x.flip(0)"),
    **dict.fromkeys(["x.conj()", "conj"], "x.conj()"),
    **dict.fromkeys(["+x", "positive"], "+x"),
    "x.detach()": "x.detach()",
    "meshgrid": "torch.meshgrid(x, x)[0]",
}


def outcome(
    library: Any, source: str, function: Callable[[Any], Any], requires_grad: bool, kind: str
) -> str:
    """Return whether a write to a function's result "reaches" its input, "is lost" or "raises"."""
    values = np.arange(1, 13.0).reshape(3, 4)
    x, v = (
        library.tensor(a + 1j * a if kind == "c" else a, requires_grad=requires_grad)
        for a in (values, values[:1])
    )
    if requires_grad:
        x, v = x * 1, v * 1  # a write to a leaf is refused
    tensor = eval(source, {}, {"x": x, "v": v})
    before = np.array(tensor.detach().tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(tensor)
            if 0 in tensor.shape or 0 in result.shape:
                return "is empty"
            result[...] = 0
        except (
            AttributeError,
            IndexError,
            NotImplementedError,
            RuntimeError,
            TypeError,
            ValueError,
        ):
            return "raises"
    return "is lost" if np.array_equal(before, np.array(tensor.detach().tolist())) else "reaches"


def compare(
    torch: Any, name: str, ours: Callable[[Any], Any], theirs: Callable[[Any], Any]
) -> list[str]:
    """Return the sources for which a write has another effect than in PyTorch.

    Cases with an error in either library are left out.
    """
    different = []
    for source in [part.strip() for line in SOURCES.split("\n") for part in line.split("|")]:
        if source == RESULT and ("contiguous" in name or "ravel" in name):
            continue
        for requires_grad in (False, True):
            for kind in ("f", "c") if name in ("real", "imag", "conj", "x.conj()") else ("f",):
                a = outcome(xgrad, source, ours, requires_grad, kind)
                b = outcome(torch, source, theirs, requires_grad, kind)
                if a != b and "raises" not in (a, b):
                    different.append(f"{name} of {source}, {requires_grad=} {kind}: {a} for {b}")
    return different


@pytest.mark.parametrize("name", [*EXPRESSIONS, *FUNCTIONS])
def test_write_to_the_result_reaches_the_input_as_in_pytorch(name: str, torch: Any) -> None:
    ours, theirs = FUNCTIONS.get(name) or [lambda _, x: eval(name, {}, {"x": x})] * 2
    different = compare(torch, name, lambda x: ours(xgrad, x), lambda x: theirs(torch, x))
    assert bool(different) == (name in DIFFERENCES), different


def test_documented_differences_of_writes_are_those_that_exist() -> None:
    page = (Path(__file__).parents[1] / "docs" / "pytorch.md").read_text(encoding="utf-8")
    assert all(f"| `{expression}` |" in page for expression in DIFFERENCES.values())
    assert "of `y = x.T * 2`, `y.contiguous()` is `y` itself" in page
    assert DIFFERENCES.keys() <= {*EXPRESSIONS, *FUNCTIONS}


@pytest.mark.parametrize(
    "call", ["x.T.view(-1)", "x[:, :2].view(-1)", "x.t().view(12)", "x.expand(2, 3, 4).view(-1)"]
)
def test_view_that_needs_a_copy_is_refused(call: str, torch: Any) -> None:
    x, y = xgrad.ones((3, 4)), torch.ones((3, 4))
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        eval(call, {}, {"x": y})
    with pytest.raises(
        ValueError, match=r"view: expected a shape .* use \.reshape\(\.\.\.\), which copies"
    ):
        eval(call, {}, {"x": x})


def test_view_and_contiguous_ignore_the_order_of_parameters_in_the_buffer_of_an_optimizer() -> None:
    layer = xgrad.nn.Linear(4, 3)
    optimizer = xgrad.optim.SGD(layer.parameters(), lr=0.1)
    layer(xgrad.ones((2, 4))).sum().backward()
    optimizer.step()
    p = layer.weight
    assert p.contiguous() is p
    with xgrad.no_grad():
        for x in (p, p.data, p.grad, p.detach()):
            x.view(-1)[0] = 7.0
            x[1:].view(-1)[1] = 8.0
            x.view(2, 6)[1][5] += 1
            assert (x[0, 0].item(), x[1, 1].item()) == (7, 8)
    with pytest.raises(ValueError, match="view: expected a shape"):
        p.T.view(-1)


def test_write_to_a_diagonal_is_differentiable_and_reaches_the_matrix(device: str) -> None:
    def f(x: Any, y: Any) -> Any:
        z = x * x
        diagonal = xgrad.diagonal(z, 1)
        diagonal *= y
        xgrad.diagonal(z)[1:] = y * y
        xgrad.linalg.diagonal(z, offset=-1)[:1] += y
        return z * z

    x = xgrad.asarray(
        [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]], dtype=xgrad.float64, device=device, requires_grad=True
    )
    y = xgrad.asarray(1.5, dtype=xgrad.float64, device=device, requires_grad=True)
    expected = np.asarray([[1.0, 6.0, 9.0], [10.5, 2.25, 37.5]])
    np.testing.assert_allclose(f(x, y).detach().cpu().numpy(), expected**2)
    xgrad.testing.gradcheck(f, [x, y])
    xgrad.testing.gradgradcheck(f, [x, y])


def test_jitter_on_a_diagonal_is_kept_in_a_captured_step_and_in_vmap() -> None:
    def step(k: Any) -> Any:
        diagonal = xgrad.diagonal(k)
        diagonal += 1
        return k

    expected = [[2.0, 1.0], [1.0, 2.0]]
    captured = xgrad.capture(step)
    for _ in range(3):
        k = xgrad.ones((2, 2))
        captured(k)
        assert k.tolist() == expected
    assert xgrad.vmap(lambda k: step(k * 1))(xgrad.ones((3, 2, 2))).tolist() == [expected] * 3


def test_diag_of_a_matrix_is_a_value() -> None:
    x = xgrad.ones((2, 2))
    xgrad.diag(x)[...] = 5.0
    assert x.tolist() == [[1, 1], [1, 1]]
