"""One-hot encoding: `one_hot`."""

from __future__ import annotations

from typing import Any

from xgrad.backend.recording import check_true
from xgrad.core import dtypes
from xgrad.core.arguments import as_int, as_tensor, front_axis
from xgrad.core.tensor import Tensor
from xgrad.ops import creation, manipulation, statistical, tensor_conversion
from xgrad.support.hints import explained

__all__ = ["one_hot"]


@explained
def one_hot(x: Tensor, /, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Tensor:
    """Return, for each integer, a vector with a 1 at that index; not differentiable.

    Parameters
    ----------
    x : Tensor
        Integers from 0 to ``num_classes - 1``, of any shape.
    num_classes : int
        The length of the vectors.
    dtype : dtype, optional
        The dtype of the result; by default float32.
    axis : int, default -1
        The axis of the vectors in the result.

    Returns
    -------
    Tensor
        Of the shape of `x`, with one more axis, on the device of `x`.

    Raises
    ------
    TypeError
        If `x` does not hold integers, or `num_classes` is not an int.
    ValueError
        If `num_classes` is negative.
    IndexError
        If an integer is out of range, or there is no such axis. Integers are not checked on
        ``cuda``, where the check would synchronize: the vector of one out of range is 0.

    Notes
    -----
    Like ``array_api_extra.one_hot``. ``torch.nn.functional.one_hot`` returns integers, as this
    function does with ``dtype=xgrad.int64``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.one_hot(xgrad.asarray([0, 2]), 3)
    Tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    x = as_tensor("one_hot", "x", x)
    if x.dtype.kind not in "iu":
        raise TypeError(f"one_hot: expected x of integers, got {x.dtype}: use .astype(int64)")
    num_classes = as_int("one_hot", "num_classes", num_classes)
    axis = front_axis("one_hot", x, axis, added=1)
    if num_classes < 0:
        raise ValueError(f"one_hot: expected num_classes of 0 or more, got {num_classes}")
    # The range of uint8 may be too short for the classes.
    x = tensor_conversion.astype(x, dtypes.int64, copy=False)
    backend = x.device.backend
    inside = statistical.all((x >= 0) & (x < num_classes))
    if not backend.asynchronous and not check_true(inside.device, inside._data):
        bounds = [statistical.min(x), statistical.max(x)]
        got = (
            "others"
            if x.device.level
            else "values from {} to {}".format(*[bound.item() for bound in bounds])
        )
        raise IndexError(f"one_hot: expected x below {num_classes}, and not below 0, got {got}")
    classes = creation.arange(num_classes, dtype=dtypes.int64, device=x.device)
    hits = manipulation.expand_dims(x, axis=-1) == classes
    return tensor_conversion.astype(
        manipulation.moveaxis(hits, -1, axis), dtypes.float32 if dtype is None else dtype
    )
