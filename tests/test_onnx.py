"""Exported ONNX files, run by onnxruntime, compared with xgrad.

The subjects are values and gradients of ops, models, and training steps.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import nn
from xgrad.cli.models import lenet
from xgrad.data import DataError, mnist
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import options, outputs, quiet, rounded, run_op, tensors, weights
from xgrad.support import trees

#: A row of the op table for each kind of rule; XGRAD_WHOLE_TABLE=1 runs all.
ROWS = """
divide expm1 sum prod max var cumulative_sum concat tril getitem setitem take where matmul softmax
layer_norm batch_norm gelu cross_entropy conv2d max_pool2d scaled_dot_product_attention
""".split()
WHOLE = os.environ.get("XGRAD_WHOLE_TABLE") == "1"
CPU = xgrad.Device("cpu")


def run(onnxruntime: Any, path: Path, inputs: list[Any]) -> list[np.ndarray]:
    """Return the results of a file; inputs that it does not use are not passed."""
    session = onnxruntime.InferenceSession(path)
    known = {x.name for x in session.get_inputs()}
    given = [x for x in inputs if isinstance(x, xgrad.Tensor)]
    named = {f"input{i}": np.asarray(x.numpy()) for i, x in enumerate(given)}
    return list(session.run(None, {name: x for name, x in named.items() if name in known}))


def values_and_gradients(op: OpCase, sample: Sample, has_gradient: bool) -> Any:
    """Return a function of inputs that returns the values of an op and its gradients."""

    def call(*inputs: Any) -> Any:
        device = next(x.device for x in inputs if isinstance(x, xgrad.Tensor))
        wanted = [
            x
            for x in inputs
            if isinstance(x, xgrad.Tensor) and has_gradient and "float" in str(x.dtype).lower()
        ]
        leaves = {id(x): x.detach().requires_grad_() for x in wanted}
        outs = outputs(op.fn(*[leaves.get(id(x), x) for x in inputs], **options(sample, device)))
        if not has_gradient:
            return outs
        seeds = [
            xgrad.asarray(weights(x.shape, np.dtype("float32"), sample.start), device=device)
            for x in outs
        ]
        gradients = xgrad.autograd.grad(outs, list(leaves.values()), seeds)
        return [x.detach() for x in (*outs, *gradients)]

    return call


@pytest.mark.parametrize("op", [op for op in OP_CASES if WHOLE or op.name in ROWS], ids=str)
def test_op_and_its_gradients_run_in_onnxruntime(
    op: OpCase, onnxruntime: Any, tmp_path: Path
) -> None:
    if op.missing():
        pytest.skip(f"needs {op.missing()}")
    for sample in [rounded(sample, np.dtype("float32")) for sample in op.samples[:3]]:
        inputs = tensors(sample, CPU, np.dtype("float32"), False)
        if any(isinstance(x, xgrad.Tensor) and not x.size for x in inputs):
            continue  # onnxruntime refuses some empty arrays
        with quiet():
            expected = run_op(op, sample, CPU, "float32")
            call = values_and_gradients(op, sample, bool(expected.gradients))
            try:
                xgrad.onnx.export(call, tuple(inputs), tmp_path / "op.onnx")
            except (
                AttributeError,
                IndexError,
                NotImplementedError,
                TypeError,
                ValueError,
            ) as error:
                if op.name in ROWS:
                    raise
                pytest.skip(f"ONNX or ndonnx lacks it: {str(error)[:100]}")
        results = run(onnxruntime, tmp_path / "op.onnx", inputs)
        for got, want in zip(results, [*expected.values, *expected.gradients], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
            assert (got.shape, got.dtype) == (want.shape, want.dtype)


def images(count: int) -> xgrad.Tensor:
    """Return test images of MNIST, or random ones."""
    try:
        data = mnist(download=False)
    except DataError:
        return xgrad.random.rand((count, 784))
    return xgrad.asarray(data.test.images[:count].reshape((count, 784)), dtype=xgrad.float32) / 255


@pytest.mark.parametrize("name", ["MLP", "LeNet", "transformer"])
def test_model_on_all_test_images_is_within_1e5(
    name: str, onnxruntime: Any, tmp_path: Path
) -> None:
    xgrad.manual_seed(0)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(28, 4, 32), 2)
    models = {
        "MLP": lambda: nn.MLP([784, 128, 10]),
        "LeNet": lambda: lenet((28, 28), 10),
        "transformer": lambda: nn.Sequential(
            nn.Unflatten(1, (28, 28)), encoder, nn.Flatten(), nn.Linear(784, 10)
        ),
    }
    model, x = models[name]().eval(), images(10_000)
    xgrad.onnx.export(
        model, x[:200], tmp_path / "model.onnx", input_names=["image"], output_names=["logits"]
    )
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for start in range(0, 10_000, 200):
        batch = x[start : start + 200]
        (got,) = session.run(["logits"], {"image": batch.numpy()})
        with xgrad.no_grad():
            np.testing.assert_allclose(got, model(batch).numpy(), rtol=0, atol=1e-5)


def test_training_step_with_momentum_run_100_times_follows_the_losses(
    onnxruntime: Any, tmp_path: Path
) -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 9, 3))

    def step(params: Any, velocities: Any, x: Any, y: Any) -> Any:
        params = {name: p.detach().requires_grad_() for name, p in params.items()}
        loss = nn.functional.cross_entropy(nn.utils.functional_call(net, params, x), y)
        gradients = xgrad.autograd.grad(loss, list(params.values()))
        velocities = [0.9 * v + g for v, g in zip(velocities, gradients, strict=True)]
        moved = [p.detach() - 0.05 * v for p, v in zip(params.values(), velocities, strict=True)]
        return dict(zip(params, moved, strict=True)), velocities, loss.detach()

    generator = np.random.default_rng(0)
    x = xgrad.asarray(generator.normal(size=(32, 1, 7, 7)), dtype=xgrad.float32)
    y = xgrad.asarray(generator.integers(0, 3, 32))
    params = {name: p.detach() for name, p in net.named_parameters()}
    velocities = [xgrad.zeros_like(p) for p in params.values()]
    xgrad.onnx.export(step, (params, velocities, x, y), tmp_path / "step.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "step.onnx")
    state = [p.numpy() for p in (*params.values(), *velocities)]
    losses = []
    for _ in range(100):
        arrays = [*state, x.numpy(), y.numpy()]
        *state, got = session.run(None, {f"input{i}": array for i, array in enumerate(arrays)})
        params, velocities, loss = step(params, velocities, x, y)
        np.testing.assert_allclose(got, loss.numpy(), rtol=1e-4)
        losses.append(float(got))
    assert losses[-1] < losses[0] / 2


def test_file_computes_in_evaluation_mode_and_the_model_stays_as_it_was(
    onnxruntime: Any, tmp_path: Path
) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    x = xgrad.ones((5, 3))
    xgrad.onnx.export(net, x, tmp_path / "net.onnx")
    assert net.training and str(net[0].weight.device) == "cpu"
    (got,) = run(onnxruntime, tmp_path / "net.onnx", [x])
    np.testing.assert_allclose(got, net.eval()(x).detach().numpy(), rtol=1e-5)


@pytest.mark.usefixtures("onnxruntime")
@pytest.mark.parametrize(
    ("function", "example", "names", "error", "message"),
    [
        (lambda x: float(x.sum()), xgrad.ones(3), {}, ValueError, "values of a tensor are read"),
        (lambda x: x * xgrad.ones(3), xgrad.ones(3), {}, xgrad.DeviceError, "ndonnx"),
        (
            lambda x: (x, 1),
            xgrad.ones(3),
            {},
            TypeError,
            r"expected tensors as results, got int at result\[1\]",
        ),
        (lambda x: x, 3.0, {}, TypeError, "expected an example with tensors, got float"),
        (
            lambda x: x,
            xgrad.ones(3),
            {"input_names": ["a", "b"]},
            ValueError,
            "expected 1 different input_names",
        ),
        (
            lambda x: x,
            xgrad.ones(3),
            {"output_names": "a"},
            ValueError,
            "expected 1 different output_names",
        ),
        (xgrad.linalg.inv, xgrad.ones((2, 2)), {}, AttributeError, "ndonnx has no inv"),
    ],
    ids=["value", "other tensor", "result", "example", "input names", "output names", "inv"],
)
def test_what_cannot_be_exported_is_refused(
    function: Any, example: Any, names: Any, error: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        xgrad.onnx.export(function, example, tmp_path / "x.onnx", **names)
    assert not list(tmp_path.iterdir())


# Inputs of any size


class Reader(nn.Module):
    """Scores from the last output of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.scores = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        """Return the scores, and the state."""
        out, state = self.lstm(x)
        return self.scores(out[:, -1]), state


def floats(*shape: int) -> xgrad.Tensor:
    """Return random numbers."""
    return xgrad.asarray(np.random.default_rng(sum(shape)).normal(size=shape), dtype=xgrad.float32)


def run_with_sizes(
    onnxruntime: Any, path: Path, function: Any, inputs: tuple[Any, ...]
) -> list[np.ndarray]:
    """Compare the results of a file with a function, and return them."""
    given = [x for _, x in trees.leaves(inputs)]
    session = onnxruntime.InferenceSession(path)
    names = [x.name for x in session.get_inputs()]
    got = session.run(None, dict(zip(names, [x.numpy() for x in given], strict=True)))
    expected = [x.detach().numpy() for _, x in trees.leaves(function(*inputs))]
    for result, want in zip(got, expected, strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5)
        assert (result.shape, result.dtype) == (want.shape, want.dtype)
    return list(got)


MODELS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "MLP": (lambda: nn.MLP([4, 8, 3]), (4,)),
    "CNN": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1),
            nn.BatchNorm2d(3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(3, 4, 3),
            nn.GroupNorm(2, 4),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(4, 2),
        ),
        (1, 8, 8),
    ),
    "LSTM": (Reader, (3, 3)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16), (5, 8)),
}


@pytest.mark.parametrize("name", MODELS)
def test_model_exported_once_runs_on_batches_of_any_size(
    name: str, onnxruntime: Any, tmp_path: Path
) -> None:
    xgrad.manual_seed(0)
    make, shape = MODELS[name]
    model, path = make().eval(), tmp_path / "model.onnx"
    xgrad.onnx.export(
        model, floats(2, *shape), path, input_names=["x"], dynamic_axes={"x": {0: "batch"}}
    )
    for count in (1, 2, 3, 33):
        run_with_sizes(onnxruntime, path, model, (floats(count, *shape),))
    session = onnxruntime.InferenceSession(path)
    assert session.get_inputs()[0].shape == ["batch", *shape]
    assert all("batch" in x.shape for x in session.get_outputs())


def test_attention_runs_on_batches_and_sequences_of_any_size(
    onnxruntime: Any, tmp_path: Path
) -> None:
    xgrad.manual_seed(0)
    model, path = nn.TransformerEncoderLayer(4, 2, 8).eval(), tmp_path / "model.onnx"
    axes = {"input0": {0: "batch", -2: "time"}}
    xgrad.onnx.export(model, floats(2, 3, 4), path, dynamic_axes=axes)
    for count, length in [(1, 1), (2, 3), (3, 2), (7, 20)]:
        run_with_sizes(onnxruntime, path, model, (floats(count, length, 4),))


def test_training_step_runs_on_batches_of_any_size(onnxruntime: Any, tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))

    def step(params: Any, x: Any, y: Any) -> Any:
        params = {name: p.detach().requires_grad_() for name, p in params.items()}
        loss = nn.functional.cross_entropy(nn.utils.functional_call(net, params, x), y)
        gradients = xgrad.autograd.grad(loss, list(params.values()))
        moved = [p.detach() - 0.1 * g for p, g in zip(params.values(), gradients, strict=True)]
        return moved, loss.detach()

    params = {name: p.detach() for name, p in net.named_parameters()}

    def inputs(count: int) -> tuple[Any, ...]:
        return params, floats(count, 4), xgrad.asarray(np.arange(count) % 3)

    axes = {"input4": {0: "batch"}, "input5": {0: "batch"}}
    xgrad.onnx.export(step, inputs(6), tmp_path / "step.onnx", dynamic_axes=axes)
    for count in (1, 6, 17):
        run_with_sizes(onnxruntime, tmp_path / "step.onnx", step, inputs(count))


BY_SIZE: dict[str, Any] = {
    "mean": lambda x: (x.mean(), x.sum(axis=0), x - x.mean(axis=0)),
    "variance": lambda x: xgrad.var(x, axis=0),
    "softmax": lambda x: nn.functional.softmax(x, axis=0),
    "positions": lambda x: x * xgrad.arange(x.shape[0], device=x.device, dtype=x.dtype)[:, None],
    "zeros": lambda x: xgrad.concat([x, xgrad.zeros((x.shape[0], 2), device=x.device)], axis=1),
    "products": lambda x: xgrad.tril(x @ x.T),
    "reshape": lambda x: x.reshape((-1, 1)) * 2,
    "joined": lambda x: xgrad.concat([x, x]),
    "sliced": lambda x: (x[1:], x[:-1], x[::2, 0], x[-1]),
    "size": lambda x: x * x.shape[0] + 1 / x.shape[0],
    "written": lambda x: xgrad.ops.index_add(x * 1, 0, x[0]),
}


@pytest.mark.parametrize("name", BY_SIZE)
def test_function_of_sizes_is_exported_for_any_size_or_refused(
    name: str, onnxruntime: Any, tmp_path: Path
) -> None:
    function, path = BY_SIZE[name], tmp_path / "function.onnx"
    xgrad.onnx.export(function, floats(4, 3), path, dynamic_axes={"input0": {0: "n"}})
    for count in (2, 4, 9):
        run_with_sizes(onnxruntime, path, function, (floats(count, 3),))


REFUSED_SIZES: list[tuple[Any, Any, str]] = [
    (lambda x: x * x.shape[0] ** 2, {"input0": {0: "n"}}, "depends on the size of n in a way"),
    (lambda x: sum(xgrad.unstack(x)), {"input0": {0: "n"}}, "the number of operators depends on"),
    (lambda x: x, {"x": {0: "n"}}, "names of inputs in dynamic_axes, which are input0, got 'x'"),
    (lambda x: x, {"input0": [0]}, "such as {'input0': {0: 'batch'}}, for an input with 2 axes"),
    (lambda x: x, {"input0": {2: "n"}}, "such as {'input0': {0: 'batch'}}, for an input with 2"),
    (lambda x: x, {"input0": {0: "a b"}}, "at most two names of sizes in dynamic_axes"),
]


@pytest.mark.parametrize(("function", "axes", "reason"), REFUSED_SIZES)
def test_size_that_cannot_be_any_is_refused(
    function: Any, axes: Any, reason: str, onnxruntime: Any, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        xgrad.onnx.export(function, floats(4, 3), tmp_path / "x.onnx", dynamic_axes=axes)
    assert not (tmp_path / "x.onnx").exists()
