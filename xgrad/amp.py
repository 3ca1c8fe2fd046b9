"""Mixed precision: matrix products in float16, parameters and losses in float32.

A training step scales the loss, so that gradients in float16 do not vanish::

    with autocast("cuda"):
        loss = cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

On a GPU this takes less time and memory. On the CPU it is supported, but slower than float32: NumPy
has no fast float16. `xgrad.set_tf32` makes float32 products faster on a GPU, without other changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.core.dtypes import float16
from xgrad.core.modes import autocast_dtypes, autocast_mode
from xgrad.optim.grad_scaler import GradScaler
from xgrad.support import hints
from xgrad.support.hints import shown
from xgrad.support.scopes import Mode

__all__ = ["GradScaler", "autocast"]
hints.install(__name__)


class autocast(Mode[Any]):
    """Cast inputs of matrix products to float16 [1]_, in a ``with`` block or decorated function.

    Linear, convolutional and recurrent layers, attention, `matmul` and `tensordot` cast float32
    inputs and weights to float16. Softmax, losses, distances, norms, sums, products, powers,
    exponentials, logarithms, and normalization layers cast to float32, as in PyTorch. Other ops use
    their inputs as they are, and float64 is left unchanged. Gradients of parameters are float32,
    like the parameters. The setting belongs to the thread or task. A captured step may contain the
    block, or be inside it: then each setting has a separate trace.

    Parameters
    ----------
    device_type : str or Device
        The type of the devices whose ops cast, such as ``"cuda"``.
    dtype : dtype, default float16
        The dtype of matrix products. xgrad has no bfloat16.
    enabled : bool, default True
        Whether to cast; False switches an outer block off.

    Raises
    ------
    TypeError
        If `dtype` is not float16, or the array library has no float16.
    DeviceError
        If there is no usable device of this type.

    References
    ----------
    .. [1] P. Micikevicius et al., "Mixed precision training", ICLR 2018.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Linear(2, 3)
    >>> with xgrad.amp.autocast("cpu"):
    ...     layer(xgrad.ones((4, 2))).dtype
    dtype('float16')
    """

    def __init__(
        self, device_type: str | Device, dtype: Any = float16, enabled: bool = True
    ) -> None:
        device = Device(device_type)
        if str(dtype).rpartition(".")[2] == "bfloat16":
            raise TypeError(
                "autocast: expected dtype float16, got bfloat16, which NumPy and xgrad do not have"
            )
        try:
            good = np.dtype(dtype) == float16
        except TypeError:
            good = False
        if not good:
            raise TypeError(f"autocast: expected dtype float16, got {shown(dtype)}")
        if enabled:
            device.backend.dtype("float16")  # raises TypeError if the library has none
        modes = {
            kind: value
            for kind, value in (autocast_dtypes.get() or {}).items()
            if kind != device.type
        }
        if enabled:
            modes[device.type] = float16
        super().__init__(autocast_dtypes, autocast_mode(frozenset(modes.items())))
