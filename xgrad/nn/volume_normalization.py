"""Normalization layers of volumes."""

from __future__ import annotations

from xgrad.nn.running_normalization import BatchNormalization, InstanceNormalization


class BatchNorm3d(BatchNormalization):
    r"""Batch normalization of volumes.

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
    >>> layer = xgrad.nn.BatchNorm3d(3)
    >>> layer(xgrad.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    >>> layer
    BatchNorm3d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
    """

    shapes = (("batch", "channels", "depth", "height", "width"),)


class InstanceNorm3d(InstanceNormalization):
    r"""Instance normalization of volumes.

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
    >>> xgrad.nn.InstanceNorm3d(3, affine=True)(xgrad.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    """

    shapes = (
        ("batch", "channels", "depth", "height", "width"),
        ("channels", "depth", "height", "width"),
    )
