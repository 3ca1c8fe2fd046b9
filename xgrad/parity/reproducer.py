"""Programs that reproduce an error: the exact inputs, the call, and the expected number."""

from __future__ import annotations

from typing import Any

import numpy as np

import xgrad
from xgrad.parity.comparison import DIFFERENCES, UNITS, WorstError
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import floating, input_names, rounded

CALL = """\
# {title}
from math import inf, nan

import numpy as np

import xgrad
{imports}
device, dtype = "{device}", "{dtype}"
{inputs}


def op({names}):
    return {call}


result = op({names})
results = [result] if isinstance(result, xgrad.Tensor) else result
"""
BACKWARD = """\
seeds = [weights(y.shape, y.dtype, {start}) for y in results]
xgrad.autograd.backward(results, [xgrad.asarray(w, device=device) for w in seeds])
"""
COMPARISON = """\
expected, unit = {expected}, {unit!r}
print("got", got, "expected", expected, "{unit_name}", float(abs(got - expected) / unit))
"""
FINITE_DIFFERENCES = """\


def shifted(by):
    values = np.array({name}.detach().numpy())
    values{index} += by
    result = op({arguments})
    results = [result] if isinstance(result, xgrad.Tensor) else result
    return sum(np.vdot(w, y.numpy()).real for w, y in zip(seeds, results))


expected = (shifted(1e-6) - shifted(-1e-6)) / 2e-6
{imaginary}print("got", got, "expected", expected, "by differences, error", abs(got - expected))
"""


def reproducer(
    op: OpCase, sample: Sample, error: WorstError, number: int, unit: float, device: str, title: str
) -> str:
    """Return a program that reproduces an error on a device.

    The program applies the op, and prints the number it got, the expected number and the error. The
    error is in the result or gradient `number`, and is counted in `unit`.
    """
    sample = rounded(sample, np.dtype(error.dtype))
    names, leaves = input_names(op, sample), floating(op, sample) if op.differentiable else []
    function, imports = _function(op)
    backward = error.quantity != "value" or bool(error.note)
    if backward:
        imports = ["from xgrad.parity.run_op import weights", *imports]
    inputs = [
        f"{name} = {_input(x, sample.layout, name in leaves)}"
        for name, x in zip(names, sample.inputs, strict=True)
    ]
    arguments = [*names, *[f"{name}={_option(value)}" for name, value in sample.options.items()]]
    code = CALL.format(
        title=title,
        imports="".join(f"{line}\n" for line in imports),
        device=device,
        dtype=error.dtype,
        inputs="\n".join(inputs),
        names=", ".join(names),
        call=f"{function}({', '.join(arguments)})",
    )
    if backward:
        code += BACKWARD.format(start=sample.start)
    if error.note:
        return code
    index = "[" + (", ".join(map(str, error.place)) or "()") + "]"
    got = f"{leaves[number]}.grad.numpy()" if backward else f"results[{number}].detach().numpy()"
    code += f"got = {got}{index}\n"
    if error.device != DIFFERENCES:
        expected, unit_name = _number(error.expected), UNITS[error.unit]
        return code + COMPARISON.format(expected=expected, unit=unit, unit_name=unit_name)
    name = leaves[number]
    shifted = [f"{n}.detach()" if n in leaves else n for n in names]
    shifted[names.index(name)] = "xgrad.asarray(values, device=device)"
    imaginary = "expected += 1j * (shifted(1e-6j) - shifted(-1e-6j)) / 2e-6\n"
    imaginary *= sample.inputs[names.index(name)].dtype.kind == "c"
    return code + FINITE_DIFFERENCES.format(
        index=index, name=name, arguments=", ".join(shifted), imaginary=imaginary
    )


def describe_inputs(op: OpCase, sample: Sample, dtype: str) -> str:
    """Return the inputs of a sample as text; of large arrays only the first numbers."""
    sample = rounded(sample, np.dtype(dtype))

    def numbers(x: Any) -> str:
        if not isinstance(x, np.ndarray) or x.size <= 12:
            return repr(x.tolist() if isinstance(x, np.ndarray) else x)
        first = ", ".join(map(repr, x.reshape(-1)[:4].tolist()))
        return f"{first} and {x.size - 4} more in shape {x.shape}"

    arguments = [*zip(input_names(op, sample), sample.inputs, strict=True), *sample.options.items()]
    return ", ".join(f"{name} = {numbers(x)}" for name, x in arguments)


def _number(text: str) -> str:
    """Return an expression for a number in NumPy's format."""
    if text.endswith(("j", "j)")):
        number = complex(text)
        return f"np.clongdouble(complex({number.real!r}, {number.imag!r}))"
    return "np.longdouble({})".format({"True": 1, "False": 0}.get(text, repr(text)))


def _function(op: OpCase) -> tuple[str, list[str]]:
    """Return an expression for the op, and the imports that it needs."""
    name = getattr(op.fn, "__name__", "")
    for prefix, module in (("xgrad", xgrad), ("xgrad.ops", xgrad.ops)):
        if getattr(module, name, None) is op.fn:
            return f"{prefix}.{name}", []
    return f"find({op.name!r}).fn", ["from xgrad.parity.cases import find"]


def _input(x: Any, layout: str, grad: bool) -> str:
    if not isinstance(x, np.ndarray):
        return repr(x)
    if x.dtype.kind not in "fc":
        return _tensor(x)
    if layout == "transposed" and x.ndim > 1:
        text = f"xgrad.matrix_transpose({_tensor(x.mT)})"
    else:
        text = f"xgrad.flip({_tensor(np.flip(x))})" if layout == "reversed" else _tensor(x)
    return text + (".requires_grad_()" if grad else "")


def _tensor(x: np.ndarray) -> str:
    """Return an expression for a tensor of exactly these numbers."""
    complex_ = "np.result_type(dtype, np.complex64)"
    dtype = {"f": "dtype", "c": complex_}.get(x.dtype.kind, repr(str(x.dtype)))
    numbers = repr(x.tolist()) if x.size else f"[]).reshape({x.shape}"
    return f"xgrad.asarray(np.array({numbers}).astype({dtype}), device=device)"


def _option(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + "".join(f"{_option(part)}, " for part in value).rstrip() + ")"
    return _tensor(value) if isinstance(value, np.ndarray) else repr(value)
