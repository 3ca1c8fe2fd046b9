"""The embedding layer."""

from __future__ import annotations

from typing import Any

from xgrad.backend.device import Device
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import positive_int
from xgrad.nn.functional import embedding
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import empty
from xgrad.ops.embedding import front_index


class Embedding(Module):
    """A table of trained vectors that is indexed by integers, such as word indices.

    See `functional.embedding`. The rows are initialized with standard normal numbers, as in
    PyTorch.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of rows, and their length.
    padding_idx : int, optional
        The index of a row that is initialized to 0 and gets no gradient.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter
        Of shape (num_embeddings, embedding_dim).

    Raises
    ------
    ValueError
        If a length is not an int above 0, or `padding_idx` is not the index of a row.
    TypeError
        In the call, if the input does not have an integer dtype.
    IndexError
        In the call, if a row does not exist; not checked on ``cuda``.

    Notes
    -----
    PyTorch's options for normalized rows (`max_norm`) and for scaled or sparse gradients do not
    exist.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Embedding(10, 3)
    >>> layer(xgrad.asarray([[1, 2], [4, 4]])).shape
    (2, 2, 3)
    >>> layer
    Embedding(10, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = positive_int("Embedding", "num_embeddings", num_embeddings)
        self.embedding_dim = positive_int("Embedding", "embedding_dim", embedding_dim)
        self.padding_idx = front_index("Embedding", padding_idx, self.num_embeddings)
        self.weight = Parameter(
            empty((self.num_embeddings, self.embedding_dim), device=device, dtype=dtype)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the rows again."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx, :] = 0.0

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows for integers of any shape, along a new last axis."""
        return embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
