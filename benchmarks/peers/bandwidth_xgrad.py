"""xgrad: the kernels of `benchmarks.bandwidth`, eagerly, and a plain copy of the array library."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import xgrad
from benchmarks.bandwidth import CHANNELS, ROW, data
from benchmarks.device_figures import empty_pool
from benchmarks.peers import xgrad_peer
from xgrad import nn, optim

SUMS: dict[str, Any] = {
    "sum of all": None,
    "sum over axis 0": 0,
    "sum over axis 1": 1,
    "sum over all but channels": (0, 2, 3),
}
TRANSFERS: dict[str, Callable[[int, str], Callable[[], Any]]] = {
    "host to device": xgrad_peer.to_device,
    "pinned host to device": xgrad_peer.pinned_to_device,
    "device to host": xgrad_peer.to_host,
}


def kernel(kernel: str, elements: int, device: str) -> Callable[[], Any]:
    empty_pool(device)
    if kernel in TRANSFERS:
        return TRANSFERS[kernel](4 * elements, device)
    x = xgrad.asarray(data(kernel, elements), device=device)
    if kernel in SUMS:
        return partial(xgrad.sum, x, axis=SUMS[kernel])
    if kernel == "copy":
        return partial(xgrad.asarray, x, copy=True)
    if kernel == "Adam":
        return _adam(x)
    name, _, passes = kernel.partition(", ")
    functions: dict[str, Callable[[Any], Any]] = {
        "layer norm": nn.LayerNorm(ROW).to(device),
        "batch norm": nn.BatchNorm2d(CHANNELS).to(device),
        "softmax": partial(nn.functional.softmax, axis=-1),
    }
    function = functions[name]
    if passes == "forward":
        return xgrad.no_grad()(lambda: function(x))
    x, gradient = x.requires_grad_(), xgrad.flip(x)

    def both() -> Any:
        x.grad = None
        function(x).backward(gradient)
        return x.grad

    return both


def _adam(x: Any) -> Callable[[], Any]:
    parameter = nn.Parameter(x)
    optimizer = optim.Adam([parameter])
    xgrad.sum(parameter).backward()

    def update() -> Any:
        optimizer.step()
        return parameter.detach()

    return update


def plain_copy(kernel: str, elements: int, device: str) -> Callable[[], Any]:
    """Return a function that copies an array of the size to another one on the device."""
    empty_pool(device)
    on = xgrad.Device(device)
    source = on.backend.from_host(data(kernel, elements), on.index)
    target = on.backend.from_host(data(kernel, elements), on.index)

    def copy() -> Any:
        if on.type == "cuda":
            target.data.copy_from_device_async(source.data, source.nbytes)
        else:
            target[...] = source
        return target

    return copy
