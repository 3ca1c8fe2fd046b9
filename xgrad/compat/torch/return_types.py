"""Named tuples of results, with PyTorch's names of fields."""

from __future__ import annotations

from typing import Any, NamedTuple


class ValuesAndIndices(NamedTuple):
    """The result of ``max(dim)``, ``sort``, ``topk`` and others."""

    values: Any
    indices: Any


class MinAndMax(NamedTuple):
    """The result of ``aminmax``."""

    min: Any
    max: Any


class QR(NamedTuple):
    """The result of ``linalg.qr``."""

    Q: Any
    R: Any


class SVD(NamedTuple):
    """The result of ``linalg.svd``."""

    U: Any
    S: Any
    Vh: Any


class SVDWithV(NamedTuple):
    """The result of ``svd``, with V in the place of its adjoint."""

    U: Any
    S: Any
    V: Any


class Eigen(NamedTuple):
    """The result of ``linalg.eigh`` and ``linalg.eig``."""

    eigenvalues: Any
    eigenvectors: Any


class SignAndLogarithm(NamedTuple):
    """The result of ``linalg.slogdet``."""

    sign: Any
    logabsdet: Any


class Solution(NamedTuple):
    """The result of ``linalg.lstsq``."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


class Histogram(NamedTuple):
    """The result of ``histogram``."""

    hist: Any
    bin_edges: Any
