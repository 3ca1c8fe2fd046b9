"""PyTorch, eager: the kernels of `benchmarks.bandwidth`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from benchmarks.bandwidth import CHANNELS, ROW, data
from benchmarks.peers import pytorch

SUMS: dict[str, dict[str, Any]] = {
    "sum of all": {},
    "sum over axis 0": {"dim": 0},
    "sum over axis 1": {"dim": 1},
    "sum over all but channels": {"dim": (0, 2, 3)},
}
TRANSFERS: dict[str, Callable[[int, str], Callable[[], Any]]] = {
    "host to device": pytorch.to_device,
    "pinned host to device": pytorch.pinned_to_device,
    "device to host": pytorch.to_host,
}


def kernel(kernel: str, elements: int, device: str) -> Callable[[], Any]:
    pytorch.require(device)
    if device != "cpu":
        torch.cuda.empty_cache()
    if kernel in TRANSFERS:
        return TRANSFERS[kernel](4 * elements, device)
    x = torch.from_numpy(data(kernel, elements)).to(device, copy=True)
    if kernel in SUMS:
        return partial(torch.sum, x, **SUMS[kernel])
    if kernel == "copy":
        return lambda: x.clone()
    if kernel == "Adam":
        return _adam(x)
    name, _, passes = kernel.partition(", ")
    functions: dict[str, Callable[[Any], Any]] = {
        "layer norm": nn.LayerNorm(ROW, device=device),
        "batch norm": nn.BatchNorm2d(CHANNELS, device=device),
        "softmax": partial(torch.softmax, dim=-1),
    }
    function = functions[name]
    if passes == "forward":
        forward: Callable[[], Any] = torch.no_grad()(lambda: function(x))
        return forward
    x, gradient = x.requires_grad_(), x.flip(tuple(range(x.ndim)))

    def both() -> Any:
        x.grad = None
        function(x).backward(gradient)
        return x.grad

    return both


def _adam(x: Any) -> Callable[[], Any]:
    """Return an update by PyTorch's fused Adam, one kernel for each parameter."""
    parameter = nn.Parameter(x)
    optimizer = torch.optim.Adam([parameter], fused=True)
    parameter.sum().backward()

    def update() -> Any:
        optimizer.step()
        return parameter.detach()

    return update
