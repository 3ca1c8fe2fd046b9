"""The layer of normalization by neighbouring channels."""

from __future__ import annotations

from xgrad.core.tensor import Tensor
from xgrad.nn.checks import positive_int
from xgrad.nn.functional import local_response_norm
from xgrad.nn.module import Module


class LocalResponseNorm(Module):
    r"""``input / (k + alpha * mean) ** beta``, with the mean square of neighbouring channels.

    See `functional.local_response_norm`.

    Parameters
    ----------
    size : int
        The number of channels in a mean.
    alpha, beta, k : float
        The options of the formula, by default 1e-4, 0.75 and 1.

    Raises
    ------
    ValueError
        If `size` is not an int above 0; in the call, if the input has fewer than three axes.
    TypeError
        In the call, if an option is not a number.

    Notes
    -----
    .. math:: y_c = \frac{x_c}{d_c^\beta}, \quad
        d_c = k + \frac{\alpha}{n} \sum_{j \in N_c} x_j^2

    Here, :math:`N_c` are the :math:`n` channels around :math:`c`.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[[3.0], [4.0]]])
    >>> xgrad.nn.functional.local_response_norm(x, 2, alpha=2.0, beta=0.5, k=0.0).tolist()
    [[[1.0], [0.800000011920929]]]

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LocalResponseNorm(2)(xgrad.ones((1, 3, 4, 4))).shape
    (1, 3, 4, 4)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = positive_int("LocalResponseNorm", "size", size)
        self.alpha, self.beta, self.k = alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
