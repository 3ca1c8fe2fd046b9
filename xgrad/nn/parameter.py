"""Parameters of modules."""

from __future__ import annotations

from typing import Any

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor


class Parameter(Tensor):
    """A trainable tensor, which a `Module` registers when it is set as an attribute.

    Parameters
    ----------
    data : scalar, nested sequence, array or Tensor
        The values, which are copied and detached. Arrays keep their
        dtype; Python floats get the default dtype.
    dtype : dtype, optional
        By default the dtype of `data`.
    device : str or Device, optional
        By default the device of `data`, or the `default_device` for values from the host.
    requires_grad : bool, default True
        Whether the parameter requires a gradient; only floating dtypes can.

    Raises
    ------
    TypeError
        If `data` is not numeric, or integers or bools would require a gradient.
    DeviceError
        If the device is unknown or cannot be used.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Parameter([1.0, 2.0])
    Parameter([1., 2.], requires_grad=True)
    """

    __slots__ = ()
    # Under no_grad(), `p -= step` updates in place, whether or not `p` requires a gradient.
    _out_of_place_updates = False

    def __init__(
        self,
        data: Any,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
        requires_grad: bool = True,
    ) -> None:
        # A parameter is a leaf.
        data = data._without_history() if isinstance(data, Tensor) else data
        super().__init__(data, dtype=dtype, device=device, requires_grad=requires_grad)
