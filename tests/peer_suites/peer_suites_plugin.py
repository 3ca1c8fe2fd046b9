"""Plugin of pytest for test suites of other projects, on one namespace of the standard.

See `run.py`. The environment variable ``PEER_NAMESPACE`` names the namespace. SciPy's and
array-api-extra's tests take it from a fixture (``xp`` and ``library``), which is parametrized with
this namespace alone. einops' tests go through a list of backends, which becomes a backend of this
namespace alone.
"""

from __future__ import annotations

import os
import sys
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np
import pytest

NAME = os.environ.get("PEER_NAMESPACE", "xgrad")
namespace = import_module(NAME)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(namespace, "set_default_dtype"):
        # which the suites expect, and set for PyTorch
        namespace.set_default_dtype(namespace.float64)
    if os.environ.get("EINOPS_TEST_BACKENDS"):
        join_einops()


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if (scipy := sys.modules.get("scipy.conftest")) is not None:
        scipy.xp_known_backends.add(NAME)  # so that tests for NumPy alone skip it
        give(metafunc, "xp", namespace)
        # SciPy's fixture expects a list, a tuple since version 2025.12
        if "devices" in metafunc.fixturenames:
            devices = [*namespace.__array_namespace_info__().devices(), None]
            metafunc.parametrize("devices", [devices], ids=[pytest.HIDDEN_PARAM])
    elif "array_api_extra.tests.main.conftest" in sys.modules:
        give(metafunc, "library", library())


def give(metafunc: pytest.Metafunc, fixture: str, value: Any) -> None:
    """Parametrize a fixture with one value in place of its own."""
    if fixture in metafunc.fixturenames:
        one = pytest.param(value, id=NAME, marks=pytest.mark.array_api_backends)
        metafunc.definition.add_marker(pytest.mark.parametrize(fixture, [one], indirect=True))


def library() -> Any:
    """Return the member of array-api-extra's enumeration of libraries, or of one like it."""
    backend = import_module("array_api_extra._lib._backends").Backend
    if any(member.value == NAME for member in backend):
        return backend(NAME)

    class Library(Enum):
        PEER = NAME
        modname, like = backend.modname, backend.like

    return Library.PEER


def join_einops() -> None:
    """Make a backend of the namespace the only one of einops' tests."""
    einops = import_module("einops._backends")

    class Backend(einops.AbstractBackend):  # type: ignore[name-defined, misc]
        framework_name = NAME

        def is_appropriate_type(self, x: Any) -> bool:
            return isinstance(x, type(namespace.empty(0)))

        def from_numpy(self, x: Any) -> Any:
            gradient = {"requires_grad": True} if NAME == "xgrad" and x.dtype.kind == "f" else {}
            return namespace.asarray(x, **gradient)

        def to_numpy(self, x: Any) -> Any:
            return np.asarray(x.detach() if hasattr(x, "detach") else x)

        def arange(self, start: int, stop: int) -> Any:
            return namespace.arange(start, stop)

        def reshape(self, x: Any, shape: Any) -> Any:
            return namespace.reshape(x, tuple(shape))

        def transpose(self, x: Any, axes: Any) -> Any:
            return namespace.permute_dims(x, tuple(axes))

        def reduce(self, x: Any, operation: str, axes: Any) -> Any:
            return getattr(namespace, operation)(x, axis=tuple(axes))

        def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
            return namespace.stack(tensors)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return namespace.expand_dims(x, axis=new_position)

        def tile(self, x: Any, repeats: Any) -> Any:
            return namespace.tile(x, repeats)

        def concat(self, tensors: Any, axis: int) -> Any:
            return namespace.concat(tensors, axis=axis)

        def is_float_type(self, x: Any) -> bool:
            return bool(namespace.isdtype(x.dtype, "real floating"))

        def einsum(self, pattern: str, *x: Any) -> Any:
            return namespace.einsum(pattern, *x)

    tests = import_module("einops.tests")
    tests.collect_test_backends = lambda symbolic=False, layers=False: (
        [] if symbolic or layers else [Backend()]
    )


@pytest.fixture(autouse=True)
def from_dlpack_of_the_namespace(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replace NumPy's function, by which einops' tests of `einops.array_api` create arrays."""
    if request.module.__name__.startswith("einops.") and "array_api" in request.node.name:
        original = np.from_dlpack

        def from_dlpack(x: Any) -> Any:
            return namespace.asarray(x) if isinstance(x, np.ndarray) else original(x)

        monkeypatch.setattr(np, "from_dlpack", from_dlpack)
