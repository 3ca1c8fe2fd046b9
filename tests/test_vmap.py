"""`vmap` and `jacfwd`: compared with loops, PyTorch and `jacobian`; nesting, graphs around it, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf64, on, uniform
from xgrad import Tensor, capture, grad, hessian, jacfwd, jacobian, jvp, nn, optim, vjp, vmap
from xgrad.backend.device import Device
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import options
from xgrad.support.trees import leaves, rebuild
from xgrad.transforms import batching_rules

#: Ops with shapes, or a choice of algorithm, that depend on values; and writes through views.
REFUSED = {
    "allclose", "expm", "nonzero", "put", "put of a part", "repeat by an array", "sqrtm", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unique_values of repeated ones",
}  # fmt: skip
CASES = [case for case in OP_CASES if case.name != "to_device" and not case.missing()]


def assert_equal_leaves(got: Any, wanted: Any, rtol: float = 1e-9) -> None:
    pairs = list(zip([x for _, x in leaves(got)], [x for _, x in leaves(wanted)], strict=True))
    assert pairs
    for a, b in pairs:
        np.testing.assert_allclose(host(a), host(b), rtol=rtol, atol=1e-11)


def looped(fn: Callable[..., Any], axes: tuple[Any, ...], *args: Any) -> Any:
    """Return what vmap must: the stacked results of a loop."""
    count = next(x.shape[0] for x, axis in zip(args, axes, strict=True) if axis == 0)
    rows = [fn(*[x[i, ...] if axis == 0 else x for x, axis in zip(args, axes, strict=True)]) for i in range(count)]
    columns = zip(*[[x for _, x in leaves(row)] for row in rows], strict=True)
    return rebuild(rows[0], [xgrad.stack(list(column)) for column in columns])


# The op table


def with_gradients(case: OpCase, sample: Sample, device: Device) -> Callable[..., Any]:
    """Return a function of all inputs that returns the results of an op, and its gradients if it has some."""
    floating = [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    named = options(sample, device)

    def results(*inputs: Any) -> list[Any]:
        out = case.fn(*inputs, **named)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    def both(*inputs: Any) -> tuple[list[Any], Any]:
        def of_floating(*chosen: Any) -> list[Any]:
            given = list(inputs)
            for i, x in zip(floating, chosen, strict=True):
                given[i] = x
            return results(*given)

        outs, pullback = vjp(of_floating, *[inputs[i] for i in floating])
        return outs, pullback([xgrad.cos(out) if out.dtype.kind in "fc" else None for out in outs])

    return both if floating and case.differentiable else results


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_op_and_its_gradients_are_those_of_a_loop(case: OpCase) -> None:
    device, compared = Device("cpu"), False
    for sample in [sample for sample in case.samples if sample.layout == "plain"]:
        arrays = [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray)]
        fn = with_gradients(case, sample, device)
        for mapped in [set(arrays)] + [{i} for i in arrays if len(arrays) > 1]:
            inputs: list[Any] = list(sample.inputs)
            for i in arrays:
                x = inputs[i]
                parts = [x, 0.75 * x, 0.5 * x] if x.dtype.kind in "fc" else [x, x, x]
                inputs[i] = xgrad.asarray(np.stack(parts) if i in mapped else x)
            axes = tuple(0 if i in mapped else None for i in range(len(inputs)))
            try:
                wanted = looped(fn, axes, *inputs)
            except (ValueError, TypeError, RuntimeError, np.linalg.LinAlgError):
                continue  # of values outside of the domain
            if case.name in REFUSED:
                with pytest.raises((TypeError, ValueError), match="vmap: "):
                    vmap(fn, axes)(*inputs)
                return
            assert_equal_leaves(vmap(fn, axes)(*inputs), wanted)
            compared = True
    assert compared or not any(isinstance(x, np.ndarray) for sample in case.samples for x in sample.inputs)


def test_functions_without_a_rule_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {*xgrad.ops.STANDARD, *(f"linalg.{name}" for name in xgrad.linalg.__all__)} - batching_rules.RULES.keys()
    assert "isin" not in batching_rules.RULES and "exp" in batching_rules.RULES
    x = xgrad.asarray(np.arange(6).reshape(2, 3))
    got = vmap(lambda x: xgrad.isin(x, x[:1]))(x)  # in a loop
    assert got.tolist() == [[True, False, False], [True, False, False]]
    assert len(names) < 80


# Networks


def network(params: dict[str, Tensor], x: Tensor) -> Tensor:
    h = xgrad.tanh(x @ params["w"] + params["b"])
    h = xgrad.concat([h, xgrad.where(h > 0, h, 0.1 * h)])
    return xgrad.stack([h[:3], h[1:4], xgrad.flip(h)[2:5]]) @ params["v"]


def sample_loss(params: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    logits = xgrad.reshape(network(params, x), (1, -1))
    return nn.functional.cross_entropy(logits, y[None]) + (nn.functional.softmax(logits) ** 2).mean()


def problem(device: str) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    params = {"w": uniform(3, 4) - 1, "b": uniform(4, seed=1), "v": uniform(3, 2, seed=2) - 1}
    return {k: on(device, v) for k, v in params.items()}, on(device, uniform(5, 3, seed=3)), on(device, [0, 3, 5, 2, 0])


def test_gradients_of_samples(device: str) -> None:
    params, x, y = problem(device)
    got = vmap(grad(sample_loss), in_axes=(None, 0, 0))(params, x, y)
    assert_equal_leaves(got, looped(grad(sample_loss), (None, 0, 0), params, x, y))
    assert got["w"].device is x.device and got["w"].shape == (5, 3, 4)


def test_graph_around_passes_through(device: str) -> None:
    """The gradient of the norms of the gradients of samples, as of a penalty."""
    params, x, y = problem(device)

    def penalty(params: dict[str, Tensor], of_samples: Any) -> Tensor:
        return sum((g**2).sum() for g in of_samples(params).values())  # type: ignore[return-value]

    def by_vmap(p: Any) -> Any:
        return vmap(grad(sample_loss), in_axes=(None, 0, 0))(p, x, y)

    def by_loop(p: Any) -> Any:
        return looped(grad(sample_loss), (None, 0, 0), p, x, y)

    assert_equal_leaves(grad(penalty)(params, by_vmap), grad(penalty)(params, by_loop))
    leaf = leaf64(uniform(3), device)
    vmap(lambda x: grad(lambda x: (leaf * x**2).sum())(x))(on(device, uniform(2, 3))).sum().backward()
    np.testing.assert_allclose(host(leaf.grad), 2 * uniform(2, 3).sum(axis=0))
    with xgrad.no_grad():
        assert not vmap(grad(lambda x: (leaf * x**2).sum()))(on(device, uniform(2, 3))).requires_grad


def test_other_transforms_within(device: str) -> None:
    x, v = on(device, uniform(4, 3)), on(device, uniform(4, 3, seed=1))

    def f(x: Tensor) -> Tensor:
        return xgrad.exp(x) * x[0] + (x @ x)

    for fn in (jacobian(f), jacfwd(f), hessian(lambda x: f(x).sum()), lambda x: vjp(f, x)[1](f(x))):
        assert_equal_leaves(vmap(fn)(x), looped(fn, (0,), x))
    assert_equal_leaves(
        vmap(lambda x, v: jvp(f, (x,), (v,)))(x, v), looped(lambda *a: jvp(f, a[:1], a[1:]), (0, 0), x, v)
    )


def test_other_transforms_around(device: str) -> None:
    x, w = on(device, uniform(4, 3)), on(device, uniform(3, 2, seed=1))
    for transform in (jacobian, jacfwd):
        got = transform(vmap(lambda x: xgrad.sin(x @ w)))(x)
        assert_equal_leaves(got, transform(lambda x: xgrad.sin(x @ w))(x))
    got = jvp(lambda w: vmap(lambda x: xgrad.sin(x @ w))(x), (w,), (w,))
    assert_equal_leaves(got, jvp(lambda w: xgrad.sin(x @ w), (w,), (w,)))


def test_nested_calls(device: str) -> None:
    x, y = on(device, uniform(2, 3)), on(device, uniform(4, 3, seed=1))
    table = vmap(vmap(lambda a, b: (a * b).sum() + a @ xgrad.exp(b), (None, 0)), (0, None))(x, y)
    np.testing.assert_allclose(host(table), host(x) @ host(y).T + host(x) @ np.exp(host(y)).T)
    scaled = vmap(lambda a: vmap(lambda b: b * y.sum())(x) * a)(y[:, 0])  # the inner batch has no part of the outer one
    np.testing.assert_allclose(host(scaled), host(y)[:, 0, None, None] * host(x) * host(y).sum())
    thirds = vmap(vmap(grad(grad(grad(lambda x: x**4)))))(x)
    np.testing.assert_allclose(host(thirds), 24 * host(x))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of PyTorch's jacfwd
def test_same_as_pytorch(torch: Any) -> None:
    """Gradients of samples, and axes."""
    params, x, y = problem("cpu")

    def loss(params: Any, x: Any, y: Any) -> Any:
        h = torch.tanh(x @ params["w"] + params["b"])
        return torch.nn.functional.cross_entropy(h[None], y[None])

    def same(params: Any, x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(xgrad.tanh(x @ params["w"] + params["b"])[None], y[None])

    y = y % 4
    del params["v"]
    theirs = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 1, 0), out_dims=-1)(
        {k: torch.tensor(host(v)) for k, v in params.items()}, torch.tensor(host(x.T)), torch.tensor(host(y))
    )
    ours = vmap(grad(same), in_axes=(None, 1, 0), out_axes=-1)(params, x.T, y)
    for name, value in ours.items():
        np.testing.assert_allclose(host(value), theirs[name].numpy(), rtol=1e-9, atol=1e-12)
    forward = torch.func.jacfwd(lambda x: torch.sin(x).sum(1) * x[0, 0])(torch.tensor(host(x)))
    np.testing.assert_allclose(
        host(jacfwd(lambda x: xgrad.sin(x).sum(axis=1) * x[0, 0])(x)), forward.numpy(), rtol=1e-9
    )


def test_gradients_of_samples_of_a_module() -> None:
    xgrad.manual_seed(0)  # a sum that cancels would be out of tolerance
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    params = {name: p.detach() for name, p in net.named_parameters()}
    x, y = xgrad.random.randn((6, 3)), xgrad.random.randint(0, 2, (6,))

    def loss(params: Any, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(nn.utils.functional_call(net, params, x[None]), y[None])

    got = vmap(grad(loss), (None, 0, 0))(params, x, y)
    assert_equal_leaves(got, looped(grad(loss), (None, 0, 0), params, x, y), rtol=1e-5)
    whole = grad(lambda p: nn.functional.cross_entropy(nn.utils.functional_call(net, p, x), y))(params)
    assert_equal_leaves({name: g.mean(axis=0) for name, g in got.items()}, whole, rtol=1e-4)


def test_captured_step() -> None:
    """A step with clipped gradients of samples."""

    def losses(captured: bool) -> list[float]:
        xgrad.manual_seed(0)
        net, x, y = nn.MLP([3, 8, 4]), xgrad.random.randn((6, 3)), xgrad.random.randint(0, 4, (6,))
        optimizer = optim.SGD(net.parameters(), lr=0.1)
        scale = xgrad.asarray([1.0, 2.0, 3.0])

        def loss(params: Any, x: Tensor, y: Tensor) -> Tensor:
            return nn.functional.cross_entropy(nn.utils.functional_call(net, params, (x * scale)[None]), y[None])

        def step(x: Tensor, y: Tensor) -> Tensor:
            params = {name: xgrad.asarray(p.detach(), copy=True) for name, p in net.named_parameters()}
            optimizer.zero_grad()
            gradients = vmap(grad(loss), (None, 0, 0))(params, x, y)
            for name, p in net.named_parameters():
                g = gradients[name]
                norms = xgrad.sqrt((g * g).sum(axis=tuple(range(1, g.ndim)), keepdims=True))
                p.grad = (g / xgrad.maximum(norms, 1.0)).mean(axis=0)
            optimizer.step()
            return vmap(loss, (None, 0, 0))(params, x, y).sum()

        run = capture(step) if captured else step
        return [float(run(x, y)) for _ in range(4)]

    assert losses(captured=True) == losses(captured=False)


# Indexing and writes


def test_keys(device: str) -> None:
    x, rows, columns = on(device, uniform(3, 4, 5, 6)), on(device, [[0, 1], [2, 3], [1, 1]]), on(device, [1, 0])
    keys: list[Callable[[Any, Any], Any]] = [
        lambda i, j: 1,
        lambda i, j: (slice(1, 3), None, -1),
        lambda i, j: (..., 2),
        lambda i, j: i,
        lambda i, j: j,
        lambda i, j: (i, j),
        lambda i, j: (slice(None), i),
        lambda i, j: (slice(None), i, j),
        lambda i, j: (i, slice(2), j),
        lambda i, j: (..., i),
        lambda i, j: (..., i, 0),
        lambda i, j: (0, slice(None), i),
        lambda i, j: (i[:, None], j),
        lambda i, j: (None, slice(1), j, i),
    ]
    if device == "strict":
        keys = [lambda i, j: (slice(1, 3), -1, ...), lambda i, j: (..., 2)]
    elif device.startswith("torch"):  # where a number in a key is no index array
        del keys[11]
    for key in keys:
        for mapped in ((0, 0), (0, None), (None, 0)):
            array = x if mapped[0] == 0 else x[0, ...]
            index = rows if mapped[1] == 0 else rows[0, ...]

            def select(x: Tensor, i: Tensor, key: Any = key) -> Tensor:
                return x[key(i, columns)]

            def write(x: Tensor, i: Tensor, key: Any = key) -> Tensor:
                new = xgrad.asarray(x, copy=True)
                new[key(i, columns)] = x.sum()
                return xgrad.ops.index_add(new, key(i, columns), select(x, i) * 2)

            for fn in (select, write, lambda x, i: grad(lambda x: (select(x, i) ** 2).sum())(x)):
                assert_equal_leaves(vmap(fn, mapped)(array, index), looped(fn, mapped, array, index))


def test_rows_of_a_table(device: str) -> None:
    table, numbers = leaf64(uniform(5, 2), device), on(device, [3, 1, 3])
    if device != "strict":
        vmap(lambda i: table[i] ** 2)(numbers).sum().backward()
        np.testing.assert_allclose(host(table.grad)[[0, 3]], [[0, 0], 4 * uniform(5, 2)[3]])


# Axes and containers


def test_axes_and_containers(device: str) -> None:
    x, y = on(device, uniform(2, 3)), on(device, uniform(3, seed=1))

    def f(pair: dict[str, Tensor], z: Any) -> Any:
        return {"sum": pair["x"] + pair["y"], "same": z[0] * 2, "none": None}

    got = vmap(f, in_axes=({"x": 1, "y": 0}, None), out_axes={"sum": -1, "same": None, "none": 0})(
        {"x": x, "y": y}, [xgrad.asarray(3.0)]
    )
    np.testing.assert_allclose(host(got["sum"]), host(x) + host(y))
    assert got["same"].tolist() == 6.0 and got["none"] is None
    assert vmap(lambda x: xgrad.zeros(2), in_axes=1)(x).tolist() == [[0, 0]] * 3
    assert vmap(lambda x, axis: x.sum(axis=axis))(x, axis=0).shape == (2,)
    assert vmap(lambda x: x * 2)(np.ones(3)).dtype == xgrad.float64
    assert vmap(lambda x: x * 2)(xgrad.zeros((0, 2))).shape == (0, 2)


def test_device_and_checks_within(device: str) -> None:
    x = on(device, uniform(2, 3))
    assert vmap(lambda x: x.to(device) * (str(x.device) == device) + xgrad.ones_like(x))(x).device is x.device
    assert vmap(lambda x: xgrad.full(2, 7.0, device=x.device, dtype=x.dtype) * x[0])(x).shape == (2, 2)
    check_error(
        "xp.vmap(lambda y: xp.nn.functional.cross_entropy(xp.zeros((1, 2)), y[None]))(xp.asarray([0, 5]))",
        "IndexError: cross_entropy: …",
    )


ERRORS = [
    ("xp.vmap(x)", "TypeError: vmap: expected a function, got Tensor: write xgrad.vmap(f)(x)"),
    ("xp.vmap(lambda x: x)(2.0)", "TypeError: vmap: expected a tensor for argument 0, got float: give it in_axes=None"),
    (
        "xp.vmap(lambda x: x)(xp.asarray(2.0))",
        "ValueError: vmap: expected axis 0 in argument 0, got shape (): give it …",
    ),
    ("xp.vmap(lambda x: x, in_axes=None)(x)", "ValueError: vmap: expected axes of one length …, got None for all"),
    ("xp.vmap(lambda x, y: x)(x, x[:1])", "ValueError: vmap: expected axes of one length …, got lengths [1, 2]"),
    ("xp.vmap(lambda x: x, in_axes=(0, 0))(x)", "ValueError: vmap: expected in_axes for 1 arguments, got (0, 0)"),
    (
        "xp.vmap(lambda x: x, in_axes='0')(x)",
        "TypeError: vmap: expected in_axes of an int or None, or the containers …",
    ),
    ("xp.vmap(lambda x: x, out_axes=3)(x)", "ValueError: vmap: expected out_axes below 2 for the result, got 3"),
    ("xp.vmap(lambda x: x, out_axes=None)(x)", "ValueError: vmap: expected the result to be the same for the whole …"),
    (
        "xp.vmap(lambda x: 1.0)(x)",
        "TypeError: vmap: expected tensors of the function, got float in the result: return …",
    ),
    (
        "xp.vmap(lambda x: x if x[0] > 0 else -x)(x)",
        "TypeError: vmap: the values of a batched tensor … use where, or …",
    ),
    ("xp.vmap(lambda x: x[x > 0])(x)", "ValueError: … the shape of x[mask] depends on values: use where(mask, x, 0)"),
    ("xp.vmap(lambda x: xp.nonzero(x)[0])(x)", "ValueError: … the shape of what nonzero returns depends on values: …"),
    ("xp.vmap(lambda x: x + xp.random.rand(2))(x)", "RuntimeError: vmap: random numbers are drawn in the function: …"),
    ("xp.vmap(lambda x: xp.sum(x, axis=1))(x)", "IndexError: sum: axis 1 is out of bounds for shape (2,) …"),
    ("xp.vmap(lambda x: x @ xp.ones(3))(x)", "ValueError: matmul: …"),
]


@pytest.mark.parametrize(("call", "expected"), ERRORS, ids=[call for call, _ in ERRORS])
def test_refusal(call: str, expected: str) -> None:
    check_error(call, expected, x=xgrad.asarray([[1.0, -1.0], [2.0, 3.0]]))


def test_tensors_that_stay_are_refused() -> None:
    kept: list[Tensor] = []
    x = xgrad.ones((2, 3))

    def keep(x: Tensor) -> Tensor:
        kept.append(x * 2)
        return x

    vmap(keep)(x)
    with pytest.raises(RuntimeError, match="vmap: multiply is given a tensor of another call of vmap, which is left"):
        kept[0] * 2
    with pytest.raises(RuntimeError, match="another call of vmap"):
        vmap(lambda x: x + kept[0])(x)

    def write_to_view(x: Tensor) -> Tensor:
        new = xgrad.asarray(x, copy=True)
        new[:2][0] = 1
        return new

    with pytest.raises(TypeError, match="vmap: a view of a tensor is written to"):
        vmap(write_to_view)(x)


# jacfwd


def test_jacfwd_is_jacobian(device: str) -> None:
    p = {"x": on(device, uniform(3)), "y": on(device, np.array(2.0))}

    def f(p: dict[str, Tensor], scale: float = 1.0) -> Any:
        return [xgrad.exp(p["x"]) * p["y"] * scale, (p["x"] ** 3).sum()]

    assert_equal_leaves(jacfwd(f)(p, scale=2.0), jacobian(f)(p, scale=2.0))
    for argnums in (0, (1, 0)):
        got = jacfwd(lambda x, y: x[:, None] * y, argnums)(p["x"], p["x"][:2])
        assert_equal_leaves(got, jacobian(lambda x, y: x[:, None] * y, argnums)(p["x"], p["x"][:2]))
    assert_equal_leaves(jacfwd(jacfwd(lambda p: f(p)[1]))(p), jacobian(jacobian(lambda p: f(p)[1]))(p))
    matrix, (aux, word) = jacfwd(lambda x: (x**2, (x.sum(), "aux")), has_aux=True)(p["x"])
    np.testing.assert_allclose(host(matrix), np.diag(2 * uniform(3)))
    assert word == "aux" and float(aux) == pytest.approx(uniform(3).sum())


def test_jacfwd_has_a_graph_and_takes_empty_arguments() -> None:
    x = xgrad.asarray([1.0, 2.0])
    assert grad(lambda x: jacfwd(lambda x: x**3)(x).sum())(x).tolist() == [6.0, 12.0]
    assert jacfwd(lambda x: xgrad.stack([x.sum(), x.sum()]))(xgrad.zeros(0)).shape == (2, 0)
    check_error(
        "xp.jacfwd(lambda x: x)(1j)", "TypeError: jacfwd: expected real arguments, got complex ones: take real …"
    )
    check_error("xp.jacfwd(lambda x: x, argnums=1)(1.0)", "ValueError: jacfwd: expected argnums among …")
    check_error("xp.jacfwd(xp.ones(2))", "TypeError: jacfwd: expected a function, got Tensor: write xgrad.jacfwd(f)(x)")
