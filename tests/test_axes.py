"""Errors of axes name the function, the argument, the expected and the given value.

They are compared with patterns, for all ops of the op table with an axis, and for methods.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, function
from xgrad.parity.cases import OP_CASES

NAMES = ("axis", "axes", "axis1", "axis2", "source", "destination")
#: Wrong values, with the exception of each and a part of its message.
WRONG = [
    (99, IndexError, "expected {name} from "), (-99, IndexError, "expected {name} from "),
    ("a", TypeError, "for {name}, got 'a'"), (1.5, TypeError, "for {name}, got 1.5"),
    ((0, "a"), TypeError, r"for {name}, got \(0, 'a'\)"),
]  # fmt: skip
SEVERAL = [
    ((0, 99), IndexError, r"expected {name} from .*, got \(0, 99\)"),
    ((0, 0), ValueError, r"expected different axes for {name}, got \(0, 0\)"),
]
#: Ops of several axes that accept the same axis twice, as NumPy's do.
REPEATABLE = ("roll", "fft.fftshift", "fft.ifftshift")
#: Ops along one axis of two inputs.
PAIRED = ("vecdot", "cross")


def as_tensors(x: Any) -> Any:
    if isinstance(x, (list, tuple)) and x and isinstance(x[0], np.ndarray):
        return [as_tensors(part) for part in x]
    return xgrad.asarray(x) if isinstance(x, np.ndarray) else x


def calls() -> Iterator[tuple[str, Any, tuple[Any, ...], dict[str, Any], str]]:
    """Yield each op of the op table with an axis among its options.

    It comes with its first sample that has two axes.
    """
    done = set()
    for case in OP_CASES:
        parameters = inspect.signature(case.fn).parameters
        for sample in case.samples:
            first = as_tensors(sample.inputs[0])
            first = first[0] if isinstance(first, list) else first
            for name in NAMES:
                known = name in sample.options or name in parameters
                if known and (case.name, name) not in done and getattr(first, "ndim", 0) > 1:
                    done.add((case.name, name))
                    inputs = tuple([as_tensors(x) for x in sample.inputs])
                    options = {key: as_tensors(x) for key, x in sample.options.items()}
                    yield case.name, case.fn, inputs, options, name


CALLS = [call for call in calls() if call[0].partition(" ")[0] != "tensordot"]


def test_the_op_table_has_the_functions_with_axes() -> None:
    assert len({name.partition(" ")[0] for name, *_ in CALLS}) > 55


@pytest.mark.parametrize(
    ("op", "fn", "inputs", "options", "name"), CALLS, ids=lambda x: x if type(x) is str else ""
)
def test_wrong_axis_is_named_with_the_function_and_what_it_expects(
    op: str, fn: Any, inputs: tuple[Any, ...], options: dict[str, Any], name: str
) -> None:
    def refused(axis: Any, kind: type[Exception], message: str) -> None:
        if kind is IndexError and op.partition(" ")[0] in PAIRED:
            kind, message = ValueError, "expected an axis that both have, counted from the end, got"
        with pytest.raises(kind) as caught:
            fn(*inputs, **{**options, name: axis})
        assert re.match(rf"\w+: .*{message.format(name=name)}", str(caught.value)), str(
            caught.value
        )

    for wrong in WRONG:
        refused(*wrong)
    try:
        fn(*inputs, **{**options, name: (0, 99)})
    except TypeError:  # it takes one axis
        refused((0, 1), TypeError, r"expected an int for {name}, got \(0, 1\)")
    except IndexError:
        refused(*SEVERAL[0])
        if op.partition(" ")[0] not in REPEATABLE:
            refused(*SEVERAL[1])


X = xgrad.ones((2, 3))
#: Calls of methods, and their errors; `x` is of shape (2, 3), `i` one integer.
METHODS = [
    *[
        (
            f"x.transpose({a})",
            f"IndexError: transpose: expected dim{i} from -2 to 1 for x of shape (2, 3), got {got}",
        )
        for a, i, got in (("0, 5", 1, 5), ("5, 0", 0, 5), ("-3, 0", 0, -3))
    ],
    (
        "x.swapaxes(0, 5)",
        "IndexError: transpose: expected dim1 from -2 to 1 for x of shape (2, 3), got 5",
    ),
    ("x.transpose(0, 'a')", "TypeError: transpose: expected an int for dim1, got 'a'"),
    (
        "x.flatten(0, 7)",
        "IndexError: flatten: expected end_dim from -2 to 1 for x of shape (2, 3), got 7",
    ),
    (
        "x.flatten(-3)",
        "IndexError: flatten: expected start_dim from -2 to 1 for x of shape (2, 3), got -3",
    ),
    (
        "x.flatten(1, 0)",
        (
            "ValueError: flatten: expected a start_dim up to end_dim, got 1 and 0 for x of shape"
            " (2, 3)"
        ),
    ),
    (
        "x.gather(5, i)",
        "IndexError: gather: expected dim from -2 to 1 for x of shape (2, 3), got 5",
    ),
    ("x.gather('a', i)", "TypeError: gather: expected an int for dim, got 'a'"),
    (
        "x.sum().gather(0, i)",
        "IndexError: gather: expected x with at least one axis, got shape () and dim 0",
    ),
    *[
        (f"x.{call}", f"IndexError: {op}: expected axis from -2 to 1 for x of shape (2, 3), got 5")
        for call, op in (
            ("amax(5)", "max"),
            ("amin(5)", "min"),
            ("sum(5)", "sum"),
            ("mean(5)", "mean"),
            ("std(5)", "std"),
            ("argmax(5)", "argmax"),
            ("argsort(5)", "argsort"),
            ("any(5)", "any"),
            ("cumsum(5)", "cumulative_sum"),
            ("diff(1, 5)", "diff"),
            ("index_select(5, i[0])", "take"),
            ("softmax(5)", "softmax"),
            ("roll(1, 5)", "roll"),
            ("logsumexp(5)", "logsumexp"),
            ("norm(2, 5)", "vector_norm"),
            ("unbind(5)", "unstack"),
            ("repeat_interleave(2, 5)", "repeat"),
            ("squeeze(5)", "squeeze"),
        )
    ],
    (
        "x.flip(0, 5)",
        "IndexError: flip: expected axis from -2 to 1 for x of shape (2, 3), got (0, 5)",
    ),
    (
        "x.unsqueeze(5)",
        "IndexError: expand_dims: expected axis from -3 to 2 for x of shape (2, 3), got 5",
    ),
    (
        "x.movedim(0, 5)",
        "IndexError: moveaxis: expected destination from -2 to 1 for x of shape (2, 3), got 5",
    ),
    (
        "x.movedim((0, 1), 0)",
        "ValueError: moveaxis: expected as many places as axes, got (0, 1) to (0,)",
    ),
    (
        "x.movedim((0, 0), (0, 1))",
        "ValueError: moveaxis: expected different axes for source, got (0, 0)",
    ),
    (
        "x.permute(0)",
        "ValueError: permute_dims: expected axes of length 2 for x of shape (2, 3), got (0,)",
    ),
    ("x.permute(0, 0)", "ValueError: permute_dims: expected different axes for axes, got (0, 0)"),
    (
        "x.squeeze(1)",
        "ValueError: squeeze: expected axes of length 1, got axis 1 of x of shape (2, 3)",
    ),
    (
        "xp.tensordot(x, x, axes=((0,), (7,)))",
        "IndexError: tensordot: expected axes from -2 to 1 for x2, got (7,)",
    ),
    (
        "xp.tensordot(x, x, axes=((0,),))",
        "TypeError: tensordot: expected an int or two sequences of ints for axes",
    ),
    (
        "xp.ops.put(x, x, xp.permute_dims, axes=(0, 5))",
        "IndexError: put: expected axes from -2 to 1 for x … (0, 5)",
    ),
    (
        "xp.stack([x, x], axis=3)",
        "IndexError: stack: expected axis from -3 to 2 for arrays[0] of shape (2, 3), got 3",
    ),
    ("xp.special.logsumexp(x, axis=5, b=2.0)", "IndexError: … expected axis from -2 to 1"),
    ("xp.sort(x.sum())", "ValueError: sort: expected x with at least one axis"),
    (
        "xp.cumulative_sum(x.sum(), axis=0)",
        "ValueError: cumulative_sum: expected x with at least one axis",
    ),
]


@pytest.mark.parametrize(("call", "expected"), METHODS)
def test_wrong_axis_of_a_method_is_named(call: str, expected: str) -> None:
    check_error(call, expected, x=X, i=xgrad.asarray([[0]]))


def test_error_of_a_function_of_the_user_with_an_axis_is_its_own() -> None:
    def forward(xp: Any, x: Any, *, axis: str) -> Any:
        raise ValueError(f"no {axis}")

    with pytest.raises(ValueError, match="Named: no rows"):
        function("Named", forward, lambda xp, g: g)(X, axis="rows")
