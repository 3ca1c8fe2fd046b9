"""Embedding layers: tables of trained vectors."""

from __future__ import annotations

from typing import Any, Literal, Self

from xgrad.backend.device import Device
from xgrad.core.arguments import as_tensor
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import positive_int
from xgrad.nn.functional import embedding, embedding_bag
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import empty
from xgrad.ops.embedding import check_not_sparse, front_index
from xgrad.ops.embedding_bag import check_bag_options


class _Table(Module):
    """The base class of embeddings: the rows and the options of a lookup."""

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
        device: str | Device | None,
        dtype: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.num_embeddings = positive_int(name, "num_embeddings", num_embeddings)
        self.embedding_dim = positive_int(name, "embedding_dim", embedding_dim)
        self.padding_idx = front_index(name, padding_idx, self.num_embeddings)
        check_not_sparse(name, sparse)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
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

    @classmethod
    def _of_rows(cls, embeddings: Tensor, freeze: bool, **options: Any) -> Self:
        """Return a layer with given rows."""
        rows = as_tensor(f"{cls.__name__}.from_pretrained", "embeddings", embeddings)
        if rows.ndim != 2:
            raise ValueError(
                f"{cls.__name__}.from_pretrained: expected embeddings of shape (num_embeddings,"
                f" embedding_dim), got {rows.shape}"
            )
        weight = Parameter(rows, requires_grad=not freeze)
        made: Any = cls
        layer: Self = made(*rows.shape, **options, device=weight.device, dtype=weight.dtype)
        layer.weight = weight
        return layer

    def extra_repr(self) -> str:
        options = {
            "padding_idx": None,
            "max_norm": None,
            "norm_type": 2.0,
            "scale_grad_by_freq": False,
        }
        changed = [
            f", {name}={value}"
            for name, default in options.items()
            if (value := getattr(self, name)) != default
        ]
        return f"{self.num_embeddings}, {self.embedding_dim}{''.join(changed)}"


class Embedding(_Table):
    r"""A table of trained vectors that is indexed by integers, such as word indices.

    See `functional.embedding`. The rows are initialized with standard normal numbers, as in
    PyTorch.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of rows, and their length.
    padding_idx : int, optional
        The index of a row that is initialized to 0 and gets no gradient.
    max_norm : float, optional
        The maximum norm of a row: a call scales the rows that it returns down to it, in `weight`
        itself.
    norm_type : float, default 2
        The order p of that norm, :math:`\left(\sum |x|^p\right)^{1 / p}`; ``inf`` for the largest
        component.
    scale_grad_by_freq : bool, default False
        Whether the gradient of a row is divided by the number of times that the input has it.
    sparse : bool, default False
        Must be False: gradients are dense.
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
        If a length is not an int above 0, `padding_idx` is not the index of a row, or `sparse` is
        True; in the call, if another option is out of range.
    TypeError
        In the call, if the input does not have an integer dtype.
    IndexError
        In the call, if a row does not exist; not checked on ``cuda``.

    Notes
    -----
    .. math:: y_{i, j} = w_{x_i, j}

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
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq,
            sparse, device, dtype,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Return a layer with given rows, of their dtype and on their device.

        Parameters
        ----------
        embeddings : Tensor
            Of shape (num_embeddings, embedding_dim), floating; copied.
        freeze : bool, default True
            Whether the rows are not trained.
        padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
            The options of the layer. The row of `padding_idx` is not set to 0.

        Raises
        ------
        ValueError
            If `embeddings` is not a matrix.
        TypeError
            If `embeddings` does not hold floats.

        Examples
        --------
        >>> import xgrad
        >>> layer = xgrad.nn.Embedding.from_pretrained(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]))
        >>> layer(xgrad.asarray([1])), layer.weight.requires_grad
        (Tensor([[3., 4.]]), False)
        """
        return cls._of_rows(
            embeddings,
            freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows for integers of any shape, along a new last axis."""
        return embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of the rows of a table, one for each bag of indices.

    See `functional.embedding_bag`. The rows are initialized with standard normal numbers.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of rows, and their length.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As for `Embedding`.
    mode : {"sum", "mean", "max"}, default "mean"
        The reduction of a bag.
    include_last_offset : bool, default False
        Whether the offsets have one more element, the end of the last bag.
    padding_idx : int, optional
        The index of a row that is initialized to 0 and left out of all bags.
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
        If a length is not an int above 0, `padding_idx` is not the index of a row, `mode` is
        unknown, or options do not fit each other; in the call, if shapes do not fit.
    TypeError
        In the call, if the input or the offsets do not have an integer dtype.
    IndexError
        In the call, if a row does not exist; not checked on ``cuda``.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.EmbeddingBag(10, 3, mode="sum")
    >>> layer(xgrad.asarray([1, 2, 4, 4]), offsets=xgrad.asarray([0, 3])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: Literal["sum", "mean", "max"] = "mean",
        sparse: bool = False,
        *,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        check_bag_options(type(self).__name__, mode, scale_grad_by_freq, sparse)
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq,
            sparse, device, dtype,
        )  # fmt: skip
        self.mode, self.include_last_offset = mode, include_last_offset

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: Literal["sum", "mean", "max"] = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Return a layer with given rows: see `Embedding.from_pretrained`.

        Parameters
        ----------
        embeddings : Tensor
            Of shape (num_embeddings, embedding_dim), floating; copied.
        freeze : bool, default True
            Whether the rows are not trained.
        max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx
            The options of the layer. The row of `padding_idx` is not set to 0.

        Examples
        --------
        >>> import xgrad
        >>> layer = xgrad.nn.EmbeddingBag.from_pretrained(
        ...     xgrad.asarray([[1.0, 2.0], [3.0, 4.0]])
        ... )
        >>> layer(xgrad.asarray([[0, 1]]))
        Tensor([[2., 3.]])
        """
        return cls._of_rows(
            embeddings,
            freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
        )

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """Return the reduction of each bag, of shape (bags, embedding_dim).

        The parameters are the same as in `functional.embedding_bag`.
        """
        return embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
