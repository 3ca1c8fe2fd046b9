"""`vmap` and `jacfwd`, compared with loops, PyTorch and `jacobian`; nesting, graphs, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf64, on, uniform
from xgrad import Tensor, capture, grad, hessian, jacfwd, jacobian, jvp, nn, optim, vjp, vmap
from xgrad.backend.device import Device
from xgrad.capture import CaptureWarning
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import options
from xgrad.support.trees import leaves, rebuild
from xgrad.transforms import batching_rules

#: Ops with shapes, or a choice of algorithm, that depend on values; and writes through views.
REFUSED = {
    "allclose",
    "bincount",
    "expm",
    "nonzero",
    "put",
    "put of a part",
    "repeat by an array",
    "sqrtm",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unique_values of repeated ones",
}
CASES = [case for case in OP_CASES if case.name != "to_device" and not case.missing()]


def assert_equal_leaves(got: Any, wanted: Any, rtol: float = 1e-9) -> None:
    pairs = list(zip([x for _, x in leaves(got)], [x for _, x in leaves(wanted)], strict=True))
    assert pairs
    for a, b in pairs:
        np.testing.assert_allclose(host(a), host(b), rtol=rtol, atol=1e-11)


def looped(fn: Callable[..., Any], axes: tuple[Any, ...], *args: Any) -> Any:
    """Return what vmap must return: the stacked results of a loop."""
    count = next(x.shape[0] for x, axis in zip(args, axes, strict=True) if axis == 0)
    rows = [
        fn(*[x[i, ...] if axis == 0 else x for x, axis in zip(args, axes, strict=True)])
        for i in range(count)
    ]
    columns = zip(*[[x for _, x in leaves(row)] for row in rows], strict=True)
    return rebuild(rows[0], [xgrad.stack(list(column)) for column in columns])


# The op table


def with_gradients(case: OpCase, sample: Sample, device: Device) -> Callable[..., Any]:
    """Return a function of all inputs that returns the results of an op, and gradients if any."""
    floating = [
        i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"
    ]
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
    assert compared or not any(
        isinstance(x, np.ndarray) for sample in case.samples for x in sample.inputs
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", [case for case in CASES if case.differentiable], ids=str)
def test_gradients_of_the_op_around_vmap_are_those_of_a_loop(case: OpCase) -> None:
    if case.name in REFUSED:
        return
    device, compared = Device("cpu"), False
    samples = [
        sample for sample in case.samples + case.complex_samples() if sample.layout == "plain"
    ]
    for sample in samples:
        arrays = [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray)]
        floating = [i for i in arrays if sample.inputs[i].dtype.kind in "fc"]
        named = options(sample, device)

        def results(*inputs: Any, named: dict[str, Any] = named) -> list[Any]:
            out = case.fn(*inputs, **named)
            return list(out) if isinstance(out, (list, tuple)) else [out]

        for mapped in [set(arrays)] + [{i} for i in arrays if len(arrays) > 1]:
            inputs: list[Any] = list(sample.inputs)
            for i in arrays:
                x = inputs[i]
                parts = [x, 0.75 * x, 0.5 * x] if x.dtype.kind in "fc" else [x, x, x]
                inputs[i] = xgrad.asarray(np.stack(parts) if i in mapped else x)
            axes = tuple(0 if i in mapped else None for i in range(len(inputs)))

            def gradients(
                run: Any, given: list[Any] = inputs, floating: list[int] = floating
            ) -> Any:
                def total(*chosen: Any) -> Any:
                    all_inputs = list(given)
                    for i, x in zip(floating, chosen, strict=True):
                        all_inputs[i] = x
                    outs = [out for out in run(*all_inputs) if out.dtype.kind in "fc"]
                    return sum(
                        xgrad.real(out * xgrad.cos(out.detach() + 0.5)).sum() for out in outs
                    )

                return grad(total, range(len(floating)))(*[given[i] for i in floating])

            try:
                wanted = gradients(lambda *args, axes=axes: looped(results, axes, *args))
            except (ValueError, TypeError, RuntimeError, np.linalg.LinAlgError):
                continue
            assert_equal_leaves(gradients(vmap(results, axes)), wanted, rtol=1e-8)
            compared = True
    assert (
        compared
        or case.no_derivative
        or not any(isinstance(x, np.ndarray) for s in samples for x in s.inputs)
    )


def test_functions_without_a_rule_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        *xgrad.ops.STANDARD,
        *(f"linalg.{name}" for name in xgrad.linalg.__all__),
    } - batching_rules.RULES.keys()
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
    return (
        nn.functional.cross_entropy(logits, y[None]) + (nn.functional.softmax(logits) ** 2).mean()
    )


def problem(device: str) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    params = {"w": uniform(3, 4) - 1, "b": uniform(4, seed=1), "v": uniform(3, 2, seed=2) - 1}
    return (
        {k: on(device, v) for k, v in params.items()},
        on(device, uniform(5, 3, seed=3)),
        on(device, [0, 3, 5, 2, 0]),
    )


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
    vmap(lambda x: grad(lambda x: (leaf * x**2).sum())(x))(
        on(device, uniform(2, 3))
    ).sum().backward()
    np.testing.assert_allclose(host(leaf.grad), 2 * uniform(2, 3).sum(axis=0))
    with xgrad.no_grad():
        assert not vmap(grad(lambda x: (leaf * x**2).sum()))(
            on(device, uniform(2, 3))
        ).requires_grad


def test_other_transforms_within(device: str) -> None:
    x, v = on(device, uniform(4, 3)), on(device, uniform(4, 3, seed=1))

    def f(x: Tensor) -> Tensor:
        return xgrad.exp(x) * x[0] + (x @ x)

    for fn in (jacobian(f), jacfwd(f), hessian(lambda x: f(x).sum()), lambda x: vjp(f, x)[1](f(x))):
        assert_equal_leaves(vmap(fn)(x), looped(fn, (0,), x))
    assert_equal_leaves(
        vmap(lambda x, v: jvp(f, (x,), (v,)))(x, v),
        looped(lambda *a: jvp(f, a[:1], a[1:]), (0, 0), x, v),
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
    # the inner batch has no part of the outer one
    scaled = vmap(lambda a: vmap(lambda b: b * y.sum())(x) * a)(y[:, 0])
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
        {k: torch.tensor(host(v)) for k, v in params.items()},
        torch.tensor(host(x.T)),
        torch.tensor(host(y)),
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
    whole = grad(lambda p: nn.functional.cross_entropy(nn.utils.functional_call(net, p, x), y))(
        params
    )
    assert_equal_leaves({name: g.mean(axis=0) for name, g in got.items()}, whole, rtol=1e-4)


def test_captured_step() -> None:
    """A step with clipped gradients of samples."""

    def losses(captured: bool) -> list[float]:
        xgrad.manual_seed(0)
        net, x, y = nn.MLP([3, 8, 4]), xgrad.random.randn((6, 3)), xgrad.random.randint(0, 4, (6,))
        optimizer = optim.SGD(net.parameters(), lr=0.1)
        scale = xgrad.asarray([1.0, 2.0, 3.0])

        def loss(params: Any, x: Tensor, y: Tensor) -> Tensor:
            return nn.functional.cross_entropy(
                nn.utils.functional_call(net, params, (x * scale)[None]), y[None]
            )

        def step(x: Tensor, y: Tensor) -> Tensor:
            params = {
                name: xgrad.asarray(p.detach(), copy=True) for name, p in net.named_parameters()
            }
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
    x = on(device, uniform(3, 4, 5, 6))
    rows = on(device, [[0, 1], [2, 3], [1, 1]])
    columns = on(device, [1, 0])
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
                assert_equal_leaves(
                    vmap(fn, mapped)(array, index), looped(fn, mapped, array, index)
                )


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
    assert (
        vmap(lambda x: x.to(device) * (str(x.device) == device) + xgrad.ones_like(x))(x).device
        is x.device
    )
    assert vmap(lambda x: xgrad.full(2, 7.0, device=x.device, dtype=x.dtype) * x[0])(x).shape == (
        2,
        2,
    )
    check_error(
        "xp.vmap(lambda y: xp.nn.functional.cross_entropy(xp.zeros((1, 2)),"
        " y[None]))(xp.asarray([0, 5]))",
        "IndexError: cross_entropy: …",
    )


ERRORS = [
    ("xp.vmap(x)", "TypeError: vmap: expected a function, got Tensor: write xgrad.vmap(f)(x)"),
    (
        "xp.vmap(lambda x: x)(2.0)",
        "TypeError: vmap: expected a tensor for argument 0, got float: give it in_axes=None",
    ),
    (
        "xp.vmap(lambda x: x)(xp.asarray(2.0))",
        "ValueError: vmap: expected axis 0 in argument 0, got shape (): give it …",
    ),
    (
        "xp.vmap(lambda x: x, in_axes=None)(x)",
        "ValueError: vmap: expected axes of one length …, got None for all",
    ),
    (
        "xp.vmap(lambda x, y: x)(x, x[:1])",
        "ValueError: vmap: expected axes of one length …, got lengths [1, 2]",
    ),
    (
        "xp.vmap(lambda x: x, in_axes=(0, 0))(x)",
        "ValueError: vmap: expected in_axes for 1 arguments, got (0, 0)",
    ),
    (
        "xp.vmap(lambda x: x, in_axes='0')(x)",
        "TypeError: vmap: expected in_axes of an int or None, or the containers …",
    ),
    (
        "xp.vmap(lambda x: x, out_axes=3)(x)",
        "ValueError: vmap: expected out_axes below 2 for the result, got 3",
    ),
    (
        "xp.vmap(lambda x: x, out_axes=None)(x)",
        "ValueError: vmap: expected the result to be the same for the whole …",
    ),
    (
        "xp.vmap(lambda x: 1.0)(x)",
        "TypeError: vmap: expected tensors of the function, got float in the result: return …",
    ),
    (
        "xp.vmap(lambda x: x if x[0] > 0 else -x)(x)",
        "TypeError: vmap: the values of a batched tensor … use where, or …",
    ),
    (
        "xp.vmap(lambda x: x[x > 0])(x)",
        "ValueError: … the shape of x[mask] depends on values: use where(mask, x, 0)",
    ),
    (
        "xp.vmap(lambda x: xp.nonzero(x)[0])(x)",
        "ValueError: … the shape of what nonzero returns depends on values: …",
    ),
    (
        "xp.vmap(lambda x: x + xp.random.rand(2))(x)",
        "RuntimeError: vmap: random numbers are drawn in the function: …",
    ),
    (
        "xp.vmap(lambda x: xp.sum(x, axis=1))(x)",
        "IndexError: sum: expected axis from -1 to 0 for x of shape (2,), got 1",
    ),
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
    with pytest.raises(
        RuntimeError,
        match="vmap: multiply is given a tensor of another call of vmap, which is left",
    ):
        kept[0] * 2
    with pytest.raises(RuntimeError, match="another call of vmap"):
        vmap(lambda x: x + kept[0])(x)

    def write_to_view(x: Tensor) -> Tensor:
        new = xgrad.asarray(x, copy=True)
        new[:2][0] = 1
        return new

    with pytest.raises(TypeError, match="vmap: a view of a tensor is written to"):
        vmap(write_to_view)(x)


# Constants: values without gradients


def test_detach_stops_the_gradients_of_transforms_around_vmap(device: str) -> None:
    x = on(device, [1.0, 2.0, 3.0])

    def f(a: Tensor) -> Tensor:
        return (a - (2 * a).detach()) ** 2

    assert grad(lambda x: vmap(f)(x).sum())(x).tolist() == [-2, -4, -6]
    for transform in (jacobian, jacfwd):
        np.testing.assert_array_equal(host(transform(vmap(f))(x)), np.diag([-2.0, -4, -6]))
        assert grad(lambda x, t=transform: t(lambda a: a * a.detach() ** 2)(x).sum())(
            x
        ).tolist() == [0, 0, 0]
    assert vmap(grad(f))(x).tolist() == [-2, -4, -6]
    assert grad(lambda x: vmap(vmap(f))(x[:, None]).sum())(x).tolist() == [-2, -4, -6]
    assert grad(lambda x: vmap(grad(lambda a: a.detach() * a**2))(x).sum())(x).tolist() == [2, 4, 6]
    by_data = grad(lambda x: vmap(lambda a: (a - (2 * a).data) ** 2)(x).sum())(x)
    assert by_data.tolist() == [-2, -4, -6]
    copied = grad(lambda x: vmap(lambda a: xgrad.asarray(a, copy=True) * a.clone())(x).sum())(x)
    assert copied.tolist() == [2, 4, 6]


def test_no_grad_within_vmap_stops_the_gradients_around_it(device: str) -> None:
    x = on(device, [1.0, 2.0, 3.0])

    def f(a: Tensor) -> Tensor:
        with xgrad.no_grad():
            constant = grad(lambda a: a**3)(a) + jacfwd(lambda a: a**2)(a)
        return a * constant

    assert grad(lambda x: vmap(f)(x).sum())(x).tolist() == [5, 16, 33]
    assert not vmap(f)(Tensor([1.0], requires_grad=True).detach()).requires_grad


class Sign(xgrad.Function):
    """The sign, with the gradient of the identity."""

    @staticmethod
    def forward(xp: Any, x: Any) -> Any:
        return xp.sign(x)

    @staticmethod
    def backward(xp: Any, g: Any) -> Any:
        return g


class SignAndCopy(xgrad.Function):
    """The sign of one input, and a multiple of another.

    The sign has the gradient of the identity, the multiple none.
    """

    @staticmethod
    def forward(xp: Any, x: Any, y: Any, *, factor: float) -> Any:
        return xp.sign(x), y * factor

    @staticmethod
    def backward(xp: Any, g: Any) -> Any:
        return g[0], None


def by_own_rule(x: Tensor) -> Tensor:
    return Sign()(x)


def by_detach(x: Tensor) -> Tensor:
    return x + (xgrad.sign(x) - x).detach()


def by_several_results(x: Tensor) -> Tensor:
    first, second = SignAndCopy(factor=0.0)(x, xgrad.exp(x))
    return first + second


@pytest.mark.parametrize("estimator", [by_own_rule, by_detach, by_several_results])
def test_straight_through_estimator_has_its_gradient_in_any_nest(
    estimator: Any, device: str
) -> None:
    x, w = on(device, [[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]]), on(device, [2.0, 3.0, 5.0])

    def f(a: Tensor) -> Tensor:
        return (estimator(a * w) * a).sum()

    # The gradient is w a + sign(w a), and its derivative 2 w, as the sign's derivative is 1 again.
    slope = host(w) * host(x) + np.sign(host(x))
    np.testing.assert_allclose(host(vmap(grad(f))(x)), slope)
    np.testing.assert_allclose(host(grad(lambda x: vmap(f)(x).sum())(x)), slope)
    np.testing.assert_allclose(host(vmap(jacfwd(f))(x)), slope)
    np.testing.assert_allclose(host(jacobian(vmap(f))(x))[1, 1], slope[1])
    for curvature in (
        vmap(hessian(f))(x),
        vmap(jacfwd(grad(f)))(x),
        vmap(lambda a: jacobian(jacfwd(f))(a))(x),
    ):
        np.testing.assert_allclose(host(curvature), np.stack([np.diag(2 * host(w))] * 2))
    second = grad(lambda x: vmap(grad(f))(x).sum())(x)
    np.testing.assert_allclose(host(second), np.stack([2 * host(w)] * 2))
    # which is one for the whole batch
    by_w = grad(lambda w: vmap(lambda a: (estimator(a * w)).sum())(x).sum())(w)
    np.testing.assert_allclose(host(by_w), host(x).sum(axis=0))
    nested = grad(
        lambda w: vmap(lambda a: vmap(lambda b: (estimator(a * b * w)).sum())(x))(x).sum()
    )(w)
    np.testing.assert_allclose(host(nested), host(x).sum(axis=0) ** 2)


def test_writes_that_bypass_autograd_keep_the_graph_as_outside_of_vmap(device: str) -> None:
    x = on(device, [1.0, 2.0, 3.0])

    def under_no_grad(a: Tensor) -> Tensor:
        y = a * 1
        with xgrad.no_grad():
            y += 1
        return y * y

    def to_data(a: Tensor) -> Tensor:
        y = a[None, ...] * 1
        y.data[...] = 5
        return (y * y).sum()

    def new_data(a: Tensor) -> Tensor:
        y = a * 1
        y.data = 3 * a
        return y * y

    for fn in (under_no_grad, to_data, new_data):
        wanted = grad(lambda x, f=fn: sum((f(x[i, ...]) for i in range(3)), x[0] * 0))(x)
        assert grad(lambda x, f=fn: vmap(f)(x).sum())(x).tolist() == wanted.tolist()
        assert vmap(grad(fn))(x).tolist() == wanted.tolist()
        assert (
            grad(lambda x, f=fn: vmap(vmap(f))(x[None, ...]).sum())(x).tolist() == wanted.tolist()
        )


def test_lost_gradients_of_transforms_around_are_refused() -> None:
    x, z = xgrad.ones((2, 3)), xgrad.ones(3)
    for lost in (lambda y: y.numpy(), lambda y: y.requires_grad_(False)):
        with pytest.raises(RuntimeError, match=r"use \.detach"):
            grad(
                lambda z, lost=lost: vmap(
                    lambda a: a * 1 if lost(z + 0 * xgrad.zeros_like(a)) is None else a
                )(x).sum()
            )(z)
    with xgrad.warn_lost_gradients(), pytest.warns(xgrad.LostGradientWarning):
        grad(lambda z: vmap(lambda a: a * float((xgrad.zeros_like(a) + z).sum()) + z)(x).sum())(z)


# Writes to tensors from outside


def state(*tensors: Tensor) -> list[Any]:
    return [(x.tolist(), x._data, x._placement, x._edge, x.requires_grad) for x in tensors]


OUTSIDE: dict[str, Any] = {
    "w += a": lambda w, v, a: w.__iadd__(a),
    "w[0] = a": lambda w, v, a: w.__setitem__(0, a[0]),
    "w[i] = 1": lambda w, v, a: w.__setitem__(xgrad.astype(a, xgrad.int64), 1.0),
    "a view += a": lambda w, v, a: v.__iadd__(a[1:]),
    "w[1:] += a": lambda w, v, a: w[1:].__iadd__(a[1:]),
    "w.add_(a)": lambda w, v, a: w.add_(a),
    "w.copy_(a)": lambda w, v, a: w.copy_(a),
    "w.data = a": lambda w, v, a: setattr(w, "data", a),
    "w.data[0] = a": lambda w, v, a: w.data.__setitem__(0, a[0]),
    "w.detach().data += a, then w": lambda w, v, a: w.data.add_(a),
    "w += an outer batch": lambda w, v, a: vmap(lambda b: w.__iadd__(a) * b)(a),
    "w += a in grad": lambda w, v, a: grad(lambda b: (w.__iadd__(b)).sum())(a),
}


@pytest.mark.parametrize("write", OUTSIDE)
def test_write_of_a_batch_to_a_tensor_from_outside_changes_nothing(write: str, device: str) -> None:
    w = on(device, [1.0, 2.0, 3.0])
    v, x = w[1:], on(device, [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    if device == "strict" and write == "w[i] = 1":
        pytest.skip("array-api-strict has no integer arrays as keys of assignments")
    before = state(w, v)
    with pytest.raises(
        RuntimeError,
        match=r"in place: a tensor of a vmap is written to .*xgrad.asarray\(x, copy=True\)",
    ):
        vmap(lambda a: (OUTSIDE[write](w, v, a), a)[1])(x)
    assert state(w, v) == before
    w += 1  # and it can be used as before
    assert v.tolist() == [3, 4]


def test_parameters_and_gradients_from_outside_stay_as_they_are() -> None:
    p, x = nn.Parameter(xgrad.ones(3)), xgrad.ones((2, 3))
    zero = xgrad.asarray(1.0)

    def add(a: Tensor) -> Tensor:
        with xgrad.no_grad():
            p.add_(a)
        return a

    before = state(p, zero)
    for write in (
        add,
        lambda a: setattr(p, "data", a) or a,
        lambda a: setattr(p, "grad", a) or a,
        lambda a: zero.add_(a[0]),
        lambda a: (p * a).sum().backward() or a,
    ):
        with pytest.raises(RuntimeError, match="of a vmap"):
            vmap(write)(x)
        assert state(p, zero) == before and p.grad is None
    vmap(lambda a: setattr(p, "grad", xgrad.zeros_like(a)) or a)(x)  # the same for all
    assert p.grad.tolist() == [0, 0, 0]
    y = p * 2
    with pytest.raises(
        ValueError, match="backward: expected a gradient that is the same for the whole batch"
    ):
        vmap(lambda a: y.backward(a) or a)(x)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_normalization_in_training_is_refused_before_it_changes(momentum: Any) -> None:
    layer = nn.BatchNorm1d(3, momentum=momentum)
    x = xgrad.asarray(uniform(4, 5, 3).astype(np.float32))
    before = state(*layer.buffers())
    with pytest.raises(RuntimeError, match=r"call eval\(\) of layers with running statistics"):
        vmap(layer)(x)
    assert state(*layer.buffers()) == before
    np.testing.assert_allclose(host(vmap(layer.eval())(x)), host(x), rtol=1e-4)
    free = nn.BatchNorm1d(3, track_running_stats=False)
    assert_equal_leaves(vmap(free)(x), looped(free, (0,), x), rtol=1e-5)
    # of which the statistics do not depend on the batch
    other = nn.BatchNorm1d(3, momentum=momentum)
    layer.train()
    jacfwd(layer)(x[0, ...]), other(x[0, ...])
    for ours, theirs in zip(layer.buffers(), other.buffers(), strict=True):
        np.testing.assert_allclose(host(ours), host(theirs), rtol=1e-5)
    params = {name: t.detach() for name, t in [*layer.named_parameters(), *layer.named_buffers()]}
    before = state(*layer.buffers())
    # writes to copies of the buffers
    got = vmap(lambda a: nn.utils.functional_call(layer, params, a))(x)
    assert_equal_leaves(got, looped(nn.BatchNorm1d(3), (0,), x), rtol=1e-5)
    assert state(*layer.buffers()) == before


def test_writes_that_are_the_same_for_the_whole_batch_reach_tensors_from_outside() -> None:
    w, p, x = xgrad.ones(3), nn.Parameter(xgrad.ones(3)), xgrad.ones((2, 3))
    v, optimizer = w[:2], optim.SGD([p], lr=0.5)
    p.grad = xgrad.ones(3)

    def f(a: Tensor) -> Tensor:
        w[0] = 5.0
        w.mul_(xgrad.full(3, 2.0))
        w[2:] = xgrad.zeros_like(a)[:1]  # a tensor of the vmap, without a batch
        optimizer.step()
        return a * w

    assert vmap(f)(x).tolist() == [[10, 2, 0]] * 2
    assert w.tolist() == [10, 2, 0] and v.tolist() == [10, 2] and p.tolist() == [0.5] * 3
    w += 1
    assert v.tolist() == [11, 3]


def test_tensors_made_within_vmap_are_written_to(device: str) -> None:
    x, w = on(device, uniform(2, 3)), on(device, uniform(3, seed=1))

    def f(a: Tensor) -> Tensor:
        made = [
            xgrad.zeros(3, device=w.device, dtype=w.dtype),
            xgrad.zeros_like(w),
            xgrad.asarray(w, copy=True),
            w.clone(),
            Tensor(host(w), device=w.device),
            w.detach(),
            xgrad.stack([w, w])[0, ...] * 1,
            xgrad.exp(w),
            w * 0,
            w + w,
        ]
        for y in made:
            view = y[1:]
            y[0] = a[0] * a[1]
            y += a
            assert view.shape == (2,) and (view + 0 * a[1:]).shape == (2,)
        number = xgrad.zeros((), device=w.device, dtype=w.dtype)
        number += a[0]
        number.add_(a[1])
        return sum(made, number) * a

    assert_equal_leaves(vmap(f)(x), looped(f, (0,), x))
    assert_equal_leaves(
        grad(lambda x: vmap(f)(x).sum())(x), grad(lambda x: looped(f, (0,), x).sum())(x)
    )
    assert_equal_leaves(vmap(jacfwd(f))(x), looped(jacobian(f), (0,), x))
    assert_equal_leaves(vmap(vmap(f))(x[None, ...]), looped(f, (0,), x)[None, ...])
    np.testing.assert_array_equal(host(w), uniform(3, seed=1))


def test_view_of_a_written_tensor_follows_it_within_vmap() -> None:
    def f(a: Tensor) -> Tensor:
        y = xgrad.zeros(3)
        view = y[:2]
        y[0] = a[0]
        return view

    assert vmap(f)(xgrad.asarray([[1.0], [2.0]])).tolist() == [[1, 0], [2, 0]]


def test_value_that_a_graph_saved_outlives_a_write_within_vmap() -> None:
    def f(a: Tensor) -> Tensor:
        scale = xgrad.asarray([1.0, 2.0])
        y = a * scale
        scale[0] = 100.0
        return (y * scale).sum()

    x = xgrad.ones((2, 2))
    assert vmap(grad(f))(x).tolist() == [[100, 4]] * 2
    assert grad(lambda x: vmap(f)(x).sum())(x).tolist() == [[100, 4]] * 2


def test_tensor_of_an_outer_vmap_is_outside_of_an_inner_one() -> None:
    x = xgrad.ones((2, 3))

    def f(a: Tensor) -> Tensor:
        made = xgrad.zeros(3)
        made += a  # of this vmap
        return vmap(lambda b: made.__iadd__(b))(x)

    with pytest.raises(RuntimeError, match="in place: a tensor of a vmap"):
        vmap(f)(x)

    def g(a: Tensor) -> Tensor:
        made = vmap(lambda b: b * 0)(x).sum(axis=0)
        made += a
        return vmap(lambda b: made * b)(x)

    assert vmap(g)(x).tolist() == xgrad.ones((2, 2, 3)).tolist()


def test_anomalies_and_profiles_see_ops_of_vmap() -> None:
    x = xgrad.asarray([1.0, 0.0])
    with xgrad.autograd.detect_anomaly(), pytest.raises(FloatingPointError, match=r"log: infinity"):
        vmap(lambda a: xgrad.log(a))(x)
    with (
        pytest.raises(FloatingPointError, match="in its derivative of sqrt"),
        xgrad.autograd.detect_anomaly(),
    ):
        vmap(grad(lambda a: xgrad.sqrt(a)))(x)

    def inside(a: Tensor) -> Tensor:
        with xgrad.autograd.detect_anomaly():
            return xgrad.log(a)

    with pytest.raises(FloatingPointError, match=r"log: infinity"):
        vmap(inside)(x)
    with xgrad.profile() as profile:
        vmap(grad(lambda a: xgrad.sin(a)))(x)
    assert {"sin", "cos"} <= profile.by_op().keys()


# Captured steps


def test_captured_vmap_after_a_refused_or_failed_trace() -> None:
    x, w = xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), xgrad.ones(2)

    @capture
    def refused(x: Tensor) -> Tensor:
        y = vmap(lambda a: a * w)(x)
        return y * float(y.sum())

    @capture
    def failing(x: Tensor) -> Tensor:
        return vmap(lambda a: xgrad.sin(a) * {}["key"])(x)

    with pytest.warns(CaptureWarning, match="the value of a tensor is read"):
        assert refused(x).tolist() == [[10, 20], [30, 40]]
    with pytest.raises(KeyError):
        failing(x)
    for fn in (
        vmap(lambda a: xgrad.sin(a) * w),
        vmap(grad(lambda a: (a**3).sum())),
        jacfwd(lambda x: x * w),
    ):
        step = capture(lambda x, fn=fn: fn(x))
        for _ in range(3):
            assert step(x).tolist() == fn(x).tolist()
        assert step.refusal is None


@pytest.mark.parametrize(
    "fn",
    [
        xgrad.linalg.vector_norm,
        lambda a: xgrad.linalg.matrix_norm(a[None]),
        lambda a: xgrad.real(xgrad.fft.fft(a)),
        lambda a: xgrad.special.logsumexp(a),
        lambda a: xgrad.special.erf(a),
    ],
)
def test_captured_vmap_of_functions_of_sub_namespaces(fn: Any) -> None:
    x = xgrad.asarray([[1.0, 2.0], [3.0, 4.0]])
    step = capture(lambda x: vmap(fn)(x))
    for _ in range(3):
        assert step(x).tolist() == vmap(fn)(x).tolist()
    assert step.refusal is None


# jacfwd


def test_jacfwd_is_jacobian(device: str) -> None:
    p = {"x": on(device, uniform(3)), "y": on(device, np.array(2.0))}

    def f(p: dict[str, Tensor], scale: float = 1.0) -> Any:
        return [xgrad.exp(p["x"]) * p["y"] * scale, (p["x"] ** 3).sum()]

    assert_equal_leaves(jacfwd(f)(p, scale=2.0), jacobian(f)(p, scale=2.0))
    for argnums in (0, (1, 0)):
        got = jacfwd(lambda x, y: x[:, None] * y, argnums)(p["x"], p["x"][:2])
        assert_equal_leaves(got, jacobian(lambda x, y: x[:, None] * y, argnums)(p["x"], p["x"][:2]))
    assert_equal_leaves(
        jacfwd(jacfwd(lambda p: f(p)[1]))(p), jacobian(jacobian(lambda p: f(p)[1]))(p)
    )
    matrix, (aux, word) = jacfwd(lambda x: (x**2, (x.sum(), "aux")), has_aux=True)(p["x"])
    np.testing.assert_allclose(host(matrix), np.diag(2 * uniform(3)))
    assert word == "aux" and float(aux) == pytest.approx(uniform(3).sum())


def test_jacfwd_has_a_graph_and_takes_empty_arguments() -> None:
    x = xgrad.asarray([1.0, 2.0])
    assert grad(lambda x: jacfwd(lambda x: x**3)(x).sum())(x).tolist() == [6.0, 12.0]
    assert jacfwd(lambda x: xgrad.stack([x.sum(), x.sum()]))(xgrad.zeros(0)).shape == (2, 0)
    check_error(
        "xp.jacfwd(lambda x: x)(1j)",
        "TypeError: jacfwd: expected real arguments, got complex ones: take real …",
    )
    check_error(
        "xp.jacfwd(lambda x: x, argnums=1)(1.0)", "ValueError: jacfwd: expected argnums among …"
    )
    check_error(
        "xp.jacfwd(xp.ones(2))",
        "TypeError: jacfwd: expected a function, got Tensor: write xgrad.jacfwd(f)(x)",
    )
