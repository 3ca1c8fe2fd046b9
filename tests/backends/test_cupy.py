"""Parts of the CuPy backend: errors of its constructor, products compared with NumPy, namespace.

Tests that need CuPy run on CUDA emulated on the host, or on a GPU.
"""

from __future__ import annotations

import ast
import math
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
from xgrad.ops.matrix_products import matmul_into
from xgrad.optim.buffers import BufferLayout
from xgrad_cupy import opening

PACKAGE = Path(xgrad.__file__).parent


# Errors of the constructor


class FakeRuntimeError(RuntimeError):
    """CuPy's CUDARuntimeError."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def raises(error: Exception) -> Any:
    def fail(*args: Any, **options: Any) -> NoReturn:
        raise error

    return fail


def fake_cupy(devices: Any, driver: int = 13_000, ones: Any = None) -> ModuleType:
    """Return a module like CuPy that finds no GPU, or fails on the one that it finds."""
    module: Any = ModuleType("cupy")
    runtime = SimpleNamespace(
        getDeviceCount=devices, driverGetVersion=lambda: driver, runtimeGetVersion=lambda: 13_020
    )
    module.cuda, module.ones = SimpleNamespace(runtime=runtime), ones
    return module  # type: ignore[no-any-return]


INSTALL = opening._INSTALL
NO_GPU = "cuda: no GPU: see nvidia-smi, and whether CUDA_VISIBLE_DEVICES hides it"
MESSAGES = {
    "no package": (None, f"cuda: the package CuPy is missing: {INSTALL}"),
    "no driver": (
        fake_cupy(raises(FakeRuntimeError(35, "insufficient driver")), driver=0),
        "cuda: no NVIDIA driver: install one, and see that nvidia-smi finds the GPU",
    ),
    "old driver": (
        fake_cupy(raises(FakeRuntimeError(35, "insufficient driver")), driver=12_040),
        (
            "cuda: the NVIDIA driver knows CUDA up to 12.4, CuPy was built for 13.2: update the"
            " driver, or uninstall this CuPy and pip install 'xgrad[cuda12]'"
        ),
    ),
    "broken driver": (
        fake_cupy(raises(FakeRuntimeError(803, "driver mismatch"))),
        "cuda: the NVIDIA driver fails: FakeRuntimeError: driver mismatch: see nvidia-smi",
    ),
    "no device": (fake_cupy(raises(FakeRuntimeError(100, "no device"))), NO_GPU),
    "0 devices": (fake_cupy(lambda: 0), NO_GPU),
    "no library": (
        fake_cupy(lambda: 1, ones=raises(OSError("libnvrtc.so.13 not found\nsearched in\n- here"))),
        (
            "cuda: there is a GPU, but CuPy fails on it: OSError: libnvrtc.so.13 not found: if"
            f" CUDA's libraries are missing, {INSTALL}"
        ),
    ),
}


@pytest.mark.parametrize(("module", "message"), MESSAGES.values(), ids=MESSAGES)
def test_constructor_names_what_is_missing(
    module: ModuleType, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module)
    with pytest.raises(DeviceError) as caught:
        xgrad_cupy.CupyBackend()
    assert str(caught.value) == message


BANNER = (
    "\n====\nFailed to import CuPy.\n\nOriginal error:\n  ImportError: libcudart.so.13: no such"
    " file\n====\n"
)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ImportError(BANNER),
            "cuda: CuPy does not load: ImportError: libcudart.so.13: no such file: ",
        ),
        (RuntimeError(), "cuda: CuPy does not load: RuntimeError: "),
        (
            ModuleNotFoundError("No module named 'cuda'", name="cuda"),
            "cuda: CuPy lacks a package: ModuleNotFoundError: No module named 'cuda': ",
        ),
    ],
)
def test_constructor_names_why_cupy_does_not_load(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "import_module", raises(error))
    with pytest.raises(DeviceError) as caught:
        xgrad_cupy.CupyBackend()
    assert str(caught.value) == message + INSTALL


def test_import_of_plug_in_loads_no_array_library() -> None:
    code = (
        "import sys, xgrad_cupy; print(*{'cupy', 'cupyx', 'array_api_compat'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    assert done.stdout.strip() == ""


# Functions that take the library as an argument, with NumPy for it


def values_for(part: np.ndarray) -> np.ndarray:
    values = np.arange(1, part.size + 1).astype(part.dtype).reshape(part.shape)
    return values * np.asarray(1 - 2j, part.dtype) if part.dtype.kind == "c" else values


@pytest.mark.parametrize(
    "dtype", "int8 uint16 int32 float16 float32 float64 complex64 complex128".split()
)
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


def test_index_add_to_no_elements_does_nothing() -> None:
    x = np.zeros((0, 3), np.float32)
    assert xgrad_cupy.index_add(np, x, np.zeros(0, np.int64), x) is x


def test_index_add_without_atomics_for_the_dtype_is_refused() -> None:
    x = np.ones(3, np.longdouble)
    with pytest.raises(TypeError, match=f"index_add: expected .*, got {x.dtype}: cast to float32"):
        xgrad_cupy.index_add(np, x, np.asarray([0, 0]), x[:2])


STACKS = [
    ((2, 3, 4), (4, 5)),
    ((0, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((4,), (4,)),
    ((2, 1, 3, 4), (6, 4, 5)),
]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(
    "shapes", [*STACKS, ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((2, 2, 0, 4), (2, 2, 4, 5))]
)
def test_matmul_is_that_of_numpy(
    shapes: tuple[tuple[int, ...], ...], dtype: str, cuda: xgrad.Device
) -> None:
    a, b = (np.arange(float(np.prod(shape))).reshape(shape).astype(dtype) for shape in shapes)
    x, y = xgrad.asarray(a, device=cuda), xgrad.asarray(b, device=cuda)
    np.testing.assert_array_equal(xgrad.matmul(x, y).cpu().numpy(), a @ b, strict=True)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
@pytest.mark.parametrize("tf32", [False, True])
def test_stacks_are_multiplied_without_copies_and_with_the_bits_of_a_graph(
    tf32: bool, dtype: str, cuda: xgrad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    cp, rng, computed = pytest.importorskip("cupy"), np.random.default_rng(0), []
    multiply = cp.cuda.cublas.gemmStridedBatchedEx
    monkeypatch.setattr(
        cp.cuda.cublas,
        "gemmStridedBatchedEx",
        lambda *args: (computed.append(args[-2]), multiply(*args)),
    )
    x, y = [
        xgrad.asarray(rng.normal(size=(3, 40, 40)).astype(dtype), device=cuda) for _ in range(2)
    ]
    pool = cp.cuda.MemoryPool()
    xgrad.set_tf32(tf32, cuda)
    try:
        with cp.cuda.using_allocator(pool.malloc):
            eager = xgrad.matmul(x, y.mT)
        step = xgrad.capture(xgrad.matmul)
        replays = [step(x, y.mT).cpu().numpy().tobytes() for _ in range(3)]
    finally:
        xgrad.set_tf32(False, cuda)
    assert set(computed) == {77 if tf32 else 68}  # CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F
    assert pool.total_bytes() < 2 * x.size * x.element_size()  # the result alone
    expected = x.cpu().numpy() @ y.cpu().numpy().swapaxes(-1, -2)
    tolerance = 1e-2 if tf32 else 1e-4  # TF32 has 10 bits of mantissa
    np.testing.assert_allclose(eager.cpu().numpy(), expected, rtol=tolerance, atol=tolerance)
    assert replays == [eager.cpu().numpy().tobytes()] * 3 and step.refusal is None


def test_matmul_writes_to_out(cuda: xgrad.Device) -> None:
    """As a derivative rule does for the gradient buffer of an optimizer."""
    a = cuda.xp.reshape(cuda.xp.arange(6.0), (2, 3))
    b = cuda.xp.ones((3, 4))
    out = cuda.xp.empty((4, 2)).T
    assert matmul_into(cuda.xp, a, b, out) is out
    assert out.tolist() == [[3.0] * 4, [12.0] * 4]


class OnGpu(np.ndarray):
    """An array on a GPU, for `transfer`."""

    device: Any = None


@pytest.mark.parametrize(
    "x", [np.asarray(2.5), np.zeros((0, 3)), np.arange(6.0).reshape(2, 3).T], ids=["0-d", "0", "T"]
)
def test_transfer_to_another_gpu_keeps_the_shape(x: np.ndarray) -> None:
    def copied(x: np.ndarray) -> np.ndarray:
        assert x.flags.c_contiguous, "CuPy copies no other layout between devices"
        return np.array(x)

    first, second = nullcontext(), nullcontext()
    stream = SimpleNamespace(record=lambda: None, wait_event=lambda event: None)
    backend: Any = object.__new__(xgrad_cupy.CupyBackend)
    cuda = SimpleNamespace(get_current_stream=lambda: stream)
    backend._cp = SimpleNamespace(cuda=cuda, ascontiguousarray=np.ascontiguousarray, asarray=copied)
    backend.devices = [first, second]
    array = x.view(OnGpu)
    array.device = first
    np.testing.assert_array_equal(backend.transfer(array, 1), x, strict=True)


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
def test_view_of_buffer_shares_its_memory(
    look: Callable[[Any, Any], Any], cuda: xgrad.Device
) -> None:
    backend, xp = cuda.backend, cuda.xp
    buffer, other = (xp.zeros(1000, dtype=np.float32) for _ in range(2))
    placement: Any = SimpleNamespace(device=cuda, dtype=np.float32)
    view = look(xp, BufferLayout([(10, 10), (10, 10), ()], placement).views(buffer)[1])
    for part in view if isinstance(view, (list, tuple)) else [view]:
        assert backend.shares_memory(buffer, part) and not backend.shares_memory(other, part)


# TF32


def test_tf32_is_off_by_default_and_can_be_set(cuda: xgrad.Device) -> None:
    assert cuda.backend.tf32 is False
    xgrad.set_tf32(True, cuda)
    assert cuda.backend.tf32 is True
    xgrad.set_tf32(False, cuda)
    assert cuda.backend.tf32 is False


def test_tf32_is_refused_on_old_gpu(cuda: xgrad.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda.backend, "devices", [SimpleNamespace(id=0, compute_capability="75")])
    with pytest.raises(DeviceError, match=r"expected GPUs of compute capability .* or more, got "):
        xgrad.set_tf32(True, cuda)
    xgrad.set_tf32(False, cuda)
    assert cuda.backend.tf32 is False


@pytest.mark.parametrize("nonsense", [1, "yes", None, np.True_])
def test_tf32_other_than_bool_is_refused(nonsense: Any) -> None:
    with pytest.raises(TypeError, match="set_tf32: expected True or False, got "):
        xgrad.set_tf32(nonsense, "cpu")


# The namespace


def used_names() -> Iterator[str]:
    """Yield the functions of a namespace that xgrad calls, as ``xp.name`` or by a declaration."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name("xp") | ast.Attribute(attr="xp"), attr=name):
                    yield name
                case ast.Attribute(
                    value=ast.Attribute(
                        value=ast.Name("xp") | ast.Attribute(attr="xp"), attr=group
                    ),
                    attr=name,
                ):
                    yield f"{group}.{name}"
                case ast.Call(
                    func=ast.Name("elementwise" | "_create"),
                    args=[ast.Constant(str(name)), *_],
                    keywords=keywords,
                ) if "forward" not in [keyword.arg for keyword in keywords]:
                    yield name


def test_namespace_has_the_used_functions(cuda: xgrad.Device) -> None:
    names = set(used_names())
    assert {"matmul", "index_add", "exp", "bitwise_invert", "linspace", "zeros", "where"} <= names
    missing = []
    for name in names - {"kernels", "newaxis"}:  # of the backend; None
        function: Any = cuda.xp
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is None:
            missing.append(name)
    assert not missing


def test_namespace_has_the_functions_of_the_standard(cuda: xgrad.Device) -> None:
    strict, own = pytest.importorskip("array_api_strict"), cuda.xp
    for namespace, standard in ((own, strict), (own.linalg, strict.linalg), (own.fft, strict.fft)):
        public = {
            name for name in standard.__all__ if not name.startswith("_") and "trict" not in name
        }
        assert [name for name in public - {"Device"} if not hasattr(namespace, name)] == []


@pytest.mark.parametrize(
    "name", ["arange", "zeros", "ones", "full", "eye", "linspace", "empty", "asarray"]
)
def test_creation_function_uses_its_device(name: str, cuda: xgrad.Device) -> None:
    """By the error for a GPU that does not exist."""
    cp = pytest.importorskip("cupy")
    arguments = {"full": (2, 1.0), "linspace": (0, 1, 3)}.get(name, (2,))
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError):
        getattr(cuda.xp, name)(*arguments, device=cp.cuda.Device(len(cuda.backend.devices)))


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
def test_vecdot_has_the_dtype_of_its_operands_and_the_same_bits_in_a_graph(
    dtype: str, cuda: xgrad.Device
) -> None:
    rng = np.random.default_rng(0)
    a, b = [
        (rng.normal(size=(3, 40)) * 9 + (1j if dtype[0] == "c" else 0)).astype(dtype)
        for _ in range(2)
    ]
    x, y = xgrad.asarray(a, device=cuda), xgrad.asarray(b, device=cuda)
    eager, step = xgrad.vecdot(x, y), xgrad.capture(xgrad.vecdot)
    np.testing.assert_allclose(
        eager.cpu().numpy(), (a.conj() * b).sum(-1, dtype=dtype), rtol=1e-4, strict=True
    )
    assert [step(x, y).cpu().numpy().tobytes() for _ in range(2)] == [
        eager.cpu().numpy().tobytes()
    ] * 2


@pytest.mark.parametrize("value", [-0.0, complex(0.0, -0.0)])
def test_scalar_zero_keeps_its_sign(value: complex, cuda: xgrad.Device) -> None:
    moved = xgrad.asarray(value, device=cuda)
    assert moved.shape == () and repr(moved.cpu().numpy()[()]) == repr(
        xgrad.asarray(value).numpy()[()]
    )
    x = xgrad.zeros(2, dtype=moved.dtype, device=cuda)
    x[...] = moved
    for filled in (x, xgrad.full((2,), value, device=cuda)):
        assert repr(filled.cpu().numpy()) == repr(xgrad.full((2,), value).numpy())


@pytest.mark.xfail(
    strict=True,
    reason="CuPy writes numbers that equal 0 by memset: x = cupy.ones(1); x[...] = -0.0",
)
def test_assigned_number_minus_zero_keeps_its_sign(cuda: xgrad.Device) -> None:
    x = xgrad.ones(2, device=cuda)
    x[...] = -0.0
    assert np.signbit(x.cpu().numpy()).all()


def test_time_between_marks_is_in_seconds() -> None:
    recorded: list[Any] = []

    class Event:
        def record(self) -> None:
            recorded.append(self)

    backend: Any = object.__new__(xgrad_cupy.CupyBackend)
    backend._cp = SimpleNamespace(
        cuda=SimpleNamespace(Event=Event, get_elapsed_time=lambda start, end: 250.0)
    )
    backend.devices = [nullcontext()]
    marks = [backend.mark(0), backend.mark(0)]
    assert marks == recorded and backend.elapsed(*marks) == 0.25


# Special functions

#: Functions for which CuPy has no kernel, or one that overflows; see `xgrad_cupy.special`.
BY_SCIPY_ON_CUDA = (
    "betaincc hyp1f1 hyp2f1 i0e i1e iv ive jv k0e k1e kv kve spence stdtr stdtrit yv".split()
)
WITHOUT_SCIPY = """
import sys
sys.modules['scipy'] = None
import numpy as np
import xgrad
from xgrad import special
x = xgrad.asarray(np.array([0.25, 0.5]), device='cuda', requires_grad=True)
special.erf(x).sum().backward()
print(*x.grad.tolist())
for name in special.__all__:
    for count in range(1, 5):
        try:
            getattr(special, name)(*[x.detach()] * count)
        except (TypeError, ValueError):
            continue
        except ImportError:
            print(name, end=' ')
        break
print()
try:
    special.erf(xgrad.asarray([1j], device='cuda'))
except ImportError as error:
    print(error)
"""


@pytest.mark.usefixtures("cuda")
def test_only_functions_that_cupy_lacks_need_scipy_on_cuda() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SCIPY],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    slopes, needing, error = done.stdout.splitlines()
    expected = [2 / math.sqrt(math.pi) * math.exp(-x * x) for x in (0.25, 0.5)]
    np.testing.assert_allclose([float(x) for x in slopes.split()], expected, rtol=1e-14)
    assert needing.split() == BY_SCIPY_ON_CUDA
    assert error.startswith("special.erf: the package SciPy, whose kernel it is, is missing")
