"""Export to ONNX: forward and derivative rules run on ndonnx arrays, which make a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor, from_array
from xgrad.nn.module import Module
from xgrad.support import trees

__all__ = ["export"]


def export(
    function: Callable[..., Any],
    example: Any,
    path: str | Path,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
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
        One argument, or several. The file takes inputs of the same shapes and dtypes; arguments
        other than tensors become constants.
    path : str or Path
        The file; an existing one is replaced.
    input_names : sequence of str, optional
        A name for each tensor in the arguments, in order; by default ``input0``, ``input1``, ...
    output_names : sequence of str, optional
        A name for each result; by default ``output0``, ``output1``, ...

    Raises
    ------
    DeviceError
        If ndonnx is missing (``pip install 'xgrad[onnx]'``), or `function` uses a tensor that is
        neither an argument nor part of the module.
    TypeError, ValueError
        If the result contains anything but tensors, or the example contains no tensor; if the
        numbers of names and tensors differ, or the function reads the values of a tensor that
        depends on an input.
    AttributeError, NotImplementedError, TypeError
        If ndonnx lacks an op, an op for a dtype, or a dtype.

    Notes
    -----
    Random numbers, such as dropout masks, become constants. Checks of values are left out.

    Examples
    --------
    >>> import tempfile, xgrad
    >>> folder = tempfile.TemporaryDirectory()
    >>> xgrad.onnx.export(xgrad.nn.MLP([4, 8, 3]), xgrad.ones((10, 4)), f"{folder.name}/model.onnx")
    >>> def step(w, x, y):
    ...     w = w.detach().requires_grad_()
    ...     loss = ((x @ w - y) ** 2).mean()
    ...     (gradient,) = xgrad.autograd.grad(loss, [w])
    ...     return w.detach() - 0.1 * gradient, loss.detach()
    >>> example = xgrad.ones((3, 1)), xgrad.ones((8, 3)), xgrad.ones((8, 1))
    >>> xgrad.onnx.export(step, example, f"{folder.name}/step.onnx", output_names=["w", "loss"])
    >>> folder.cleanup()
    """
    device = Device("ndonnx")
    wrap: Any = device.array_type
    ndonnx = wrap.namespace()
    arguments = example if isinstance(example, tuple) else (example,)
    given = [x for _, x in trees.leaves(arguments)]
    names = iter(_names("input", input_names, sum(isinstance(x, Tensor) for x in given)))
    inputs: dict[str, Any] = {}

    def argument(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        dtype = device.backend.dtype(x.device.backend.numpy_dtype(x.dtype))
        name = next(names)
        inputs[name] = ndonnx.argument(shape=x.shape, dtype=dtype)
        return from_array(wrap(inputs[name]), device)

    arguments = trees.rebuild(arguments, [argument(x) for x in given])
    if not inputs:
        raise TypeError(
            f"onnx.export: expected an example with tensors, got {type(example).__name__}"
        )
    if isinstance(function, Module):
        function = deepcopy(function).eval().to(device)
        mode: Any = no_grad()
    else:
        mode = nullcontext()
    try:
        with mode, device.active():
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
    Path(path).write_bytes(ndonnx.build(inputs, outputs).SerializeToString())


def _names(kind: str, names: Sequence[str] | None, count: int) -> Sequence[str]:
    """Return the names of the tensors, given or numbered."""
    if names is None:
        return [f"{kind}{i}" for i in range(count)]
    if isinstance(names, str) or len(names) != count or len(set(names)) < count:
        raise ValueError(f"onnx.export: expected {count} different {kind}_names, got {names!r}")
    return names
