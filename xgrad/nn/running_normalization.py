"""Normalization by the statistics of channels, with running ones: batches and instances."""

from __future__ import annotations

from typing import Any, ClassVar

from xgrad.backend.device import Device
from xgrad.core.dtypes import int64
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import positive_int
from xgrad.nn.functional import batch_norm, instance_norm
from xgrad.nn.normalization import _Normalization
from xgrad.ops import expand_dims, ones, squeeze, zeros
from xgrad.support.hints import shown


class _Running(_Normalization):
    """A layer that normalizes by channel statistics, with optional running ones in buffers."""

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    #: The names of the axes, for each accepted number of axes.
    shapes: ClassVar[tuple[tuple[str, ...], ...]]

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        bias: bool,
        device: str | Device | None,
        dtype: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.num_features = positive_int(name, "num_features", num_features)
        if momentum is not None and not (isinstance(momentum, (int, float)) and 0 <= momentum <= 1):
            raise ValueError(
                f"{name}: expected momentum from 0 to 1, or None, got {shown(momentum)}"
            )
        self.eps, self.momentum, self.affine = eps, momentum, bool(affine)
        self.track_running_stats = bool(track_running_stats)
        shape, tracked = (self.num_features,), self.track_running_stats
        self.register_buffer(
            "running_mean", zeros(shape, device=device, dtype=dtype) if tracked else None
        )
        self.register_buffer(
            "running_var", ones(shape, device=device, dtype=dtype) if tracked else None
        )
        self.register_buffer(
            "num_batches_tracked", zeros((), device=device, dtype=int64) if tracked else None
        )
        self._make_parameters(shape, self.affine, self.affine and bool(bias), device, dtype)

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0, and reset the running statistics."""
        super().reset_parameters()
        self.reset_running_stats()

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the running variance to 1, and the number of batches to 0."""
        for buffer, value in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            if buffer is not None:
                init.constant_(buffer, value)

    def _checked(self, input: Tensor) -> Tensor:
        input = super()._checked(input)
        for axes in self.shapes:
            if len(axes) == input.ndim and input.shape[axes.index("channels")] == self.num_features:
                return input
        texts = [
            f"({', '.join(axes)})".replace("channels", str(self.num_features))
            for axes in self.shapes
        ]
        raise ValueError(
            f"{type(self).__name__}: expected an input of shape {' or '.join(texts)}, got"
            f" {input.shape}"
        )

    def _momentum(self) -> float | Tensor:
        """Return the weight of the next batch in the running statistics."""
        assert self.num_batches_tracked is not None and self.running_mean is not None
        if self.momentum is not None:
            return self.momentum
        # The running statistics become the mean over all batches.
        return 1 / (self.num_batches_tracked + 1).astype(self.running_mean.dtype)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}{self._without_bias()}"
        )


class BatchNormalization(_Running):
    """Batch normalization of inputs of any shape."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        options = num_features, eps, momentum, affine, track_running_stats, bias
        super().__init__(*options, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        input = self._checked(input)
        training = self.training or self.running_mean is None
        tracking = self.training and self.track_running_stats
        momentum = self._momentum() if tracking else 0.0
        running = self.running_mean, self.running_var
        out = batch_norm(input, *running, self.weight, self.bias, training, momentum, self.eps)
        if tracking:  # after the op: an error leaves the layer unchanged
            tracked = self.num_batches_tracked
            assert tracked is not None
            with no_grad():
                tracked += 1
        return out


class BatchNorm1d(BatchNormalization):
    r"""Batch normalization of rows, or of sequences.

    In training mode, each channel is normalized by the statistics of the batch, and the running
    statistics move towards them. In evaluation mode, it is normalized by the running statistics.
    See `functional.batch_norm`.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        The weight of a batch in the running statistics; None for the mean over all batches.
    affine : bool, default True
        Whether to scale by a weight, and to add a bias.
    track_running_stats : bool, default True
        Whether to keep running statistics; if not, evaluation mode uses the batch's statistics too.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.
    bias : bool, default True
        Whether to add a bias besides the weight; without effect if `affine` is false.

    Attributes
    ----------
    weight : Parameter or None
        Of shape (num_features,); 1 at first.
    bias : Parameter or None
        Of shape (num_features,); 0 at first.
    running_mean, running_var : Tensor or None
        Of shape (num_features,); 0 and 1 at first.
    num_batches_tracked : Tensor or None
        The number of batches in the running statistics.

    Raises
    ------
    ValueError
        If an option is out of range, the shape of the input does not fit, or there is only one
        value for each channel in training.
    TypeError
        In the call, if the input has another dtype than the weight.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.BatchNorm1d(1, momentum=0.5)
    >>> layer(xgrad.asarray([[1.0], [3.0]])).tolist()
    [[-0.9999949932098389], [0.9999949932098389]]
    >>> layer.running_mean, layer.running_var
    (Tensor([1.]), Tensor([1.5]))
    >>> layer.eval()(xgrad.asarray([[1.0]])).tolist()
    [[0.0]]
    """

    shapes = (("batch", "channels"), ("batch", "channels", "length"))


class BatchNorm2d(BatchNormalization):
    r"""Batch normalization of images.

    In training mode, each channel is normalized by the statistics of the batch, and the running
    statistics move towards them. In evaluation mode, it is normalized by the running statistics.
    See `functional.batch_norm`.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        The weight of a batch in the running statistics; None for the mean over all batches.
    affine : bool, default True
        Whether to scale by a weight, and to add a bias.
    track_running_stats : bool, default True
        Whether to keep running statistics; if not, evaluation mode uses the batch's statistics too.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.
    bias : bool, default True
        Whether to add a bias besides the weight; without effect if `affine` is false.

    Attributes
    ----------
    weight : Parameter or None
        Of shape (num_features,); 1 at first.
    bias : Parameter or None
        Of shape (num_features,); 0 at first.
    running_mean, running_var : Tensor or None
        Of shape (num_features,); 0 and 1 at first.
    num_batches_tracked : Tensor or None
        The number of batches in the running statistics.

    Raises
    ------
    ValueError
        If an option is out of range, the shape of the input does not fit, or there is only one
        value for each channel in training.
    TypeError
        In the call, if the input has another dtype than the weight.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.BatchNorm2d(3)
    >>> layer(xgrad.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    >>> layer
    BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
    """

    shapes = (("batch", "channels", "height", "width"),)


class InstanceNormalization(_Running):
    """Instance normalization of inputs of any shape; as in PyTorch, batches are not counted."""

    momentum: float

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        if momentum is None:
            raise ValueError(f"{type(self).__name__}: expected momentum from 0 to 1, got None")
        options = num_features, eps, momentum, affine, track_running_stats, bias
        super().__init__(*options, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        input = self._checked(input)
        batch = input if input.ndim == len(self.shapes[0]) else expand_dims(input, axis=0)
        own = self.training or self.running_mean is None
        running = self.running_mean, self.running_var
        out = instance_norm(batch, *running, self.weight, self.bias, own, self.momentum, self.eps)
        return out if batch is input else squeeze(out, axis=0)


class InstanceNorm1d(InstanceNormalization):
    r"""Instance normalization of sequences.

    Each channel of each sample is normalized by its own statistics, in evaluation mode by running
    statistics if there are any. See `functional.instance_norm`.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float, default 0.1
        The weight of a batch in the running statistics.
    affine : bool, default False
        Whether to scale by a weight, and to add a bias.
    track_running_stats : bool, default False
        Whether to keep running statistics; if not, evaluation mode uses the input's statistics too.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.
    bias : bool, default True
        Whether to add a bias besides the weight; without effect if `affine` is false.

    Attributes
    ----------
    weight : Parameter or None
        Of shape (num_features,); 1 at first.
    bias : Parameter or None
        Of shape (num_features,); 0 at first.
    running_mean, running_var : Tensor or None
        Of shape (num_features,); 0 and 1 at first.
    num_batches_tracked : Tensor or None
        Always 0: the running statistics need no count. PyTorch has the buffer, too.

    Raises
    ------
    ValueError
        If an option is out of range, the shape of the input does not fit, or there is only one
        value for each channel of a sample.
    TypeError
        In the call, if the input has another dtype than the weight.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.InstanceNorm1d(1)(xgrad.asarray([[[1.0, 3.0]], [[5.0, 5.0]]]))
    Tensor([[[-0.999995,  0.999995]],
    <BLANKLINE>
            [[ 0.      ,  0.      ]]])
    """

    shapes = (("batch", "channels", "length"), ("channels", "length"))


class InstanceNorm2d(InstanceNormalization):
    r"""Instance normalization of images.

    Each channel of each sample is normalized by its own statistics, in evaluation mode by running
    statistics if there are any. See `functional.instance_norm`.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float, default 0.1
        The weight of a batch in the running statistics.
    affine : bool, default False
        Whether to scale by a weight, and to add a bias.
    track_running_stats : bool, default False
        Whether to keep running statistics; if not, evaluation mode uses the input's statistics too.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.
    bias : bool, default True
        Whether to add a bias besides the weight; without effect if `affine` is false.

    Attributes
    ----------
    weight : Parameter or None
        Of shape (num_features,); 1 at first.
    bias : Parameter or None
        Of shape (num_features,); 0 at first.
    running_mean, running_var : Tensor or None
        Of shape (num_features,); 0 and 1 at first.
    num_batches_tracked : Tensor or None
        Always 0: the running statistics need no count. PyTorch has the buffer, too.

    Raises
    ------
    ValueError
        If an option is out of range, the shape of the input does not fit, or there is only one
        value for each channel of a sample.
    TypeError
        In the call, if the input has another dtype than the weight.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.InstanceNorm2d(3, affine=True)(xgrad.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    shapes = (("batch", "channels", "height", "width"), ("channels", "height", "width"))
