"""Recurrent layers in C have the bits of NumPy's kernels.

They do so for all sizes, layouts and numbers of threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import skip_without_compiler
from xgrad import nn, optim
from xgrad_numpy import recurrent
from xgrad_numpy.native import recurrent as native
from xgrad_numpy.native import runtime as runtime_module
from xgrad_numpy.native.orders import orders_of, with_signs

Arrays = tuple[np.ndarray, ...]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-42, 100.0, -100.0]

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")


@pytest.fixture(scope="module")
def runtime() -> runtime_module.Runtime:
    skip_without_compiler()
    loaded = runtime_module.runtime()
    if not loaded.has_products:
        pytest.skip("needs the functions of BLAS")
    return loaded


@pytest.fixture(params=[1, 2], ids=lambda count: f"threads{count}")
def threads(
    request: pytest.FixtureRequest, runtime: runtime_module.Runtime, monkeypatch: Any
) -> Iterator[int]:
    """Set the number of threads of BLAS, and share out rows of sequences of any size."""
    found = runtime_module._find_blas()
    assert found is not None
    *_, get, set_threads = found[0]
    before = get()
    monkeypatch.setattr(native, "_SHARED", 0)
    set_threads(request.param)
    yield request.param
    set_threads(before)


class Compared:
    """Calls of the kernels in NumPy and in C, and how many of the latter were computed in C."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, runtime: runtime_module.Runtime) -> None:
        self.computed: list[bool] = []
        self.loaded: runtime_module.Runtime | None = None
        self._runtime = runtime
        monkeypatch.setattr(native, "loaded_runtime", lambda: self.loaded)
        monkeypatch.setattr(native, "_LEAST", 1)
        for name in ("lstm_steps", "lstm_gradient", "gru_steps", "gru_gradient"):
            monkeypatch.setattr(native, name, self._counted(getattr(native, name)))

    def _counted(self, function: Callable[..., bool]) -> Callable[..., bool]:
        def counted(*args: Any) -> bool:
            done = function(*args)
            if self.loaded:
                self.computed.append(done)
            return done

        return counted

    def both(self, function: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
        """Return the results of NumPy and of C."""
        self.loaded = None
        expected = function(*args)
        self.loaded = self._runtime
        return expected, function(*args)

    def check(self, function: Callable[..., Arrays], *args: Any) -> Arrays:
        """Compare the bits of the results of NumPy and of C, and return the results of C."""
        expected, got = self.both(function, *args)
        for one, other in zip(expected, got, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape
            assert bits(one) == bits(other)
        return got  # type: ignore[no-any-return]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, runtime: runtime_module.Runtime) -> Compared:
    return Compared(monkeypatch, runtime)


def bits(x: np.ndarray) -> bytes:
    """Return the bytes of an array, in which all NaNs have the same bits."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).tobytes()


LAYERS = ["LSTM", "GRU", "GRU with a bias"]


def inputs(
    layer: str, steps: int, batch: int, width: int, dtype: str, special: bool = False
) -> tuple[Any, Arrays]:
    """Return the arguments of a forward kernel, and the gradients of its results.

    The arguments are the projected input, the weight, the first state, and the first cell or the
    bias; a GRU without a bias has None. The gradients are of the states, and of the last cell of an
    LSTM.
    """
    rng = np.random.default_rng([steps, batch, width])

    def draw(*shape: int) -> np.ndarray:
        x = rng.standard_normal(shape).astype(dtype)
        if special:
            x[rng.random(shape) < 0.05] = 0
            few = rng.random(shape) < 0.02
            x[few] = rng.choice(SPECIAL, few.sum()).astype(dtype)
        return x

    wide = (4 if layer == "LSTM" else 3) * width
    first = draw(steps, batch, wide), draw(wide, width), draw(batch, width)
    more = (
        draw(batch, width)
        if layer == "LSTM"
        else draw(wide)
        if layer == "GRU with a bias"
        else None
    )
    gradients = draw(steps, batch, width), draw(batch, width)
    return (*first, more), gradients if layer == "LSTM" else gradients[:1]


def backward_of(layer: str, forward: Any, results: Arrays, gradients: Arrays) -> tuple[Any, Any]:
    """Return the kernel of the gradient, and its arguments but for the last one."""
    _, weight, h, more = forward
    if layer == "LSTM":
        return recurrent.lstm_gradient, (*gradients, weight, more, *results[1:])
    return recurrent.gru_gradient, (*gradients, weight, h, *results)


def steps_of(layer: str) -> Any:
    return recurrent.lstm_steps if layer == "LSTM" else recurrent.gru_steps


def check(
    compared: Compared,
    layer: str,
    forward: Any,
    gradients: Arrays,
    reverse: bool,
    change: Any = None,
) -> None:
    """Compare both kernels, with `change` applied to each argument that is an array."""
    change = change or (lambda x: x)
    results = compared.check(
        steps_of(layer), *[x if x is None else change(x) for x in forward], reverse
    )
    kernel, args = backward_of(layer, forward, results, gradients)
    compared.check(kernel, *map(change, args), reverse)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize("width", [1, 5, 16, 128])
@pytest.mark.parametrize("batch", [1, 2, 31, 32])
@pytest.mark.parametrize("layer", LAYERS)
def test_results_have_the_bits_of_numpy(
    compared: Compared, threads: int, layer: str, batch: int, width: int, steps: int, dtype: str
) -> None:
    for reverse in (False, True):
        check(compared, layer, *inputs(layer, steps, batch, width, dtype), reverse)
    if threads == 1:  # products on one thread are NumPy's
        assert compared.computed == [min(batch, width) > 1] * 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [5, 16, 300])
@pytest.mark.parametrize("layer", LAYERS)
def test_special_values_have_the_bits_of_numpy(
    compared: Compared, threads: int, layer: str, width: int, dtype: str
) -> None:
    for reverse in (False, True):
        check(compared, layer, *inputs(layer, 7, 31, width, dtype, special=True), reverse)
    if threads == 1:
        assert all(compared.computed)


def misaligned(x: np.ndarray) -> np.ndarray:
    out = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    out[...] = x
    return out


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


#: Arrays with the numbers of another one, in other layouts.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "read_only": read_only,
    "transposed": lambda x: (
        x if x.ndim < 2 else np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)
    ),
    "fortran": np.asfortranarray,
    "every_second": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "gaps": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "mirrored": lambda x: x[..., ::-1].copy()[..., ::-1],
    "misaligned": misaligned,
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "one_number": lambda x: np.broadcast_to(x.ravel()[0], x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layouts_of_arguments_have_the_bits_of_numpy(
    compared: Compared, threads: int, layer: str, layout: str, dtype: str
) -> None:
    for reverse in (False, True):
        check(compared, layer, *inputs(layer, 3, 6, 8, dtype), reverse, LAYOUTS[layout])
    assert all(compared.computed) and len(compared.computed) == 4


@pytest.mark.parametrize("layer", LAYERS)
def test_arguments_that_share_memory_are_left_as_they_are(
    compared: Compared, threads: int, layer: str
) -> None:
    wide = 32 if layer == "LSTM" else 24
    numbers = np.random.default_rng(0).standard_normal(4 * 6 * wide).astype("f4")
    before = numbers.copy()
    x = numbers.reshape(4, 6, wide)
    weight = numbers[: 8 * wide].reshape(wide, 8)
    state = numbers[:48].reshape(6, 8)
    more = state if layer == "LSTM" else numbers[:wide] if layer == "GRU with a bias" else None
    forward = x, weight, state, more
    made = compared.check(steps_of(layer), *forward, False)
    gradients = made[:1] if layer != "LSTM" else (made[1], state)
    kernel, args = backward_of(layer, forward, made, gradients)
    results = compared.check(kernel, *args, False)
    assert all(compared.computed) and bits(numbers) == bits(before)
    assert not any(np.may_share_memory(result, y) for result in results for y in (numbers, *made))


@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("f8", "f4"), ("f2", "f2"), (">f4", ">f4")])
@pytest.mark.parametrize("layer", ["LSTM", "GRU with a bias"])
def test_other_dtypes_are_left_to_numpy(
    compared: Compared, layer: str, dtypes: tuple[str, str]
) -> None:
    (x, weight, *rest), _ = inputs(layer, 2, 3, 4, "f8")
    args = (
        x.astype(dtypes[0]),
        weight.astype(dtypes[1]),
        *(y.astype(np.result_type(*dtypes)) for y in rest),
    )
    compared.check(steps_of(layer), *args, False)
    assert compared.computed == [False]


@pytest.mark.parametrize("layer", LAYERS)
def test_products_with_other_bits_are_left_to_numpy(
    compared: Compared, monkeypatch: pytest.MonkeyPatch, layer: str
) -> None:
    monkeypatch.setattr(native, "_has_bits_of_numpy", lambda *_: False)
    monkeypatch.setattr(native, "_KNOWN", {})
    check(compared, layer, *inputs(layer, 2, 4, 4, "float32"), False)
    assert compared.computed == [False, False]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "inner", "columns"), [(8, 16, 64), (32, 48, 192), (6, 128, 512)])
def test_the_sign_of_zeros_is_tried_out(
    runtime: runtime_module.Runtime, rows: int, inner: int, columns: int, dtype: str
) -> None:
    """A product that keeps -0, and one that adds it to 0, must not both pass.

    Only one of them has the bits of NumPy.
    """
    product = native._product(rows, inner, columns, np.dtype(dtype))
    for order in orders_of(product, int(runtime.functions.threads()), runtime):
        ways = [native._Way(rows, x) for x in with_signs(order)]
        assert not all(native._has_bits_of_numpy(way, runtime) for way in ways)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("most", [16, 20, 48, 100])
@pytest.mark.parametrize("ranges", [(0, 0), (1, 1), (2, 1), (4, 2)])
@pytest.mark.parametrize("vectors", [5, 7, 24])
def test_parts_of_products_by_panels_have_the_bits_of_the_whole(
    runtime: runtime_module.Runtime, most: int, dtype: str, ranges: tuple[int, int], vectors: int
) -> None:
    """The bits do not depend on the order of sums in OpenBLAS, which is found by comparison."""
    suffix = "double" if dtype == "float64" else "float"
    columns = vectors * int(runtime.functions[f"panel_lanes_{suffix}"]())
    if not columns:
        pytest.skip("needs an instruction that multiplies and adds")
    if ranges[0] and (dtype == "float64" or not runtime.functions.panels_have_pairs()):
        pytest.skip("needs the kernel of floats for AVX2")
    rng, rows = np.random.default_rng(0), 47
    first = rng.standard_normal((rows, 70)).astype(dtype)
    second = rng.standard_normal((70, columns)).astype(dtype)
    product = replace(
        native._product(rows, 70, columns, first.dtype), most=most, unit=16, all_rows=rows,
        all_columns=columns, row_ranges=ranges[0], column_ranges=ranges[1],
    )  # fmt: skip
    whole = np.empty((rows, columns), dtype)
    native._multiply(product, 0, first, second, whole, runtime)
    np.testing.assert_allclose(
        whole, first @ second, rtol=0, atol=1e-4 if dtype == "float32" else 1e-12
    )
    for size in range(1, 13):
        out = np.full_like(whole, np.nan)
        for row in range(0, rows, size):
            native._multiply(
                product, row, first[row : row + size], second, out[row : row + size], runtime
            )
        assert bits(out) == bits(whole)


def warnings_of(function: Callable[..., Any], *args: Any) -> set[str]:
    """Return what a function warns of, without the names of the operations."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args)
    return {str(each.message).split(" encountered")[0] for each in caught}


@pytest.mark.parametrize("number", [1.0, 1e38, 3e38, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("layer", LAYERS)
def test_warnings_are_those_of_numpy(compared: Compared, layer: str, number: float) -> None:
    (x, weight, h, more), gradients = inputs(layer, 2, 4, 4, "float32")
    x[1, 2, 5], infinite = number, np.full_like(h, np.inf)
    last = infinite if layer == "LSTM" else more
    for args in (
        (x, weight, h, more),
        (x * infinite[0, 0], weight, h, more),
        (x, weight, infinite, last),
    ):
        expected, got = compared.both(warnings_of, steps_of(layer), *args, False)
        assert expected == got
    forward, _ = inputs(layer, 2, 4, 4, "float32")
    results = compared.check(steps_of(layer), *forward, False)
    gradients[0][1, 2, 3] = number
    kernel, args = backward_of(layer, forward, results, gradients)
    expected, got = compared.both(warnings_of, kernel, *args, False)
    assert expected == got and ("invalid value" in got) >= np.isinf(number)


@pytest.mark.parametrize("layer", LAYERS)
def test_errstate_holds_for_kernels_in_c(compared: Compared, layer: str) -> None:
    forward, gradients = inputs(layer, 2, 4, 4, "float32")
    *results, gates = compared.check(steps_of(layer), *forward, False)
    gradients = np.full_like(gradients[0], 3e38), *gradients[1:]
    kernel, args = backward_of(layer, forward, (*results, gates * 9), gradients)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        kernel(*args, False)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(*args, False)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU])
def test_training_has_the_bits_of_numpy_whatever_computes_it(
    compared: Compared, layer: Any
) -> None:
    """Eagerly, captured, and with one after the other."""
    x = xgrad.asarray(np.random.default_rng(0).standard_normal((4, 7, 5)).astype("f4"))
    results = []
    for captured in (False, True):
        for loaded in (
            [None] * 6,
            [compared._runtime] * 6,
            [None, None, None, *[compared._runtime] * 3],
        ):
            xgrad.manual_seed(0)
            model = layer(5, 6, num_layers=2, batch_first=True, bidirectional=True)
            optimizer = optim.SGD(model.parameters(), lr=0.1)

            def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
                optimizer.zero_grad()
                loss = xgrad.sum(model(x)[0] ** 2)
                loss.backward()
                optimizer.step()
                return loss

            run = xgrad.capture(step) if captured else step
            losses = []
            for each in loaded:
                compared.loaded = each
                losses.append(float(run(x)))
            results.append((losses, [p.detach().numpy().tobytes() for p in model.parameters()]))
    assert (
        all(each == results[0] for each in results) and all(compared.computed) and compared.computed
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_without_native_kernels_numpy_computes(monkeypatch: pytest.MonkeyPatch, layer: str) -> None:
    monkeypatch.setenv("XGRAD_NATIVE", "0")
    monkeypatch.setattr(runtime_module, "_LOADING", [])
    monkeypatch.setattr(runtime_module, "_LOADED", [])
    monkeypatch.setattr(native, "_has_bits_of_numpy", lambda *_: 1 / 0)
    forward, gradients = inputs(layer, 7, 4, 4, "float32")
    kernel, args = backward_of(layer, forward, steps_of(layer)(*forward, False), gradients)
    kernel(*args, False)
    assert not runtime_module._LOADING
