"""Code to paste that shows an error: the exact inputs, the call, and what was expected."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import xgrad
from xgrad.parity.evaluate import floating, input_names, rounded
from xgrad.parity.row import Op, Sample


class Fault(NamedTuple):
    """Where a sample shows an error: in which element of which result or gradient, or by raising an "error"."""

    device: str
    dtype: str
    quantity: str
    number: int
    place: tuple[int, ...]
    expected: str = ""
    unit: str = "error in ULP"
    scale: float = 1.0


def reproducer(op: Op, sample: Sample, fault: Fault, title: str, by_differences: bool = False) -> str:
    """Return a program that applies the op, and prints what it got, what was expected, and how far off that is."""
    sample = rounded(sample, np.dtype(fault.dtype))
    names, leaves = input_names(op, sample), floating(op, sample) if op.differentiable else []
    called, imports = _spelled(op)
    if fault.quantity != "value":
        imports = ["from xgrad.parity.evaluate import weights", *imports]
    lines = [f"# {title}", "from math import inf, nan", "", "import numpy as np", "", "import xgrad", *imports, ""]
    lines.append(f'device, dtype = "{fault.device}", "{fault.dtype}"')
    lines += [
        f"{name} = {_input(x, sample.layout, name in leaves)}" for name, x in zip(names, sample.inputs, strict=True)
    ]
    given = ", ".join([*names, *[f"{name}={_option(value)}" for name, value in sample.options.items()]])
    lines += ["", "", f"def op({', '.join(names)}):", f"    return {called}({given})", "", ""]
    lines.append(f"result = op({', '.join(names)})")
    lines.append("results = [result] if isinstance(result, xgrad.Tensor) else result")
    place = "[" + (", ".join(map(str, fault.place)) or "()") + "]"
    if fault.quantity == "value":
        lines.append(f"got = results[{fault.number}].detach().numpy(){place}")
    else:
        lines.append(f"seeds = [weights(y.shape, y.dtype, {sample.start}) for y in results]")
        lines.append("xgrad.autograd.backward(results, [xgrad.asarray(w, device=device) for w in seeds])")
        if fault.quantity == "error":
            return "\n".join(lines) + "\n"
        lines.append(f"got = {leaves[fault.number]}.grad.numpy(){place}")
    if by_differences:
        name = leaves[fault.number]
        moved = sample.inputs[names.index(name)]
        arguments = ", ".join(
            "xgrad.asarray(values, device=device)" if n == name else f"{n}.detach()" if n in leaves else n
            for n in names
        )
        lines += [
            "", "", "def moved(by):", f"    values = np.array({name}.detach().numpy())", f"    values{place} += by",
            f"    result = op({arguments})",
            "    results = [result] if isinstance(result, xgrad.Tensor) else result",
            "    return sum(np.vdot(w, y.numpy()).real for w, y in zip(seeds, results))", "", "",
            "expected = (moved(1e-6) - moved(-1e-6)) / 2e-6",
            *(["expected += 1j * (moved(1e-6j) - moved(-1e-6j)) / 2e-6"] if moved.dtype.kind == "c" else []),
            'print("got", got, "expected", expected, "by differences, error", abs(got - expected))',
        ]  # fmt: skip
    else:
        lines.append(f"expected, unit = {_number(fault.expected)}, {fault.scale!r}")
        error = "float(abs(got - expected) / unit)"
        lines.append(f'print("got", got, "expected", expected, "{fault.unit}", {error})')
    return "\n".join(lines) + "\n"


def described(op: Op, sample: Sample, dtype: str) -> str:
    """Return the inputs of a sample in numbers, the first few where there are many; the code has all of them."""
    sample = rounded(sample, np.dtype(dtype))

    def numbers(x: Any) -> str:
        if not isinstance(x, np.ndarray) or x.size <= 12:
            return repr(x.tolist() if isinstance(x, np.ndarray) else x)
        first = ", ".join(map(repr, x.reshape(-1)[:4].tolist()))
        return f"{first} and {x.size - 4} more in shape {x.shape}"

    given = [*zip(input_names(op, sample), sample.inputs, strict=True), *sample.options.items()]
    return ", ".join(f"{name} = {numbers(x)}" for name, x in given)


def _number(text: str) -> str:
    """Return an expression for a number that is given as NumPy prints it."""
    if text.endswith(("j", "j)")):
        number = complex(text)
        return f"np.clongdouble(complex({number.real!r}, {number.imag!r}))"
    return "np.longdouble({})".format({"True": 1, "False": 0}.get(text, repr(text)))


def _spelled(op: Op) -> tuple[str, list[str]]:
    """Return how the op is called, and what must be imported for it."""
    name = getattr(op.fn, "__name__", "")
    for prefix, module in (("xgrad", xgrad), ("xgrad.ops", xgrad.ops)):
        if getattr(module, name, None) is op.fn:
            return f"{prefix}.{name}", []
    return f"find({op.name!r}).fn", ["from xgrad.parity.table import find"]


def _input(x: Any, layout: str, grad: bool) -> str:
    if not isinstance(x, np.ndarray):
        return repr(x)
    if x.dtype.kind not in "fc":
        return f"xgrad.asarray({_array(x)}, device=device)"
    if layout == "transposed" and x.ndim > 1:
        text = f"xgrad.matrix_transpose(xgrad.asarray({_array(x.mT)}, device=device))"
    elif layout == "reversed":
        text = f"xgrad.flip(xgrad.asarray({_array(np.flip(x))}, device=device))"
    else:
        text = f"xgrad.asarray({_array(x)}, device=device)"
    return text + (".requires_grad_()" if grad else "")


def _array(x: np.ndarray) -> str:
    """Return an array as an expression that gives exactly its numbers."""
    complex_ = "np.result_type(dtype, np.complex64)"
    dtype = {"f": "dtype", "c": complex_}.get(x.dtype.kind, repr(str(x.dtype)))
    numbers = repr(x.tolist()) if x.size else f"[]).reshape({x.shape}"
    return f"np.array({numbers}).astype({dtype})"


def _option(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + "".join(f"{_option(part)}, " for part in value).rstrip() + ")"
    return f"xgrad.asarray({_array(value)}, device=device)" if isinstance(value, np.ndarray) else repr(value)
