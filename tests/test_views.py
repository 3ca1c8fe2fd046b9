"""Views and writes through them: memory compared with NumPy, values and gradients with PyTorch."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad

PROGRAMS = int(os.environ.get("VIEWS_PROGRAMS", 300))
SHARES = range(20)  # of the programs, each a test of its own


def random_shape(r: random.Random) -> tuple[int, ...]:
    return tuple(r.randint(1, 4) for _ in range(r.randint(1, 3)))


def random_key(r: random.Random, shape: tuple[int, ...]) -> Any:
    """Return a key of slices, integers, None and ... that leaves at least one axis."""
    key: list[Any] = []
    for n in shape[: r.randint(1, len(shape))]:
        start = r.randrange(n)
        part, steps = slice(start, r.randint(start + 1, n)), slice(None, None, r.choice([1, 2]))
        key.append(r.choices([r.randrange(n), part, steps, slice(None)], [7, 7, 3, 3])[0])
    if len(key) == len(shape) and all(isinstance(part, int) for part in key):
        key[-1] = slice(None)
    key += [...] * (r.random() < 0.2)
    key[:0] = [None] * (r.random() < 0.15)
    return tuple(key) if len(key) > 1 or r.random() < 0.5 else key[0]


def random_view(r: random.Random, x: Any, y: Any, torch: Any = None) -> tuple[Any, Any, str]:
    """Return the same view of a tensor and of an array of NumPy or PyTorch, and its name."""
    shape, ndim = x.shape, x.ndim
    axis, other, new = r.randrange(ndim), r.randrange(ndim), r.randint(0, ndim)
    i, j = r.randrange(shape[0]), r.randrange(shape[-1])
    length = r.choice([n for n in range(1, x.size + 1) if x.size % n == 0])
    to: Any = r.choice([(-1,), (length, x.size // length), (length, -1, 1)])
    key, axes = random_key(r, shape), tuple(r.sample(range(ndim), ndim))
    views: dict[str, Callable[[], Any]] = {
        f"[{key}]": lambda: (x[key], y[key]),
        f"reshape {to}": lambda: (xgrad.reshape(x, to), y.reshape(to)),
        f"permute {axes}": lambda: (
            xgrad.permute_dims(x, axes),
            y.permute(axes) if torch else y.transpose(axes),
        ),
        f"expand {new}": lambda: (
            xgrad.expand_dims(x, axis=new),
            y[(slice(None),) * new + (None,)],
        ),
        f"move {axis} {other}": lambda: (
            xgrad.moveaxis(x, axis, other),
            (torch or np).moveaxis(y, axis, other),
        ),
    }
    if ndim > 1:
        views["mT"] = lambda: (x.mT, y.mT)
        if shape[axis] == 1:
            views[f"squeeze {axis}"] = lambda: (xgrad.squeeze(x, axis), y.squeeze(axis))
    if torch is None:
        views[f"flip {axis}"] = lambda: (xgrad.flip(x, axis=axis), np.flip(y, axis=axis))
        if ndim > 1:
            views[f"iterate {i}"] = lambda: (list(x)[i], list(y)[i])
            views[f"unstack {j}"] = lambda: (xgrad.unstack(x, axis=-1)[j], y[..., j])
    name = r.choices(list(views), [4] + [1] * (len(views) - 1))[0]
    return *views[name](), name


def run_program(
    r: random.Random, family: list[Any], value: Callable[[Any], Any], torch: Any = None
) -> tuple[Any, Any]:
    """Run a random program on pairs of a tensor and an array; compare all pairs after each step.

    A step takes a view of a pair, or writes to both alike. Return a loss of the tensors and of the
    arrays, which weighs their values at several times.
    """
    loss = expected = 0
    log = [str(family)]
    for _ in range(r.randint(3, 17)):
        (u, t), c = r.choice(family), r.random()
        if c < 0.4:
            u, t, name = random_view(r, u, t, torch)
            family += [(u, t)] * (0 < u.ndim < 6)
        elif c < 0.5 and u.dtype.kind == "c":
            name = r.choice(["real", "imag"])
            family.append((getattr(xgrad, name)(u), getattr(t, name)))
        elif c > 0.9:
            name = "used"
            # PyTorch refuses writes to the tensor that its graph has saved
            copy = t.clone() if torch else t
            loss, expected = loss + (u * u * 2).sum(), expected + (copy * copy * 2).sum()
        elif torch and t.requires_grad and t.is_leaf:
            continue  # an error in PyTorch
        elif c < 0.7:
            key = random_key(r, u.shape)
            u[key], t[key] = value(tuple(t[key].shape))
            name = f"[{key}] ="
        elif c < 0.8:
            mask = np.random.default_rng(r.randrange(1000)).random(u.shape) < 0.5
            u[xgrad.asarray(mask)] = t[torch.tensor(mask) if torch else mask] = 3
            name = "[mask] ="
        else:
            (v, w), name = value(u.shape), r.choice(["__iadd__", "__imul__"])
            getattr(u, name)(v), getattr(t, name)(w)
        log.append(name)
        for u, t in family:
            np.testing.assert_allclose(
                u.detach().numpy(), t.detach() if torch else t, rtol=1e-12, err_msg=str(log)
            )
        if len(family) > 1 and r.random() < 0.3:
            family.pop(r.randrange(len(family)))
    for i, (u, t) in enumerate(family):
        loss, expected = loss + (u * u * (i + 1)).sum(), expected + (t * t * (i + 1)).sum()
    return loss, expected


@pytest.mark.parametrize("share", SHARES)
def test_random_programs_have_the_values_and_gradients_of_pytorch(share: int, torch: Any) -> None:
    for seed in range(share, PROGRAMS, len(SHARES)):
        r, normal = random.Random(seed), np.random.default_rng(seed).normal
        a, b = normal(size=random_shape(r)), normal(size=(4, 4, 4))
        x, w = (xgrad.asarray(v, requires_grad=True) for v in (a, b))
        tx, tw = (torch.tensor(v, requires_grad=True) for v in (a, b))

        def value(shape: Any, r: Any = r, w: Any = w, tw: Any = tw, normal: Any = normal) -> Any:
            c = r.random()
            if c < 0.3:
                return c, c
            if c < 0.7 and len(shape) <= 3 and all(n <= 4 for n in shape):
                key = (0,) * (3 - len(shape)) + tuple(slice(0, n) for n in shape)
                return w[key] * 2, tw[key] * 2
            array = normal(size=shape)
            return xgrad.asarray(array), torch.tensor(array)

        # The base has a history, or none until a tensor with one is written to it.
        family = (
            [(x * 2, tx * 2)]
            if r.random() < 0.7
            else [(xgrad.asarray(a.copy()), torch.tensor(a.copy()))]
        )
        family += [((w * 3)[0, ...], (tw * 3)[0])] * (r.random() < 0.3)
        losses = run_program(r, family, value, torch)
        for loss, leaves in zip(losses, ((x, w), (tx, tw)), strict=True):
            (loss + sum((0 * leaf).sum() for leaf in leaves)).backward()
        for p, q in ((x, tx), (w, tw)):
            np.testing.assert_allclose(
                p.grad.numpy(), q.grad.numpy(), rtol=1e-9, atol=1e-10, err_msg=str(seed)
            )


@pytest.mark.parametrize("share", SHARES)
def test_random_programs_have_the_memory_of_numpy(share: int) -> None:
    for seed in range(share, PROGRAMS, len(SHARES)):
        r = random.Random(seed)
        dtype = r.choice(["float64", "int64", "complex128", "leaf"])
        a = 5 * np.random.default_rng(seed).normal(size=random_shape(r))
        a = a.astype("float64" if dtype == "leaf" else dtype)
        with xgrad.no_grad():
            family = [(xgrad.asarray(a.copy(), requires_grad=dtype == "leaf"), a)]
            run_program(r, family, lambda shape, r=r: (r.randint(1, 2),) * 2)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[1:, ...],
    "row": lambda x: x[1, ...],
    "T": lambda x: x.T,
    "reshape": lambda x: x.reshape(-1),
    "flip": lambda x: xgrad.flip(x, axis=0),
    "expand_dims": lambda x: xgrad.expand_dims(x, axis=1),
    "squeeze": lambda x: xgrad.squeeze(x[:1, ...], 0),
    "moveaxis": lambda x: xgrad.moveaxis(x, 0, 1),
    "unstack": lambda x: xgrad.unstack(x, axis=1)[1],
    "iteration": lambda x: list(x)[1],
    "view of a view": lambda x: x[1, ...][None, ...].mT,
    "data": lambda x: x.data,
    "data of a view": lambda x: x[1, ...].data,
}


@pytest.mark.parametrize("name", VIEWS)
def test_write_through_a_view_reaches_its_base_and_other_views(name: str, device: str) -> None:
    if name == "flip" and device == "torch":
        pytest.skip("PyTorch's flip returns a copy")
    x = xgrad.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)
    other, before = x[:, 1], x.detach()
    view = VIEWS[name](x)
    view[...] = 7
    view += 1
    assert view.tolist() == xgrad.full_like(view, 8).tolist() == VIEWS[name](x).tolist()
    assert other.tolist() == x[:, 1].tolist() and before.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("name", [name for name in VIEWS if "data" not in name])
def test_write_through_a_view_is_differentiable_twice(name: str, device: str) -> None:
    if name == "flip" and device == "torch":
        pytest.skip("PyTorch's flip returns a copy")

    def f(x: Any, y: Any) -> Any:
        z = x * x
        view = VIEWS[name](z)
        view *= y
        view[..., :1] = y * y
        return z * z

    x = xgrad.asarray(
        [[1.0, 2.0], [3.0, 4.0]], dtype=xgrad.float64, device=device, requires_grad=True
    )
    y = xgrad.asarray(1.5, dtype=xgrad.float64, device=device, requires_grad=True)
    xgrad.testing.gradcheck(f, [x, y])
    xgrad.testing.gradgradcheck(f, [x, y])


def test_element_taken_by_integers_is_a_value() -> None:
    x = xgrad.asarray([1.0, 2.0, 3.0])
    element, x[0] = x[0], x[2]
    x[2] = element
    assert x.tolist() == [3, 2, 1] and element.item() == 1
    x[1] += 5
    assert x.tolist() == [3, 7, 1]
    with pytest.raises(
        TypeError, match=r"in place: x is an element .* assign to the tensor that it was taken from"
    ):
        x[1][...] = 4.0
    rows = x[[0, 1]], x[x > 2]
    x[...] = 0
    assert [row.tolist() for row in rows] == [[3, 7], [3, 7]]  # taken by arrays: values


def test_write_to_broadcast_tensor_is_refused_where_elements_overlap() -> None:
    x = xgrad.zeros(2)
    wide, same = xgrad.broadcast_to(x, (3, 2)), xgrad.broadcast_to(x, (1, 2))
    x[0] = 1.0
    assert wide.tolist() == [[1, 0]] * 3
    with pytest.raises(
        ValueError, match=r"x was made by broadcast_to.*write to a copy of it.*test_views.py"
    ):
        wide[0, :] = 5.0
    assert wide.tolist() == [[1, 0]] * 3 and x.tolist() == [1, 0]
    same[0, :] = 7.0
    assert x.tolist() == [7, 7]
    full, (grid, _) = xgrad.full((2, 2), xgrad.asarray(1.0)), xgrad.meshgrid(x, x)
    full[0, 0] = grid[0, 0] = 3.0
    assert full.tolist() == [[3, 1], [1, 1]] and x.tolist() == [7, 7]


def test_write_through_view_of_a_leaf_needs_no_grad() -> None:
    p = xgrad.ones((2, 3), requires_grad=True)
    view = p.T
    with pytest.raises(RuntimeError, match="a leaf that requires a gradient, or a view of one"):
        p[0, :][1] = 5.0
    with pytest.raises(RuntimeError, match="a leaf that requires a gradient, or a view of one"):
        view += 1
    with xgrad.no_grad():
        p[0, :][1] = 5.0
        p.T[0, :] = 3.0
    p.data[1, :] = 9.0
    assert (
        p.tolist() == [[3, 5, 1], [9, 9, 9]]
        and p.is_leaf
        and view.tolist() == [[3, 9], [5, 9], [1, 9]]
    )
    loss = (p * p).sum()
    with xgrad.no_grad():
        p[1, :][0] = 0.0
    with pytest.raises(RuntimeError, match="was changed"):
        loss.backward()


def test_view_taken_under_no_grad_keeps_the_history_of_its_base() -> None:
    x = xgrad.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    with xgrad.no_grad():
        view = y[1:][:1]
    view[...] = 9.0
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 2]


def array_of(x: Any) -> int:
    return id(x._data)


def test_assignment_is_in_place_where_nothing_else_sees_the_memory() -> None:
    x = xgrad.zeros(100)
    row, before = x[10:20], array_of(x)
    x[3] = 1.0
    row[0] = 2.0
    row += 1
    x[50:60] = x[30]
    assert array_of(x) == before and x[10].item() == 3
    seen = x.numpy()
    x[3] = 2.0
    assert seen[3] == 1 and array_of(x) != before
    w = xgrad.ones(100, requires_grad=True)
    y = x * w
    row[...] = 7.0  # the graph has kept x
    y.sum().backward()
    assert w.grad[10].item() == 3 and x[10].item() == 7
    user = np.zeros(3)
    x = xgrad.asarray(user)
    del seen
    x[0] = 1.0
    assert user[0] == 0


@pytest.mark.parametrize("take", [lambda x: x[:-1], lambda x: x[1:][::-1], lambda x: x[::-1][1:]])
def test_assignment_of_overlapping_memory_has_the_values_of_numpy(
    take: Callable[[Any], Any],
) -> None:
    x, y = xgrad.arange(6.0), np.arange(6.0)
    for array in (x, y):
        array[1:] = take(array)
        value = take(array)
        array[:-1] = value
    assert x.tolist() == y.tolist()


def test_assignment_at_indices_in_the_same_memory_has_the_values_of_numpy() -> None:
    x, y = xgrad.asarray([3, 2, 1, 0]), np.asarray([3, 2, 1, 0])
    x[x] = xgrad.arange(4)
    y[y.copy()] = np.arange(4)
    assert x.tolist() == y.tolist()


def test_refused_assignment_changes_nothing() -> None:
    x = xgrad.zeros((2, 2))
    for key, value in (
        (0, [1, 2, 3]),
        ((slice(None), 5), 1.0),
        (slice(None), 1j),
        ((0, 0, 0), 1.0),
    ):
        with pytest.raises((ValueError, IndexError, TypeError), match="setitem"):
            x[key] = xgrad.asarray(value) if isinstance(value, list) else value
    assert x.tolist() == [[0, 0], [0, 0]]


def test_base_forgets_views_that_are_gone() -> None:
    x = xgrad.zeros(10)
    for i in range(1000):
        x[i % 10 :]
    alive = [x[i:] for i in range(10)]
    assert len(alive) <= len(x._views) < 20 and all(
        reference() is not None for reference in x._views[-5:]
    )


def test_retained_gradient_of_a_written_tensor_is_that_of_its_last_value(torch: Any) -> None:
    def gradients(xp: Any) -> Any:
        x = xp.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.retain_grad()
        y[:1] = 5.0
        (y * y).sum().backward()
        return x.grad.tolist(), y.grad.tolist()

    assert gradients(xgrad) == gradients(torch)


def test_views_after_an_unlinked_view_are_written_through() -> None:
    x = xgrad.asarray(1.0)
    full = xgrad.full((2, 3), x)
    view = x[...]
    view[...] = 5.0
    assert x.item() == 5 and full.tolist() == [[1, 1, 1], [1, 1, 1]]
