"""Weights with orthonormal rows or columns."""

from __future__ import annotations

from typing import Any

from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.linalg import expm, qr, solve
from xgrad.nn.module import Module
from xgrad.nn.utils.parametrize import register_parametrization
from xgrad.nn.utils.weight_norms import parameter_of
from xgrad.ops import (
    abs,
    all,
    concat,
    expand_dims,
    eye,
    matrix_transpose,
    ones_like,
    stack,
    sum,
    tril,
    trunc,
    where,
    zeros,
)
from xgrad.ops.diagonals import diagonal
from xgrad.random import randn
from xgrad.support.hints import shown

_MAPS = ("matrix_exp", "cayley", "householder")


def _reflected(vectors: Tensor) -> Tensor:
    """Return the first columns of a product of reflections.

    Column i of `vectors`, of shape (n, k), has the elements of a vector below its i-th one, which
    is 1; the elements above are 0.
    """
    n, k = vectors.shape
    vectors = vectors + eye(n, k, dtype=vectors.dtype, device=vectors.device)
    out = eye(n, k, dtype=vectors.dtype, device=vectors.device)
    for i in range(k - 1, -1, -1):
        v = vectors[:, i]
        out = out - expand_dims(v * (2 / sum(v * v)), axis=1) * (v @ out)
    return out


def _reflections(x: Tensor) -> Tensor:
    """Return the vectors whose reflections make the columns of `x` triangular, and signs.

    The vectors are below the diagonal, as `_reflected` takes them; the signs of the product's
    columns are the diagonal.
    """
    columns, (n, k) = [], x.shape
    for i in range(k):
        column, below = x[i:, i], sum(x[i + 1 :, i] ** 2)
        norm = sum(column**2) ** 0.5
        top = where(column[0] > 0, -norm, norm)
        found = below > 0  # otherwise nothing is left to reflect
        v = where(found, column / where(found, column[0] - top, 1), 0)
        v = concat([v[:1] * 0 + 1, v[1:]])
        rest = x[i:, :]
        factor = where(found, 2 / sum(v * v), 2.0)
        x = concat([x[:i, :], rest - expand_dims(v * factor, axis=1) * (v @ rest)], axis=0)
        columns.append(concat([x[:i, i], _signs(x[i : i + 1, i]), v[1:]]))
    return stack(columns, axis=1) if columns else zeros((n, 0), dtype=x.dtype, device=x.device)


class _Orthogonal(Module):
    """An orthogonal matrix, or the first columns of one, as a function of any matrix."""

    base: Tensor | None

    def __init__(self, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map, self.use_trivialization = orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        transposed = x.shape[0] < x.shape[1]
        x = matrix_transpose(x) if transposed else x
        n, k = x.shape
        if self.orthogonal_map == "householder":
            q = _reflected(tril(x, k=-1)) * trunc(diagonal(x).detach())
        else:
            lower = tril(x)
            if n != k:
                border = zeros((n, n - k), dtype=x.dtype, device=x.device)
                lower = concat([lower, border], axis=1)
            skew = lower - matrix_transpose(lower)
            if self.orthogonal_map == "matrix_exp":
                q = expm(skew)
            else:
                one = eye(n, dtype=x.dtype, device=x.device)
                q = solve(one - skew / 2, one + skew / 2)
            q = q[:, :k]
        if self.use_trivialization:
            assert self.base is not None
            q = self.base @ q
        return matrix_transpose(q) if transposed else q

    @no_grad()
    def right_inverse(self, weight: Tensor) -> Tensor:
        transposed = weight.shape[0] < weight.shape[1]
        x = matrix_transpose(weight) if transposed else weight
        n, k = x.shape
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "orthogonal: expected use_trivialization=True, or the map 'householder', to"
                    f" assign a weight, got {self.orthogonal_map!r}: it has no inverse"
                )
            vectors = _reflections(x)
            return matrix_transpose(vectors) if transposed else vectors
        if n != k:
            x = concat([x, randn((n, n - k), dtype=x.dtype, device=x.device)], axis=1)
        self.base = _orthonormal(x)
        start = -eye(n, k, dtype=x.dtype, device=x.device)
        return matrix_transpose(start) if transposed else start


def _orthonormal(x: Tensor) -> Tensor:
    """Return an orthogonal matrix with the spans of the columns of `x`, unchanged if it is one."""
    n = x.shape[0]
    one = eye(n, dtype=x.dtype, device=x.device)
    q, r = qr(x)
    q = q * _signs(diagonal(r))
    near = all(abs(matrix_transpose(x) @ x - one) <= 10 * n * _precision(x))
    return where(near, x, q)


def _signs(x: Tensor) -> Tensor:
    """Return -1 for negative numbers, else 1."""
    return where(x < 0, -ones_like(x), 1)


def _precision(x: Tensor) -> float:
    return 2.0**-52 if x.dtype.itemsize == 8 else 2.0**-23


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Replace a matrix by an orthogonal one, or by one with orthonormal rows or columns.

    The parameter is ``parametrizations.weight.original``. The matrix is computed whenever it is
    read; an assignment to it, of an orthogonal matrix, sets the parameter.

    M. Lezcano-Casado, "Trivializations for gradient-based optimization on manifolds", NeurIPS,
    2019.

    Parameters
    ----------
    module : Module
        The module, which is changed.
    name : str, default "weight"
        The name of the parameter, a matrix.
    orthogonal_map : {"matrix_exp", "cayley", "householder"}, optional
        The function that makes a matrix orthogonal: the exponential of a skew-symmetric matrix, its
        Cayley transform, or a product of reflections; by default the first one for square matrices,
        and the last one for others.
    use_trivialization : bool, default True
        Whether to multiply the result by a fixed orthogonal matrix, the buffer ``base``: the weight
        made orthogonal, or the last one that was assigned.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ValueError
        If there is no such parameter or map, or the parameter is no matrix.
    TypeError
        If `module` is not a module.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.utils.parametrizations.orthogonal(xgrad.nn.Linear(2, 3))
    >>> weight = layer.weight  # of shape (3, 2)
    >>> bool(xgrad.allclose(weight.mT @ weight, xgrad.eye(2), atol=1e-6))
    True
    """
    weight = parameter_of("orthogonal", module, name)
    if weight.ndim != 2:
        raise ValueError(f"orthogonal: expected a matrix for {name}, got shape {weight.shape}")
    if orthogonal_map is None:
        square = weight.shape[0] == weight.shape[1]
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f"orthogonal: expected an orthogonal_map of {list(_MAPS)}, got {shown(orthogonal_map)}"
        )
    parametrization: Any = _Orthogonal(orthogonal_map, use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)
