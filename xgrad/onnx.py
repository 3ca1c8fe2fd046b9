"""Export to ONNX: forward and derivative rules run on ndonnx arrays, which make a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor, from_array
from xgrad.nn.module import Module
from xgrad.onnx_shapes import merged, trial_sizes
from xgrad.support import trees

__all__ = ["export"]


def export(
    function: Callable[..., Any],
    example: Any,
    path: str | Path,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Mapping[str, Mapping[int, str]] | None = None,
) -> None:
    """Write a model, or a function of tensors such as a training step, to an ONNX file.

    Parameters
    ----------
    function : Module or callable
        Takes and returns tensors, in containers. A module is called in evaluation mode, without
        being changed, and its parameters and buffers become constants in the file. Any other
        function may use only its arguments: pass parameters, as in the second example. If the
        function computes gradients, the file computes them, too.
    example : Tensor or tuple
        One argument, or several. The file takes inputs of the same dtypes, and of the same shapes
        but for `dynamic_axes`; arguments other than tensors become constants.
    path : str or Path
        The file; an existing one is replaced.
    input_names : sequence of str, optional
        A name for each tensor in the arguments, in order; by default ``input0``, ``input1``, ...
    output_names : sequence of str, optional
        A name for each result; by default ``output0``, ``output1``, ...
    dynamic_axes : mapping, optional
        Names of the sizes that may differ from the example's, by the name of the input and the
        axis: ``{"input0": {0: "batch"}}``. Axes with the same name have the same size. At most two
        names.

    Raises
    ------
    DeviceError
        If ndonnx is missing (``pip install 'xgrad[onnx]'``), or `function` uses a tensor that is
        neither an argument nor part of the module.
    TypeError, ValueError
        If the result contains anything but tensors, or the example contains no tensor; if the
        numbers of names and tensors differ, or the function reads the values of a tensor that
        depends on an input. If `dynamic_axes` names no axis of an input, or the function depends on
        a size in a way that cannot be written to a file.
    AttributeError, NotImplementedError, TypeError
        If ndonnx lacks an op, an op for a dtype, or a dtype.

    Notes
    -----
    Random numbers, such as dropout masks, become constants. Checks of values are left out. With
    `dynamic_axes` the function is called three times, with two names five times, with other sizes
    each time: see `xgrad.onnx_shapes`.

    Examples
    --------
    >>> import tempfile, xgrad
    >>> folder = tempfile.TemporaryDirectory()
    >>> xgrad.onnx.export(
    ...     xgrad.nn.MLP([4, 8, 3]), xgrad.ones((10, 4)), f"{folder.name}/model.onnx"
    ... )
    >>> def step(w, x, y):
    ...     w = w.detach().requires_grad_()
    ...     loss = ((x @ w - y) ** 2).mean()
    ...     (gradient,) = xgrad.autograd.grad(loss, [w])
    ...     return w.detach() - 0.1 * gradient, loss.detach()
    >>> example = xgrad.ones((3, 1)), xgrad.ones((8, 3)), xgrad.ones((8, 1))
    >>> xgrad.onnx.export(
    ...     step, example, f"{folder.name}/step.onnx", output_names=["w", "loss"]
    ... )
    >>> xgrad.onnx.export(
    ...     xgrad.nn.MLP([4, 8, 3]),
    ...     xgrad.ones((10, 4)),
    ...     f"{folder.name}/any.onnx",
    ...     input_names=["x"],
    ...     dynamic_axes={"x": {0: "batch"}},
    ... )
    >>> folder.cleanup()
    """
    arguments = example if isinstance(example, tuple) else (example,)
    tensors = [x for _, x in trees.leaves(arguments) if isinstance(x, Tensor)]
    if not tensors:
        raise TypeError(
            f"onnx.export: expected an example with tensors, got {type(example).__name__}"
        )
    names = _names("input", input_names, len(tensors))
    shapes = dict(zip(names, [x.shape for x in tensors], strict=True))
    axes = _checked_axes(shapes, dynamic_axes or {})
    device = Device("ndonnx")
    if isinstance(function, Module):
        function = deepcopy(function).eval().to(device)
        mode: Any = no_grad()
    else:
        mode = nullcontext()

    def build(sizes: Mapping[str, int]) -> Any:
        lengths = {
            name: [
                sizes[axes[name][i]] if i in axes.get(name, ()) else n for i, n in enumerate(shape)
            ]
            for name, shape in shapes.items()
        }
        with mode:
            return _graph(function, device, arguments, lengths, output_names)

    symbols = list(dict.fromkeys([x for part in axes.values() for x in part.values()]))
    if symbols:
        trials = trial_sizes(symbols, [n for shape in shapes.values() for n in shape])
        model = merged([build(sizes) for sizes in trials], trials, axes)
    else:
        model = build({})
    Path(path).write_bytes(model.SerializeToString())


def _graph(
    function: Callable[..., Any],
    device: Any,
    arguments: Any,
    shapes: Mapping[str, Sequence[int]],
    output_names: Sequence[str] | None,
) -> Any:
    """Return the graph of a function for inputs of the given names and shapes."""
    wrap: Any = device.array_type
    ndonnx = wrap.namespace()
    names, inputs = iter(shapes), dict[str, Any]()

    def argument(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        dtype = device.backend.dtype(x.device.backend.numpy_dtype(x.dtype))
        name = next(names)
        inputs[name] = ndonnx.argument(shape=tuple(shapes[name]), dtype=dtype)
        return from_array(wrap(inputs[name]), device)

    arguments = trees.rebuild(arguments, [argument(x) for _, x in trees.leaves(arguments)])
    try:
        with device.active():
            result = function(*arguments)
    except DeviceError as error:
        error.add_note(
            "onnx.export: a function computes with its arguments alone: pass other tensors as"
            " arguments"
        )
        raise
    outs = list(trees.leaves(result))
    for where, out in outs:
        if not isinstance(out, Tensor):
            raise TypeError(
                f"onnx.export: expected tensors as results, got {type(out).__name__} at"
                f" result{where}"
            )
    output_names = _names("output", output_names, len(outs))
    # copies, since an output of a graph must not be an input, and a tensor has only one name
    pairs = zip(output_names, outs, strict=True)
    outputs = {name: ndonnx.asarray(out._data.native, copy=True) for name, (_, out) in pairs}
    return ndonnx.build(inputs, outputs)


def _checked_axes(
    shapes: Mapping[str, Sequence[int]], dynamic_axes: Mapping[str, Mapping[int, str]]
) -> dict[str, dict[int, str]]:
    """Return the names of sizes by input and axis, which is not negative."""
    axes: dict[str, dict[int, str]] = {}
    for name, part in dynamic_axes.items():
        if name not in shapes:
            raise ValueError(
                f"onnx.export: expected names of inputs in dynamic_axes, which are"
                f" {', '.join(shapes)}, got {name!r}"
            )
        count = len(shapes[name])
        if not isinstance(part, Mapping) or not all(
            isinstance(axis, int) and -count <= axis < count and type(size) is str
            for axis, size in part.items()
        ):
            raise ValueError(
                f"onnx.export: expected names of sizes by axis in dynamic_axes, such as"
                f" {{{name!r}: {{0: 'batch'}}}}, for an input with {count} axes, got {part!r}"
            )
        axes[name] = {axis % count: size for axis, size in part.items()}
    symbols = {x for part in axes.values() for x in part.values()}
    if len(symbols) > 2 or not all(map(str.isidentifier, symbols)):
        raise ValueError(
            "onnx.export: expected at most two names of sizes in dynamic_axes, of letters and"
            f" digits, got {sorted(symbols)}"
        )
    return axes


def _names(kind: str, names: Sequence[str] | None, count: int) -> Sequence[str]:
    """Return the names of the tensors, given or numbered."""
    if names is None:
        return [f"{kind}{i}" for i in range(count)]
    if isinstance(names, str) or len(names) != count or len(set(names)) < count:
        raise ValueError(f"onnx.export: expected {count} different {kind}_names, got {names!r}")
    return names
