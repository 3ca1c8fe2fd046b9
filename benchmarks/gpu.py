"""A GPU: training steps, ops with their launches, and transfers.

Steps are those of the benchmark `step`, eager and captured, the latter as a CUDA graph; in full float32 (no TF32) for
every peer, with one synchronization at the end of each block. Launches are the ops of the benchmark `ops`, also with
one synchronization a block; each transfer is synchronized. The GPU accesses pinned memory directly: xgrad's results on
the host are in pinned memory, up to 256 MiB. After an interruption (Ctrl-C), the results so far are written. `--device
cpu` runs all this without a GPU, as a test.
"""

from __future__ import annotations

import xgrad
from benchmarks import ops
from benchmarks.harness import Options, UsageError, begin, timed
from benchmarks.report import Cells, Result, Table
from benchmarks.step import compared, expected, named, scaled

PEERS = {
    "xgrad": "xgrad_peer:step",
    "xgrad captured": "xgrad_peer:step_captured",
    "PyTorch": "pytorch:step",
    "PyTorch CUDA graph": "pytorch:step_graph",
    "JAX jit": "jax_jit:step",
}
LAUNCHES = {
    "xgrad": "xgrad_peer:op",
    "array library": "xgrad_peer:library_op",
    "PyTorch": "pytorch:op",
    "JAX": "jax_jit:op",
}
CHAINS = {"xgrad": "xgrad_peer:chain", "PyTorch": "pytorch:chain"}
TRANSFERS = {
    "xgrad to the device": "xgrad_peer:to_device",
    "PyTorch to the device": "pytorch:to_device",
    "xgrad to the device pinned": "xgrad_peer:pinned_to_device",
    "PyTorch to the device pinned": "pytorch:pinned_to_device",
    "xgrad to the host": "xgrad_peer:to_host",
    "PyTorch to the host": "pytorch:to_host",
    "PyTorch to the host pinned": "pytorch:to_pinned_host",
}
OURS = ("xgrad", "xgrad captured")
RATIOS = {f"{peer} / {own}": ([peer], [own]) for own in OURS for peer in PEERS if peer not in OURS}
RATIOS["xgrad / xgrad captured"] = (["xgrad"], ["xgrad captured"])
NETWORKS = (
    ((784, 256, 128, 10), 128),
    ((784, 1024, 1024, 10), 256),
    ((1024, 2048, 2048, 10), 512),
    ((4096, 4096, 4096, 10), 256),
    ((8192, 8192, 10), 128),
)
QUICK = (((5, 4, 3), 8),)
BYTES = (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 27)


def run(options: Options) -> Result:
    try:
        device = xgrad.Device(options.device)
    except xgrad.DeviceError as error:
        raise UsageError(f"{error} (`--device cpu` runs without a GPU)") from error
    options, on = options.filled(), {"device": options.device}
    result = begin("gpu", __doc__ or "", options)
    result.environment |= {"device": device.backend.describe(device.index), **device.backend.versions()}
    networks = {name: case | on for name, case in named(QUICK if options.quick else NETWORKS).items()}
    peers, launched, chains, moved = options.chosen(PEERS, LAUNCHES, CHAINS, TRANSFERS)
    sizes = {f"{size >> 10} KiB": size for size in (BYTES[:1] if options.quick else BYTES)}
    steps: Cells = {}
    launches: Cells = {}
    times: Cells = {}
    try:
        timed(result, peers, networks, options, expected, steps)
        launches |= ops.measured(result, launched, chains, options, **on)
        timed(result, moved, {name: {"size": size, **on} for name, size in sizes.items()}, options, None, times)
    except KeyboardInterrupt:
        result.fail("all peers", "interrupted: later results are missing", "gpu")
    rates = {
        direction: {name: [sizes[name] / s / 1e9 for s in samples] for name, samples in cells.items()}
        for direction, cells in times.items()
    }
    result.tables = [
        Table("Time of a step", "µs", scaled(steps, 1e6), "bars"),
        Table("Ratios, block by block", "", compared(steps, RATIOS)),
        Table("Time of an op, launches included", "µs", scaled(launches, 1e6), "bars"),
        Table("Transfers", "GB/s", rates, "bars"),
    ]
    return result
