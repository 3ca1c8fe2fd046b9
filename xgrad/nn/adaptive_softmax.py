"""Adaptive softmax: many classes in clusters of decreasing frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xgrad.backend.device import Device
from xgrad.core.arguments import as_int, as_number, as_tensor
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.nn.checks import of_dtype_of, positive_int
from xgrad.nn.containers import ModuleList, Sequential
from xgrad.nn.functional import log_softmax
from xgrad.nn.linear import Linear
from xgrad.nn.module import Module
from xgrad.ops import argmax, astype, clip, concat, expand_dims, mean, squeeze, where
from xgrad.ops.embedding import check_numbers
from xgrad.ops.indexing import take_along_axis
from xgrad.support.hints import shown


class AdaptiveOutput(NamedTuple):
    """The result of `AdaptiveLogSoftmaxWithLoss`.

    Attributes
    ----------
    output : Tensor
        The log-probability of each target.
    loss : Tensor
        Minus their mean.
    """

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over many classes, of which the rare ones have smaller projections, and its loss.

    The classes are ordered by frequency, the most frequent one first. The head has the logits of
    the classes below the first cutoff, and one for each cluster of the others, whose classes have
    projections through fewer features.

    E. Grave, A. Joulin, M. Cissé, D. Grangier, H. Jégou, "Efficient softmax approximation for
    GPUs", ICML, 2017.

    Parameters
    ----------
    in_features : int
        The length of the last axis of the input.
    n_classes : int
        The number of classes.
    cutoffs : sequence of int
        The first class of each cluster, in ascending order, from 1 to ``n_classes - 1``.
    div_value : float, default 4
        Cluster i, counted from 1, has ``in_features // div_value**i`` features.
    head_bias : bool, default False
        Whether the head adds biases.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    head : Linear
        The logits of the first classes, and of the clusters.
    tail : ModuleList
        For each cluster, a `Sequential` of two linear layers without biases.

    Raises
    ------
    ValueError
        If a length is not an int above 0, the cutoffs are not in ascending order and in range, or a
        cluster would have no features; in the call, if the shapes do not fit.
    TypeError
        In the call, if the input has another dtype than the weights, or the target has no integers.
    IndexError
        In the call, if a class does not exist; not checked on ``cuda``.

    Notes
    -----
    All clusters are computed for all rows, so that shapes do not depend on values: it saves
    parameters, but, unlike PyTorch, no time for rows of frequent classes.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.AdaptiveLogSoftmaxWithLoss(16, 100, cutoffs=[10, 40])
    >>> output, loss = layer(xgrad.ones((3, 16)), xgrad.asarray([2, 50, 99]))
    >>> output.shape, layer.log_prob(xgrad.ones((3, 16))).shape
    ((3,), (3, 100))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.in_features = positive_int(name, "in_features", in_features)
        self.n_classes = positive_int(name, "n_classes", n_classes)
        bounds = [as_int(name, "cutoffs", n) for n in cutoffs]
        if (
            not bounds
            or bounds != sorted(set(bounds))
            or not 0 < bounds[0] <= bounds[-1] < n_classes
        ):
            raise ValueError(
                f"{name}: expected cutoffs in ascending order from 1 to {n_classes - 1}, got"
                f" {shown(cutoffs)}"
            )
        if not as_number(name, "div_value", div_value) > 0:
            raise ValueError(f"{name}: expected div_value above 0, got {div_value}")
        self.cutoffs, self.div_value, self.head_bias = [*bounds, n_classes], div_value, head_bias
        self.shortlist_size, self.n_clusters = bounds[0], len(bounds)
        on: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, **on)
        clusters = []
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            features = int(in_features // div_value ** (i + 1))
            if not features:
                raise ValueError(
                    f"{name}: expected features for all {self.n_clusters} clusters, got 0 for"
                    f" cluster {i + 1}: lower div_value or the number of cutoffs"
                )
            clusters.append(
                Sequential(
                    Linear(in_features, features, False, **on),
                    Linear(features, end - start, False, **on),
                )
            )
        self.tail = ModuleList(clusters)

    def reset_parameters(self) -> None:
        """Initialize all weights again."""
        self.head.reset_parameters()
        for module in self.tail.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> AdaptiveOutput:
        """Return the log-probabilities of the targets, and the loss.

        `input` has shape (batch, in_features), and `target` (batch,); or (in_features,) and ().
        """
        name = type(self).__name__
        x = self._checked(input)
        target = as_tensor(name, "target", target)
        if target.dtype.kind not in "iu":
            raise TypeError(f"{name}: expected target of integers, got {target.dtype}")
        if x.ndim > 2 or target.shape != x.shape[:-1]:
            raise ValueError(
                f"{name}: expected input of shape (batch, {self.in_features}) and target of shape"
                f" (batch,), got {x.shape} and {target.shape}"
            )
        target = astype(target, int64, copy=False)
        check_numbers(name, "target", target, self.n_classes)
        logs = log_softmax(self.head(x))
        output = _pick(logs, clip(target, 0, self.shortlist_size - 1))
        bounds = zip(self.cutoffs, self.cutoffs[1:], strict=False)
        for i, (cluster, (start, end)) in enumerate(zip(self.tail, bounds, strict=True)):
            inner = _pick(log_softmax(cluster(x)), clip(target - start, 0, end - start - 1))
            inside = (target >= start) & (target < end)
            output = where(inside, logs[..., self.shortlist_size + i] + inner, output)
        return AdaptiveOutput(output, -mean(output))

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes.

        `input` has shape (batch, in_features), and the result (batch, n_classes).

        Examples
        --------
        >>> import xgrad
        >>> layer = xgrad.nn.AdaptiveLogSoftmaxWithLoss(8, 5, cutoffs=[2])
        >>> probabilities = xgrad.exp(layer.log_prob(xgrad.ones((1, 8))))
        >>> bool(abs(xgrad.sum(probabilities) - 1) < 1e-6)
        True
        """
        x = self._checked(input)
        logs = log_softmax(self.head(x))
        parts = [logs[..., : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            of_cluster = logs[..., self.shortlist_size + i]
            parts.append(log_softmax(cluster(x)) + expand_dims(of_cluster, axis=-1))
        return concat(parts, axis=-1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each row.

        `input` has shape (batch, in_features), and the result (batch,).

        Examples
        --------
        >>> import xgrad
        >>> layer = xgrad.nn.AdaptiveLogSoftmaxWithLoss(8, 5, cutoffs=[2])
        >>> layer.predict(xgrad.ones((3, 8))).shape
        (3,)
        """
        return argmax(self.log_prob(input), axis=-1)

    def _checked(self, input: Tensor) -> Tensor:
        name = type(self).__name__
        x = of_dtype_of(self.head.weight, input, name)
        if not x.ndim or x.shape[-1] != self.in_features:
            raise ValueError(
                f"{name}: expected input of shape (batch, {self.in_features}), got {x.shape}"
            )
        return x

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.n_classes}, cutoffs={self.cutoffs[:-1]}"


def _pick(logs: Tensor, numbers: Tensor) -> Tensor:
    """Return the element of each row at an index."""
    return squeeze(take_along_axis(logs, expand_dims(numbers, axis=-1), axis=-1), axis=-1)
