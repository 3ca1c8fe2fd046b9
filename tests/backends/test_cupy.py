"""The backend for CuPy, as far as it can be tested without a GPU: nothing here pretends to be one."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

import xgrad
import xgrad_cupy
from xgrad.backend import DeviceError
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.ops.matrix_products import matmul_into
from xgrad.optim.buffers import BufferLayout
from xgrad_cupy.kernels import Kernels

PACKAGE = Path(xgrad.__file__).parent


# What the constructor says of what is missing


class FakeRuntimeError(RuntimeError):
    """Stands for CuPy's CUDARuntimeError."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def raises(error: Exception) -> Any:
    def fail(*args: Any, **options: Any) -> NoReturn:
        raise error

    return fail


def fake_cupy(devices: Any, driver: int = 13_000, ones: Any = None) -> ModuleType:
    """Return a module in CuPy's place that finds no GPU, or fails on the one that it finds."""
    module: Any = ModuleType("cupy")
    runtime = SimpleNamespace(getDeviceCount=devices, driverGetVersion=lambda: driver, runtimeGetVersion=lambda: 13_020)
    module.cuda = SimpleNamespace(runtime=runtime)
    module.ones = ones
    return module  # type: ignore[no-any-return]


BANNER = "\n====\nFailed to import CuPy.\n\nOriginal error:\n  ImportError: libcudart.so.13: no such file\n====\n"
MESSAGES = {
    "driver": (
        fake_cupy(raises(FakeRuntimeError(35, "insufficient driver")), driver=0),
        "cuda: no NVIDIA driver: install one, and see that nvidia-smi finds the GPU",
    ),
    "old driver": (
        fake_cupy(raises(FakeRuntimeError(35, "insufficient driver")), driver=12_040),
        "cuda: the NVIDIA driver knows CUDA up to 12.4, CuPy was built for 13.2: update the driver, or uninstall this "
        "CuPy and pip install 'xgrad[cuda12]'",
    ),
    "broken driver": (
        fake_cupy(raises(FakeRuntimeError(803, "driver mismatch"))),
        "cuda: the NVIDIA driver fails: FakeRuntimeError: driver mismatch: see nvidia-smi",
    ),
    "device": (
        fake_cupy(raises(FakeRuntimeError(100, "no device"))),
        "cuda: no GPU: see nvidia-smi, and whether CUDA_VISIBLE_DEVICES hides it",
    ),
    "no devices": (
        fake_cupy(lambda: 0),
        "cuda: no GPU: see nvidia-smi, and whether CUDA_VISIBLE_DEVICES hides it",
    ),
    "library": (
        fake_cupy(lambda: 1, ones=raises(OSError("libnvrtc.so.13 not found\nsearched in\n- here"))),
        "cuda: there is a GPU, but CuPy fails on it: OSError: libnvrtc.so.13 not found: if CUDA's libraries are "
        f"missing, {xgrad_cupy._INSTALL}",
    ),
}


@pytest.mark.parametrize(("module", "message"), MESSAGES.values(), ids=MESSAGES)
def test_says_in_one_line_what_is_missing(module: ModuleType, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module)
    with pytest.raises(DeviceError) as caught:
        xgrad_cupy.CupyBackend()
    assert str(caught.value) == message


def test_says_that_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match=r"^cuda: the package CuPy is missing: pip install 'xgrad\[cuda13\]'[^\n]*$"):
        xgrad_cupy.CupyBackend()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError(BANNER), "cuda: CuPy does not load: ImportError: libcudart.so.13: no such file: "),
        (RuntimeError(), "cuda: CuPy does not load: RuntimeError: "),
        (
            ModuleNotFoundError("No module named 'cuda'", name="cuda"),
            "cuda: CuPy lacks a package: ModuleNotFoundError: No module named 'cuda': ",
        ),
    ],
)
def test_says_why_the_package_does_not_load(error: Exception, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xgrad_cupy, "import_module", raises(error))
    with pytest.raises(DeviceError) as caught:
        xgrad_cupy.CupyBackend()
    assert str(caught.value) == message + xgrad_cupy._INSTALL


def test_importing_the_plug_in_loads_no_array_library() -> None:
    code = "import sys, xgrad_cupy; print(*{'cupy', 'cupyx', 'array_api_compat'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert done.stdout.strip() == ""


# The functions that take the library as an argument, or only arrays, given NumPy and its arrays


def values_for(part: np.ndarray) -> np.ndarray:
    values = np.arange(1, part.size + 1).astype(part.dtype).reshape(part.shape)
    return values * np.asarray(1 - 2j, part.dtype) if part.dtype.kind == "c" else values


@pytest.mark.parametrize("dtype", "int8 uint16 int32 float16 float32 float64 complex64 complex128".split())
@pytest.mark.parametrize(
    "key",
    [
        np.asarray([0, 2, 0, -1]),
        (slice(None), np.asarray([1, 1])),
        (np.asarray([[1], [1]]), np.asarray([0, 0, 2])),
        np.asarray(1),
        np.zeros(0, np.int64),
        np.asarray([True, False, True]),
        (Ellipsis, None, slice(None, None, -1)),
        1,
    ],
    ids=repr,
)
def test_index_add_adds_up_repeated_indices(key: Any, dtype: str) -> None:
    x = np.ones((3, 3), dtype)
    values = values_for(x[key])
    expected = x.copy()
    np.add.at(expected, key, values)
    assert xgrad_cupy.index_add(np, x, key, values) is x
    np.testing.assert_array_equal(x, expected, strict=True)


def test_index_add_of_nothing() -> None:
    x = np.zeros((0, 3), np.float32)
    assert xgrad_cupy.index_add(np, x, np.zeros(0, np.int64), x) is x


def test_index_add_refuses_what_atomics_cannot_add() -> None:
    x = np.ones(3, np.longdouble)
    with pytest.raises(TypeError, match=f"index_add: expected .*, got {x.dtype}: cast to float32"):
        xgrad_cupy.index_add(np, x, np.asarray([0, 0]), x[:2])


@pytest.mark.parametrize("shapes", [((2, 3, 4), (4, 5)), ((0, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((4,), (4,))])
def test_matmul(shapes: tuple[tuple[int, ...], ...]) -> None:
    a, b = (np.arange(float(np.prod(shape))).reshape(shape) for shape in shapes)
    np.testing.assert_array_equal(xgrad_cupy._matmul(a, b), a @ b, strict=True)


class Placed(np.ndarray):
    """An array on a GPU, as far as `transfer` looks at one."""

    device: Any = None


@pytest.mark.parametrize(
    "x", [np.asarray(2.5), np.zeros((0, 3)), np.arange(6.0).reshape(2, 3).T], ids=["0-d", "0", "T"]
)
def test_a_transfer_to_another_gpu_keeps_the_shape(x: np.ndarray) -> None:
    def copied(x: np.ndarray) -> np.ndarray:
        assert x.flags.c_contiguous, "another layout cannot be copied between devices"
        return np.array(x)

    first, second = nullcontext(), nullcontext()
    stream = SimpleNamespace(record=lambda: None, wait_event=lambda event: None)
    backend: Any = object.__new__(xgrad_cupy.CupyBackend)
    cuda = SimpleNamespace(get_current_stream=lambda: stream)
    backend._cp = SimpleNamespace(cuda=cuda, ascontiguousarray=np.ascontiguousarray, asarray=copied)
    backend._devices = [first, second]
    placed = x.view(Placed)
    placed.device = first
    np.testing.assert_array_equal(backend.transfer(placed, 1), x, strict=True)


VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda xp, x: x[1:3],
    "row": lambda xp, x: x[1],
    "element": lambda xp, x: x[1, 2],
    "all": lambda xp, x: x[...],
    "new axis": lambda xp, x: x[None],
    "reshape": lambda xp, x: xp.reshape(x.mT, (-1,)),
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 0)),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=0),
    "squeeze": lambda xp, x: xp.squeeze(x[None], axis=0),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 10, 10)),
    "flip": lambda xp, x: xp.flip(x),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 1),
    "unstack": lambda xp, x: xp.unstack(x),
    "diagonal": lambda xp, x: xp.linalg.diagonal(x),
    "view of a view": lambda xp, x: x[1:].T[2:].reshape(8, 9, 1),
}


@pytest.mark.parametrize("look", VIEWS.values(), ids=VIEWS)
def test_whoever_looks_at_a_buffer_is_noticed(look: Callable[[Any, Any], Any]) -> None:
    """On arrays of CuPy's over memory that nobody reads, for which no GPU is needed."""
    cupy = pytest.importorskip("cupy")
    memory = cupy.cuda.UnownedMemory(1 << 40, 1 << 20, None, device_id=0)
    buffer = cupy.ndarray((1000,), np.float32, memptr=cupy.cuda.MemoryPointer(memory, 0))
    backend: Any = object.__new__(xgrad_cupy.CupyBackend)
    xp = backend.xp = xgrad_cupy.namespace(cupy)
    place: Any = SimpleNamespace(device=SimpleNamespace(xp=xp), dtype=np.float32)
    views = BufferLayout([(10, 10), (10, 10), ()], place).views(buffer)
    before = backend.buffer_refcount(buffer)
    seen = look(xp, views[1])
    meanwhile = backend.buffer_refcount(buffer)
    del seen
    afterwards = backend.buffer_refcount(buffer)  # in no assertion is an array that a failure would read
    assert afterwards == before < meanwhile


def test_matmul_writes_where_it_is_told_to() -> None:
    """As a derivative rule does where an optimizer keeps the gradient."""
    a, b, into = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4), np.empty((4, 2)).T
    xp = SimpleNamespace(matmul=xgrad_cupy._matmul, matrix_transpose=np.matrix_transpose)
    assert matmul_into(xp, a, b, into) is into
    np.testing.assert_array_equal(into, a @ b)


def test_cupy_reads_the_declarations_of_the_kernels() -> None:
    """They are compiled when they are first called, which takes a GPU."""
    cupy = pytest.importorskip("cupy")
    kernels = Kernels(cupy, xgrad_cupy.namespace(cupy))
    assert set(kernels.table()) >= set(OVERRIDABLE)


# TF32


@pytest.fixture
def with_tf32(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], xgrad.Device]:
    """Return a device of a GPU of some compute capability, on which nothing can be computed."""
    kinds = SimpleNamespace(COMPUTE_TYPE_DEFAULT=1, COMPUTE_TYPE_TF32=7)
    chosen = {np.float32: 1}
    core = SimpleNamespace(
        _routines_linalg=kinds, set_compute_type=chosen.__setitem__, get_compute_type=chosen.__getitem__
    )

    def made(capability: str) -> xgrad.Device:
        backend: Any = object.__new__(xgrad_cupy.CupyBackend)
        backend._cp, backend.xp, backend.array_type = SimpleNamespace(_core=core), SimpleNamespace(), np.ndarray
        backend._devices = [SimpleNamespace(id=0, compute_capability=capability)]
        monkeypatch.setattr(backend, "describe", lambda index: f"a GPU of {capability}", raising=False)
        return xgrad.Device.of("cuda", backend)

    return made


def test_tf32_is_off_until_it_is_turned_on(with_tf32: Callable[[str], xgrad.Device]) -> None:
    device = with_tf32("90")
    assert device.backend.tf32 is False
    xgrad.set_tf32(True, device)
    assert device.backend.tf32 is True
    xgrad.set_tf32(False, device)
    assert device.backend.tf32 is False


def test_tf32_needs_a_gpu_that_has_it(with_tf32: Callable[[str], xgrad.Device]) -> None:
    device = with_tf32("75")
    with pytest.raises(DeviceError, match=r"expected GPUs of compute capability .* or more, got a GPU of 75"):
        xgrad.set_tf32(True, device)
    xgrad.set_tf32(False, device)
    assert device.backend.tf32 is False


@pytest.mark.parametrize("nonsense", [1, "yes", None, np.True_])
def test_tf32_is_on_or_off(nonsense: Any) -> None:
    with pytest.raises(TypeError, match="set_tf32: expected True or False, got "):
        xgrad.set_tf32(nonsense, "cpu")


def test_the_setting_of_tf32_is_that_of_cupy() -> None:
    """As far as it goes without a GPU: the names are there, and mean what is said."""
    core = pytest.importorskip("cupy")._core
    kinds = core._routines_linalg
    core.set_compute_type(np.float32, kinds.COMPUTE_TYPE_DEFAULT)
    assert core.get_compute_type(np.float32) == kinds.COMPUTE_TYPE_DEFAULT != kinds.COMPUTE_TYPE_TF32


# The namespace


def used_names() -> Iterator[str]:
    """Yield what xgrad calls in a namespace, where it is written out as ``xp.name``, or declared by name."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name("xp") | ast.Attribute(attr="xp"), attr=name):
                    yield name
                case ast.Attribute(
                    value=ast.Attribute(value=ast.Name("xp") | ast.Attribute(attr="xp"), attr=group), attr=name
                ):
                    yield f"{group}.{name}"
                case ast.Call(
                    func=ast.Name("elementwise" | "_create"), args=[ast.Constant(str(name)), *_], keywords=keywords
                ) if "forward" not in [keyword.arg for keyword in keywords]:
                    yield name


def test_finds_the_names_that_are_used() -> None:
    assert {"matmul", "index_add", "exp", "bitwise_invert", "linspace", "zeros", "where"} <= set(used_names())


def test_the_namespace_has_what_is_used() -> None:
    """Without a GPU too, where CuPy is installed."""
    namespace = xgrad_cupy.namespace(pytest.importorskip("cupy"))
    missing = []
    for name in set(used_names()) - {"index_add", "kernels"}:  # which the backend adds, and special functions
        if name.partition(".")[0] == "special":
            continue
        found: Any = namespace
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is None and name != "newaxis":
            missing.append(name)
    assert not missing


def test_the_namespace_is_the_standards() -> None:
    strict = pytest.importorskip("array_api_strict")
    namespace = xgrad_cupy.namespace(pytest.importorskip("cupy"))
    for ours, theirs in (
        (namespace, strict),
        (namespace.linalg, strict.linalg),
        (namespace.fft, strict.fft),
    ):
        public = {name for name in theirs.__all__ if not name.startswith("_") and "trict" not in name}
        assert [name for name in public - {"Device"} if not hasattr(ours, name)] == []


@pytest.mark.parametrize("name", ["arange", "zeros", "ones", "full", "eye", "linspace", "empty", "asarray"])
def test_creation_functions_go_to_the_device_that_is_given(name: str) -> None:
    """Seen in the error of a GPU that is not there."""
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.is_available():
        pytest.skip("there is a GPU")
    arguments = {"full": (2, 1.0), "linspace": (0, 1, 3)}.get(name, (2,))
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        getattr(xgrad_cupy.namespace(cupy), name)(*arguments, device=cupy.cuda.Device(0))


def test_the_sign_of_complex_numbers_is_on_the_unit_circle() -> None:
    z = np.array([3 + 4j, -2j, 0, -1], dtype=np.complex64)
    got = xgrad_cupy._sign(np, z)
    np.testing.assert_allclose(got, [0.6 + 0.8j, -1j, 0, -1])
    assert got.dtype == np.complex64
    np.testing.assert_array_equal(xgrad_cupy._sign(np, z.real), [1, 0, 0, -1])
