"""Fused kernels of captured steps on the emulation: values, launches, and source.

Values are compared with eager steps on the emulation and on `cpu`; the source is compiled by
NVIDIA's compiler NVRTC.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

if "CUDA_WITHOUT_GPU" not in os.environ:
    pytest.skip("needs the emulation of CUDA: make test-cuda-without-gpu", allow_module_level=True)

import cupy as cp

import xgrad
from benchmarks.model_problems import problem
from benchmarks.models import QUICK
from benchmarks.peers.models_xgrad import MODELS
from tests.cuda_without_gpu.counters import totals
from xgrad import nn, optim
from xgrad_cupy import fused_programs
from xgrad_cupy.kernels import copies, sums
from xgrad_cupy.kernels.c_types import C_TYPES
from xgrad_cupy.kernels.gelu import gelu_kernels
from xgrad_cupy.kernels.random_bits import RandomBits
from xgrad_cupy.kernels.raw import RawKernels
from xgrad_cupy.kernels.table import fused_functions, kernels

#: Launches of kernels in a captured step of each model: fused, and one for each call.
LAUNCHES = {
    "MLP": (16, 27),
    "LSTM": (42, 48),
    "transformer encoder": (49, 59),
    "GPT": (93, 178),
    "LeNet": (42, 52),
    "ResNet": (159, 251),
}


def training(
    name: str, device: str, native: bool | None = None, capture: bool = True
) -> tuple[Any, Any, nn.Module]:
    """Return the step of a model, its batch and the model."""
    xgrad.manual_seed(0)
    if name == "MLP":
        rng = np.random.default_rng(0)
        module: Any = nn.Sequential(
            nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 15), nn.ReLU(), nn.Linear(15, 10)
        )
        x, y = rng.standard_normal((8, 30)).astype(np.float32), rng.integers(0, 10, 8)
    else:
        model = QUICK[name]["model"]
        sizes = {key: n for key, n in QUICK[name].items() if key != "model"}
        data = problem(model, **sizes)
        module = MODELS[model](**sizes)
        module.load_state_dict(
            {key: value.astype(np.float32) for key, value in data.weights.items()}, strict=False
        )
        x, y = data.x.astype(np.float32) if data.x.dtype.kind == "f" else data.x, data.y
    module = module.to(device)
    make: Any = optim.Adam if name == "MLP" else optim.SGD
    optimizer = make(module.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    batch = [xgrad.asarray(part, device=device) for part in (x, y)]
    return xgrad.capture(step, native=native) if capture else step, batch, module


def trained(
    name: str, device: str, native: bool | None = None, capture: bool = True
) -> tuple[list[Any], int]:
    """Return losses and parameters after five steps, and the number of kernels of the last step."""
    step, batch, module = training(name, device, native, capture)
    losses = [step(*batch) for _ in range(4)]
    before = totals()[0]
    losses.append(step(*batch))
    launches = totals()[0] - before
    assert not getattr(step, "refusal", "")
    return [x.detach().to("cpu").numpy() for x in (*losses, *module.parameters())], launches


@pytest.mark.parametrize("name", LAUNCHES)
def test_fused_training_has_the_bits_of_eager_training_in_fewer_launches(name: str) -> None:
    eager, _ = trained(name, "cuda", capture=False)
    on_cpu, _ = trained(name, "cpu", capture=False)
    fused, launches = trained(name, "cuda")
    single, more = trained(name, "cuda", native=False)
    for x, y, z, on_host in zip(eager, fused, single, on_cpu, strict=True):
        assert x.tobytes() == y.tobytes() == z.tobytes()
        np.testing.assert_allclose(y, on_host, rtol=1e-4, atol=1e-5)
    assert launches <= LAUNCHES[name][0]
    assert more <= LAUNCHES[name][1]


FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 3e38, 1e-30, 0.3]
SPECIAL: dict[str, Any] = {
    "float32": np.array(FLOATS, np.float32),
    "float64": np.array([*FLOATS[:7], 1e308, 1e-300, 0.3]),
    "int32": np.array([0, 1, -1, 7, -8, 2**31 - 1, -(2**31)], np.int32),
    "int64": np.array([0, 1, -1, 7, -8, 2**63 - 1, -(2**63)]),
    "bool": np.array([False, True]),
}
UNARY = (
    "abs negative sqrt exp log tanh sin floor ceil sign square isnan isinf isfinite logical_not"
    " relu sigmoid".split()
)
BINARY = (
    "add subtract multiply divide maximum minimum less less_equal greater greater_equal equal"
    " not_equal pow atan2 logaddexp copysign hypot logical_and logical_or logical_xor bitwise_and"
    " bitwise_or bitwise_xor remainder".split()
)


def results(function: Callable[..., Any], dtype: str, capture: bool) -> list[Any] | None:
    """Return results of a function of special values of a dtype, called twice in one group.

    None if the function does not take that dtype.
    """
    values = SPECIAL[dtype]
    pairs = [part.ravel() for part in np.meshgrid(values, values)]
    arrays = [xgrad.asarray(part, device="cuda") for part in pairs]

    def step(x: Any, y: Any) -> Any:
        first = function(x, y)
        return first, function(y, x), xgrad.where(x == y, first, first)

    call: Any = xgrad.capture(step) if capture else step
    try:
        found = [call(*arrays) for _ in range(2)][-1]
    except (TypeError, ValueError, NotImplementedError):
        return None
    assert not getattr(call, "refusal", "")
    return [(str(x.dtype), x.to("cpu").numpy().tobytes()) for x in found]


@pytest.mark.parametrize("dtype", SPECIAL)
@pytest.mark.parametrize("name", [*UNARY, *BINARY, "clip", "astype", "scalars"])
def test_special_values_of_fused_expressions_have_the_bits_of_eager_mode(
    name: str, dtype: str
) -> None:
    if name == "remainder" and "int" in dtype:
        pytest.skip("a division of integers by 0 ends the process on the host")
    function: Any = getattr(xgrad, name, None)
    if name in UNARY:
        function = lambda x, y, op=function: op(x)  # noqa: E731
    elif name == "clip":
        function = lambda x, y: xgrad.clip(x, 0, 1)  # noqa: E731
    elif name == "astype":
        function = lambda x, y: x.astype(xgrad.float32).astype(xgrad.float64)  # noqa: E731
    elif name == "scalars":
        function = lambda x, y: (2 * x - y) * 3  # noqa: E731
    elif name in ("maximum", "minimum") and "float" in dtype:
        # Of two zeros, which one the host's fmax returns depends on the code around it
        function = lambda x, y, op=function: op(x, y) + 0.0  # noqa: E731
    expected = results(function, dtype, capture=False)
    assert results(function, dtype, capture=True) == expected


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1025,), (3, 5), (2, 3, 4)])
def test_broadcast_and_strided_operands_of_a_group(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, row = rng.standard_normal(shape), rng.standard_normal(shape[-1:])
    arrays = [
        xgrad.asarray(part, device="cuda")
        for part in (x, row, rng.standard_normal((*shape, 2)), x.T.copy())
    ]

    def step(x: Any, row: Any, pairs: Any, turned: Any) -> Any:
        total = x * row + pairs[..., 1] - 2
        flat = total.reshape((-1,)) * 0.5
        return total, xgrad.permute_dims(turned, tuple(range(turned.ndim))[::-1]) * total, flat + 1

    captured = xgrad.capture(step)
    for _ in range(2):
        found = captured(*arrays)
    for one, other in zip(found, step(*arrays), strict=True):
        assert one.to("cpu").numpy().tobytes() == other.to("cpu").numpy().tobytes()


def test_writes_and_reads_around_them_keep_their_order() -> None:
    state = xgrad.zeros(6, device="cuda")

    def step(x: Any) -> Any:
        before = state * 2 + x  # reads what the write below changes
        state[...] = state + x
        after = state * 2 + x
        state[:3] += after[3:]  # two parts of the memory that a group writes to
        return before, after, state + 0, state[::-1] * after

    def run(step: Any) -> list[bytes]:
        with xgrad.no_grad():
            state[...] = 1.0
        x = xgrad.arange(6, dtype=xgrad.float32, device="cuda")
        found = [part for _ in range(3) for part in step(x)]
        return [part.to("cpu").numpy().tobytes() for part in (*found, state)]

    captured = xgrad.capture(step, state=[state])
    assert run(step) == run(captured) == run(xgrad.capture(step, state=[state], native=False))
    assert not captured.refusal


def test_zero_that_fills_an_array_has_no_sign_as_in_eager_mode() -> None:
    def step(x: Any) -> Any:
        filled = x * 2
        filled[...] = -0.0
        return filled * x, filled

    x = xgrad.ones(3, device="cuda")
    captured = xgrad.capture(step)
    captured(x)
    for one, other in zip(captured(x), step(x), strict=True):
        assert one.to("cpu").numpy().tobytes() == other.to("cpu").numpy().tobytes()


def _nvrtc() -> Path | None:
    """Return the library of the wheel nvidia-cuda-nvrtc, in folder NVRTC_WHEEL, or installed."""
    spec = importlib.util.find_spec("nvidia")
    installed = [str(Path(x).parent) for x in (spec and spec.submodule_search_locations) or ()]
    folders = [os.environ.get("NVRTC_WHEEL", ""), *installed]
    found = [
        path
        for folder in filter(None, folders)
        for path in Path(folder).glob("nvidia/cu13/lib/libnvrtc.so.13")
    ]
    return found[0] if found else None


ARCHITECTURES = "-arch=sm_75", "-arch=sm_90", "-arch=sm_120"
needs_nvrtc = pytest.mark.skipif(
    _nvrtc() is None, reason="needs the wheel nvidia-cuda-nvrtc: NVRTC_WHEEL=FOLDER"
)


@needs_nvrtc
def test_nvrtc_compiles_the_kernels_of_all_models(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {}
    called: list[Any] = []
    call: Any = fused_programs.FusedKernel.__call__

    def noted(self: Any, *arrays: Any) -> Any:
        called.append(self._kernel)
        return call(self, *arrays)

    def made(*args: Any, **options: Any) -> Any:
        called.append(cp.ElementwiseKernel(*args, **options))
        return called[-1]

    monkeypatch.setattr(fused_programs.FusedKernel, "__call__", noted)
    for name in LAUNCHES:
        trained(name, "cuda")
    for kernel in gelu_kernels(SimpleNamespace(ElementwiseKernel=made)).values():
        for dtype in ("float32", "float64"):
            kernel(cp.ones(3, dtype))
    monkeypatch.setattr(
        cp.cuda.compiler,
        "_compile_module_with_cache",
        lambda source, options, **_: sources.update({source: options}),
    )
    for kernel in called:
        for code in kernel.cached_codes.values():
            cp._core.core.compile_with_cache(code, options=("--fmad=false",))
    assert len(sources) > 10
    _compile_for_all_architectures(list(sources.items()))


@needs_nvrtc
def test_nvrtc_compiles_the_kernels_of_layers_and_of_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For elements of both dtypes, and indices of 32 and 64 bits."""
    made: list[tuple[str, tuple[str, ...]]] = []
    init: Any = RawKernels.__init__

    def noted(self: Any, cp: Any, source: str, options: tuple[str, ...] = ()) -> None:
        init(self, cp, source, options)
        made.append((source, options))

    monkeypatch.setattr(RawKernels, "__init__", noted)
    xp = xgrad.Device("cuda").xp
    kernels(cp, xp, RandomBits(cp))
    fused_functions(cp)
    sums.sum_of(cp, cp.sum)
    sums._joins.__wrapped__(cp)
    copies._joint_copies.__wrapped__(cp, copies.MAX_ARRAYS)
    layers = len(made)
    for name in LAUNCHES:
        trained(name, "cuda")
    assert layers >= 10 and any("_and_sum" in source for source, _ in made[layers:])
    sources = [
        (
            f"typedef {element} T;\ntypedef {index} Index;\ntypedef {target} Class;\n{source}",
            options,
        )
        for source, options in dict.fromkeys(made)
        for element in ("float", "double")
        for index in ("int", "long long")
        for target in (("unsigned char", "long long") if "Class" in source else ("int",))
    ]
    _compile_for_all_architectures(sources)


def _compile_for_all_architectures(sources: list[tuple[str, Sequence[str]]]) -> None:
    flags = "-ftz=true", "--device-as-default-execution-space"
    for architecture in ARCHITECTURES:
        _compiled([(source, [[*options, *flags, architecture]]) for source, options in sources])


@needs_nvrtc
def test_machine_code_of_expressions_does_not_depend_on_contraction() -> None:
    names, sources = [], []
    for name in sorted(fused_programs._EXACT | fused_programs._SINGLE):
        ufunc = fused_programs.fusion(cp).ufunc(name)
        for op in ufunc._ops.ops:
            types = [C_TYPES.get(str(x), "") for x in (*op.in_types, *op.out_types)]
            floats = {str(x) for x in op.in_types} - {"bool"}
            if floats == {"float32"} or (
                floats == {"float64"} and name not in fused_programs._SINGLE
            ):
                names.append((name, types))
                sources.append(_source(ufunc, op.routine, types))
    assert len(names) > 80
    variants = [
        ["-ftz=true", ARCHITECTURES[1], option] for option in ("--fmad=true", "--fmad=false")
    ]
    same = _compiled([(source, variants) for source in sources])
    assert [x for x, equal in zip(names, same, strict=True) if not equal] == []


def _source(ufunc: Any, routine: str, types: list[str]) -> str:
    """Return a kernel of a ufunc alone."""
    *inputs, out = [
        f"{name}*{side}" for name, side in zip(types, "abcy"[: len(types) - 1] + "y", strict=True)
    ]
    lines = [
        f"typedef {name} in{i}_type; const {name} in{i} = {'abc'[i]}[i];"
        for i, name in enumerate(types[:-1])
    ]
    lines += [f"typedef {types[-1]} out0_type; {types[-1]} out0;", f"{routine};", "y[i] = out0;"]
    body = " ".join(["int i = threadIdx.x;", *lines])
    return (
        f'{ufunc._preamble}\nextern "C" __global__ void kernel({", ".join([*inputs, out])}) {{'
        f" {body} }}"
    )


def _compiled(compilations: list[Any]) -> list[bool]:
    """Compile by NVRTC; return for each source whether all options give the same machine code."""
    command = [sys.executable, str(Path(__file__).with_name("real_nvrtc.py")), str(_nvrtc())]
    alone = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    text = json.dumps(compilations)
    done = subprocess.run(
        command, input=text, env=alone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    same: list[bool] = json.loads(done.stdout)
    return same
