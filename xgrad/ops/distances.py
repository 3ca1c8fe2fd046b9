"""Distances and similarities between vectors, and normalization of vectors."""

from __future__ import annotations

from xgrad.core.arguments import as_number, as_tensor, front_axis
from xgrad.core.tensor import Tensor
from xgrad.ops.elementwise import clip
from xgrad.ops.manipulation import broadcast_arrays, expand_dims
from xgrad.ops.norms import vector_norm
from xgrad.ops.precision import upcast, widened
from xgrad.ops.statistical import sum
from xgrad.support.hints import explained

__all__ = ["cdist"]


@upcast
@explained
def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    r"""Return the cosine of the angle between vectors: their dot product divided by their norms.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast.
    axis : int, default 1
        The axis along which the vectors lie.
    eps : float, default 1e-8
        A lower bound of the norms, for vectors of zeros.

    Returns
    -------
    Tensor
        Of the shape that `x1` and `x2` broadcast to, without `axis`.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.
    IndexError
        If there is no such axis.

    Notes
    -----
    .. math:: y = \frac{x_1 \cdot x_2}{n_1 n_2}, \quad n_k = \max(\lVert x_k \rVert, \varepsilon)

    - Gradient for `x1`: :math:`\frac{\bar y}{n_1} \left(\frac{x_2}{n_2} - y
      \frac{x_1}{n_1}\right)`; without the second term where :math:`\lVert x_1 \rVert < \varepsilon`
    - Gradient for `x2`: :math:`\frac{\bar y}{n_2} \left(\frac{x_1}{n_1} - y
      \frac{x_2}{n_2}\right)`, likewise

    Examples
    --------
    >>> import xgrad
    >>> x1, x2 = xgrad.asarray([[3.0, 4.0]]), xgrad.asarray([[4.0, 3.0], [0.0, 0.0]])
    >>> xgrad.nn.functional.cosine_similarity(x1, x2)
    Tensor([0.96, 0.  ])
    """
    op = "cosine_similarity"
    x1, x2 = broadcast_arrays(*widened(as_tensor(op, "x1", x1), as_tensor(op, "x2", x2)))
    axis, eps = front_axis(op, x1, axis, of="x1"), as_number(op, "eps", eps)
    norms = [clip(vector_norm(x, axis=axis), eps) for x in (x1, x2)]
    return sum(x1 * x2, axis=axis) / (norms[0] * norms[1])


@upcast
@explained
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, *, keepdims: bool = False
) -> Tensor:
    r"""Return the norm of ``x1 - x2 + eps`` along the last axis.

    Parameters
    ----------
    x1, x2 : Tensor
        Of shapes (..., features) that broadcast.
    p : float, default 2
        The order of the norm: see `linalg.vector_norm`.
    eps : float, default 1e-6
        A small number, so that equal vectors have a gradient.
    keepdims : bool, default False
        Whether to keep the last axis, with length 1.

    Returns
    -------
    Tensor
        Of the shape that `x1` and `x2` broadcast to, without the last axis unless `keepdims`.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    .. math:: y = \lVert d \rVert_p, \quad d = x_1 - x_2 + \varepsilon

    - Gradient for `x1`: :math:`\bar y \operatorname{sign}(d_i) (|d_i| / y)^{p-1}`
    - Gradient for `x2`: :math:`-\bar y \operatorname{sign}(d_i) (|d_i| / y)^{p-1}`

    Examples
    --------
    >>> import xgrad
    >>> x1, x2 = xgrad.asarray([[3.0, 0.0]]), xgrad.asarray([[0.0, 4.0]])
    >>> xgrad.nn.functional.pairwise_distance(x1, x2, eps=0.0)
    Tensor([5.])
    """
    op = "pairwise_distance"
    x1, x2 = widened(as_tensor(op, "x1", x1), as_tensor(op, "x2", x2))
    p, eps = as_number(op, "p", p), as_number(op, "eps", eps)
    return vector_norm(x1 - x2 + eps, axis=-1, keepdims=keepdims, ord=p)


@upcast
@explained
def cdist(x1: Tensor, x2: Tensor, /, *, p: float = 2.0) -> Tensor:
    r"""Return the distances between all pairs of vectors of two sets.

    Parameters
    ----------
    x1 : Tensor
        Of shape (..., m, features).
    x2 : Tensor
        Of shape (..., n, features); the first axes broadcast.
    p : float, default 2
        The order of the norm of differences, 0 or more: see `linalg.vector_norm`.

    Returns
    -------
    Tensor
        Of shape (..., m, n).

    Raises
    ------
    ValueError
        If the shapes do not fit, or `p` is negative.

    Notes
    -----
    .. math:: y_{ij} = \lVert d_{ij} \rVert_p, \quad d_{ij} = x_{1, i} - x_{2, j}

    - Gradient for `x1`: :math:`\sum_j g_{ij}` with :math:`g_{ij} = \bar y_{ij}
      \operatorname{sign}(d_{ij}) (|d_{ij}| / y_{ij})^{p-1}`
    - Gradient for `x2`: :math:`-\sum_i g_{ij}`

    Differentiable to any order; the derivative at a distance of 0 is 0. The differences of all
    pairs are computed, with no loss of digits for close vectors. Like ``torch.cdist``, and SciPy's
    ``scipy.spatial.distance.cdist`` with the metric "minkowski".

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[0.0, 0.0], [3.0, 4.0]])
    >>> xgrad.cdist(x, x)
    Tensor([[0., 5.],
            [5., 0.]])
    """
    x1, x2 = widened(as_tensor("cdist", "x1", x1), as_tensor("cdist", "x2", x2))
    if as_number("cdist", "p", p) < 0 or p != p:
        raise ValueError(f"cdist: expected p of 0 or more, got {p}")
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ValueError(
            "cdist: expected x1 and x2 of shapes (..., m, features) and (..., n, features), got"
            f" {x1.shape} and {x2.shape}"
        )
    differences = expand_dims(x1, axis=-2) - expand_dims(x2, axis=-3)
    return vector_norm(differences, axis=-1, ord=p)


@upcast
@explained
def normalize(input: Tensor, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor:
    r"""Return vectors divided by their norms, so that their norms become 1.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    p : float, default 2
        The order of the norm: see `linalg.vector_norm`.
    axis : int, default 1
        The axis along which the vectors lie.
    eps : float, default 1e-12
        A lower bound of the divisors, for vectors of zeros.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Raises
    ------
    IndexError
        If there is no such axis.

    Notes
    -----
    .. math:: y = \frac{x}{n}, \quad n = \max(\lVert x \rVert_p, \varepsilon)

    - Gradient for `input`: :math:`\frac{1}{n} \left(\bar y_i - (\bar y \cdot y)
      \operatorname{sign}(x_i) (|x_i| / n)^{p-1}\right)`; without the second term where
      :math:`\lVert x \rVert_p < \varepsilon`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.normalize(xgrad.asarray([[3.0, 4.0], [0.0, 0.0]]))
    Tensor([[0.6, 0.8],
            [0. , 0. ]])
    """
    input = as_tensor("normalize", "input", input)
    axis, eps = front_axis("normalize", input, axis, of="input"), as_number("normalize", "eps", eps)
    return input / clip(
        vector_norm(input, axis=axis, keepdims=True, ord=as_number("normalize", "p", p)), eps
    )
