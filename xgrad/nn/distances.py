"""Distances and similarities as modules."""

from __future__ import annotations

from xgrad.core.arguments import as_int, as_number
from xgrad.core.tensor import Tensor
from xgrad.nn.checks import checked_flag
from xgrad.nn.functional import cosine_similarity, pairwise_distance
from xgrad.nn.module import Module
from xgrad.support.hints import explained


class CosineSimilarity(Module):
    r"""The cosine of the angle between vectors: see `functional.cosine_similarity`.

    Parameters
    ----------
    axis : int, default 1
        The axis along which the vectors lie.
    eps : float, default 1e-8
        A lower bound of the norms.

    Raises
    ------
    TypeError
        If `axis` is not an int, or `eps` not a number.
    ValueError, IndexError
        In the call, if the shapes do not fit.

    Notes
    -----
    .. math:: y = \frac{x_1 \cdot x_2}{n_1 n_2}, \quad n_k = \max(\lVert x_k \rVert, \varepsilon)

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.CosineSimilarity()
    >>> layer(xgrad.asarray([[3.0, 4.0]]), xgrad.asarray([[4.0, 3.0]]))
    Tensor([0.96])
    """

    @explained
    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.axis = as_int("CosineSimilarity", "axis", axis)
        self.eps = as_number("CosineSimilarity", "eps", eps)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the cosines."""
        return cosine_similarity(x1, x2, self.axis, self.eps)

    def extra_repr(self) -> str:
        return f"axis={self.axis}, eps={self.eps}"


class PairwiseDistance(Module):
    r"""The norm of differences of vectors: see `functional.pairwise_distance`.

    Parameters
    ----------
    p : float, default 2
        The order of the norm.
    eps : float, default 1e-6
        Added to each difference.
    keepdims : bool, default False
        Whether to keep the last axis, with length 1.

    Raises
    ------
    TypeError
        If an option has the wrong type.
    ValueError
        In the call, if the shapes do not broadcast.

    Notes
    -----
    .. math:: y = \lVert d \rVert_p, \quad d = x_1 - x_2 + \varepsilon

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.PairwiseDistance(eps=0.0)
    >>> layer(xgrad.asarray([[3.0, 0.0]]), xgrad.asarray([[0.0, 4.0]]))
    Tensor([5.])
    """

    @explained
    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> None:
        super().__init__()
        self.p = as_number("PairwiseDistance", "p", p)
        self.eps = as_number("PairwiseDistance", "eps", eps)
        self.keepdims = checked_flag("PairwiseDistance", "keepdims", keepdims)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distances."""
        return pairwise_distance(x1, x2, self.p, self.eps, keepdims=self.keepdims)

    def extra_repr(self) -> str:
        return f"p={self.p}, eps={self.eps}, keepdims={self.keepdims}"
