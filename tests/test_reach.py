"""Gradients through SciPy and scikit-learn: each call path in `benchmarks.reach`.

Gradients flow, or the list has a reason. Each subject is tried in a process of its own, since SciPy
reads SCIPY_ARRAY_API when it is imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from benchmarks.harness import Options, Worker
from benchmarks.peers.xgrad_peer import pullback
from benchmarks.reach import unlisted
from benchmarks.reach.needs import recorded
from benchmarks.reach.path import FLOWS, OTHER_VALUES, constant, exactly, normal, path, verdict
from benchmarks.reach.verdicts import SUBJECTS

OPTIONS = Options().filled(threads=1)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_gradients_flow_or_the_list_has_a_reason(subject: str) -> None:
    for package in ["scipy", "scikit-learn"][: 1 + subject.startswith("sklearn")]:
        if reason := unlisted(package):
            pytest.skip(reason)
    worker = Worker(
        "benchmarks.reach.verdicts:Verdicts",
        {"target": "xgrad_peer:pullback", "subject": subject},
        OPTIONS,
    )
    try:
        verdicts, stops = worker.ask("verdicts"), worker.ask("stops")
    finally:
        worker.close()
    assert {
        name: reason for name, reason in verdicts.items() if reason != FLOWS and name not in stops
    } == {}
    assert {name for name in stops if verdicts[name] == FLOWS} == set(), (
        "these flow: remove their reasons"
    )
    assert {name for name in stops if verdicts[name] == OTHER_VALUES} == set(), (
        "no reason excuses another value"
    )


# The check itself


def detached(x: Any) -> Any:
    return x.detach() if hasattr(x, "detach") else x


@pytest.mark.parametrize(
    ("fn", "inputs", "expected"),
    [
        (lambda x: x * x, [normal(3)], FLOWS),
        (lambda x, c: (x * c, x), [normal(3), constant([1.0, 2.0, 3.0])], FLOWS),
        (lambda x: (1 + 2j) * x, [normal(3)], FLOWS),
        (lambda x: x * detached(x), [normal(3)], "wrong: "),
        (detached, [normal(3)], "no graph: the result has no gradient"),
        (lambda x: x * 2 if hasattr(x, "detach") else x, [normal(3)], OTHER_VALUES),
        (
            lambda x: np.asarray(x),
            [normal(3)],
            "RuntimeError: NumPy conversion: this tensor needs a gradient",
        ),
    ],
)
def test_verdict_on_a_gradient(fn: Any, inputs: list[Any], expected: str) -> None:
    assert verdict(path("path", fn, *inputs), pullback).startswith(expected)


def test_gradient_of_nan_is_found() -> None:
    assert "nan" in verdict(
        path("nan", lambda x: (x * 0) ** 0.5 + x, exactly([0.0, 1.0])), pullback
    )


def test_path_with_a_derivative_of_zero_is_refused() -> None:
    with pytest.raises(
        ValueError, match="flat: expected a derivative that differs from zero, got 0"
    ):
        verdict(path("flat", lambda x: x * 0, normal(3)), pullback)


def test_recorded_needs_are_those_of_other_packages() -> None:
    code = "xp.exp(x)\nx[0] = xp.linalg.vector_norm(x)\nlen(x)"
    with recorded() as used:
        exec(code, {"__name__": "scipy.example", "xp": xgrad, "x": xgrad.ones(2)})
        xgrad.log(xgrad.ones(2))
    assert used == {"exp", "linalg.vector_norm", "x[k] = v", "len"}
    with recorded() as used:
        exec(code, {"__name__": "example", "xp": xgrad, "x": xgrad.ones(2)})
    assert used == set()
    assert type(xgrad) is type(np)


def test_inputs_are_reproducible() -> None:
    first, again = (path("p", lambda x: x, normal(2)).inputs()[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, path("q", lambda x: x, normal(2)).inputs()[0])
