"""The standard's namespace, version 2025.12: names, signatures, inspection, data types.

They are compared with array-api-strict.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor

strict: Any = pytest.importorskip(
    "array_api_strict", reason="array-api-strict, the oracle, is not installed"
)

NAMES = [
    pytest.param(ours, theirs, name, id=f"{theirs.__name__}.{name}")
    for ours, theirs in ((xgrad, strict), (xgrad.linalg, strict.linalg), (xgrad.fft, strict.fft))
    for name in sorted(theirs.__all__)
    if "strict" not in name.lower()
]
METHODS = [
    name for name, member in vars(type(strict.ones(1))).items() if inspect.isfunction(member)
]


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Return names, kinds and defaults of parameters.

    A default is None where array-api-strict defines it by its version.
    """
    return [
        (p.name, p.kind, None if type(p.default).__name__ == "Undef" else p.default)
        for p in inspect.signature(function).parameters.values()
    ]


REQUIRES_GRAD = ("requires_grad", inspect.Parameter.KEYWORD_ONLY, False)  # of creation functions


@pytest.mark.parametrize(("ours", "theirs", "name"), NAMES)
def test_names_and_signatures_are_those_of_the_standard(ours: Any, theirs: Any, name: str) -> None:
    assert hasattr(ours, name) and (name in ours.__all__ or name in ("fft", "linalg"))
    if inspect.isfunction(getattr(theirs, name)):
        compared = [p for p in parameters(getattr(ours, name)) if p != REQUIRES_GRAD]
        assert compared == parameters(getattr(theirs, name))


def test_fft_has_the_names_of_the_standard_alone() -> None:
    assert sorted(xgrad.fft.__all__) == sorted(strict.fft.__all__)


@pytest.mark.parametrize(
    "name", [name for name in METHODS if name.startswith("__") or name == "to_device"]
)
def test_methods_are_those_of_the_standard(name: str) -> None:
    if name in (
        "__array__",
        "__buffer__",
        "__init__",
        "__new__",
        "__repr__",
        "__str__",
        "__hash__",
    ):
        pytest.skip("not the standard's")
    assert hasattr(Tensor, name)
    if name in ("__dlpack__", "__array_namespace__"):
        assert parameters(getattr(Tensor, name)) == parameters(getattr(type(strict.ones(1)), name))


def test_version_and_constants_are_those_of_the_standard() -> None:
    assert xgrad.__array_api_version__ == "2025.12"
    assert (xgrad.newaxis, xgrad.inf, xgrad.e, xgrad.pi) == (
        None,
        np.inf,
        np.e,
        np.pi,
    ) and xgrad.nan != xgrad.nan
    x = xgrad.ones(2)
    for version in (None, "2025.12"):
        assert x.__array_namespace__(api_version=version) is xgrad
    for version in ("2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version).__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match=r"__array_namespace__: expected one of .* got '2020\.01'"):
        x.__array_namespace__(api_version="2020.01")


def test_namespace_of_2024_returns_lists_and_that_of_2025_tuples() -> None:
    x, new = xgrad.ones(2), xgrad
    old = x.__array_namespace__(api_version="2024.12")
    for xp, kind in ((old, list), (new, tuple)):
        assert [type(xp.meshgrid(x, x)), type(xp.broadcast_arrays(x, x))] == [kind, kind]
        assert type(xp.__array_namespace_info__().devices()) is kind
    assert dir(old) == dir(new) and all(hasattr(old, name) for name in dir(old))
    assert (
        old.exp is new.exp
        and old.linalg is new.linalg
        and old.meshgrid(x, x, indexing="ij")[1].shape == (2, 2)
    )


def test_inspection_reports_devices_and_dtypes(device: str) -> None:
    info = xgrad.__array_namespace_info__()
    assert info.default_device() == xgrad.Device("cpu") and xgrad.Device(device) in info.devices()
    kinds = ("real floating", "complex floating", "integral", "indexing")
    dtypes = (xgrad.float32, xgrad.complex64, xgrad.int64, xgrad.int64)
    assert info.default_dtypes(device=device) == dict(zip(kinds, dtypes, strict=True))
    with xgrad.default_device(device):
        assert info.default_device() == xgrad.Device(device)
        assert set(info.capabilities()) == {
            "boolean indexing",
            "data-dependent shapes",
            "max dimensions",
        }
        assert info.dtypes() == info.dtypes(device=device)
    for name, dtype in info.dtypes(device=device).items():
        assert getattr(xgrad, name) == dtype == xgrad.zeros(1, dtype=dtype, device=device).dtype
    assert [*info.dtypes(device=device, kind=("bool", "complex floating"))] == [
        "bool",
        "complex64",
        "complex128",
    ]
    with pytest.raises(ValueError, match="dtypes: expected a kind of"):
        info.dtypes(device=device, kind="real")
    with pytest.raises(xgrad.DeviceError, match="unknown device 'nowhere'"):
        info.default_dtypes(device="nowhere")


# Data types

NAMED = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
).split()
DTYPES = [getattr(xgrad, name) for name in NAMED]
PAIRS = [pytest.param(a, b, id=f"{a}-{b}") for a in DTYPES for b in DTYPES]


def of_strict(dtype: np.dtype) -> Any:
    return getattr(strict, dtype.name)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_dtypes_promote_as_the_standard_says(a: np.dtype, b: np.dtype) -> None:
    try:
        expected = np.dtype(str(strict.result_type(of_strict(a), of_strict(b))).rpartition(".")[2])
    except TypeError:  # the standard leaves it open
        kinds = "biufc" if {a.kind, b.kind} != {"i", "u"} else ""
        expected = (
            np.result_type(a, b)
            if not kinds
            else max(a, b, key=lambda dtype: kinds.index(dtype.kind))
        )
    else:
        assert xgrad.can_cast(a, b) == strict.can_cast(of_strict(a), of_strict(b))
        assert xgrad.can_cast(xgrad.ones(1, dtype=a), b) == xgrad.can_cast(a, b)
    x, y = xgrad.ones(2, dtype=a), xgrad.ones((), dtype=b)
    assert xgrad.result_type(a, b) == xgrad.result_type(b, a) == expected
    assert (
        xgrad.result_type(x, b)
        == xgrad.result_type(x, y)
        == xgrad.result_type(np.ones(1, a), b.name)
        == expected
    )
    assert xgrad.where(xgrad.asarray([True, False]), x, y).dtype == expected  # an op of any dtypes


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scalar", [True, 1, 1.5, 2j], ids=repr)
def test_scalars_count_by_kind_alone(dtype: np.dtype, scalar: Any, device: str) -> None:
    if str(dtype) not in xgrad.__array_namespace_info__().dtypes(device=device):
        pytest.skip(f"{device} has no {dtype}")
    x = xgrad.ones(2, dtype=dtype, device=device)
    try:
        expected = np.dtype(
            str(strict.result_type(strict.ones(2, dtype=of_strict(dtype)), scalar)).rpartition(".")[
                2
            ]
        )
    except TypeError:  # the standard leaves it open
        default = {
            bool: xgrad.bool,
            int: xgrad.int64,
            float: xgrad.float32,
            complex: xgrad.complex64,
        }[type(scalar)]
        expected = max(dtype, default, key=lambda one: "buifc".index(one.kind))
    assert xgrad.result_type(x, scalar) == xgrad.result_type(dtype, scalar) == expected
    assert xgrad.result_type(x, scalar, scalar) == expected
    assert xgrad.where(xgrad.asarray([True, False], device=device), x, scalar).dtype == expected


def test_result_type_of_nothing_but_numbers() -> None:
    with pytest.raises(ValueError, match="result_type: expected at least one tensor or dtype"):
        xgrad.result_type(1, 2.0)
    with pytest.raises(TypeError, match=r"dtype: expected one such as xgrad\.float32, got 'text'"):
        xgrad.result_type("text")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kinds_are_those_of_the_standard(dtype: np.dtype) -> None:
    kinds = (
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
    )
    for kind in kinds:
        assert xgrad.isdtype(dtype, kind) is strict.isdtype(of_strict(dtype), kind)
    assert xgrad.isdtype(dtype, (xgrad.float32, "integral")) is (
        dtype == xgrad.float32 or dtype.kind in "iu"
    )
    assert xgrad.isdtype(dtype, dtype) and not xgrad.isdtype(dtype, ())
    with pytest.raises(ValueError, match="isdtype: expected a kind of"):
        xgrad.isdtype(dtype, "numbers")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "kinds", "attributes"), [
    ("finfo", "fc", ("bits", "dtype", "max", "min", "eps", "smallest_normal")),
    ("iinfo", "iu", ("bits", "dtype", "max", "min")),
])  # fmt: skip
def test_limits_are_those_of_numpy(
    name: str, kinds: str, attributes: tuple[str, ...], dtype: np.dtype
) -> None:
    limits = getattr(xgrad, name)
    if dtype.kind not in kinds:
        with pytest.raises(TypeError, match=f"{name}: expected a"):
            limits(dtype)
        return
    for got in (limits(dtype), limits(xgrad.ones(1, dtype=dtype)), limits(dtype.name)):
        for attribute in attributes:
            assert getattr(got, attribute) == getattr(getattr(np, name)(dtype), attribute)
        assert {type(getattr(got, attribute)) for attribute in attributes[2:]} == {
            int if name == "iinfo" else float
        }
