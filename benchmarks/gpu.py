"""A GPU: training steps, ops with their launches, and transfers.

The benchmark `step` runs eagerly and captured (as a CUDA graph), in full float32 (no TF32) for
every peer, and again with TF32, with one synchronization at the end of each block. The benchmark
`epoch` runs on MNIST with all images on the device, and at most three seeds. Launches are measured
by the ops of the benchmark `ops`, also with one synchronization a block; each transfer is
synchronized. The GPU accesses pinned memory directly: xgrad's results on the host are in pinned
memory, up to 256 MiB. After an interruption (Ctrl-C), the results so far are written. `--device
cpu` runs all this without a GPU, as a test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from benchmarks import epoch, ops
from benchmarks.harness import Options, begin, hardware, timed
from benchmarks.problems import images
from benchmarks.report import Cells, Result, Table
from benchmarks.step import compared, expected, named, scaled
from xgrad.data import DataError

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
EPOCHS = {
    name: epoch.PEERS[name] for name in ("xgrad", "xgrad captured", "PyTorch", "PyTorch fused Adam")
}
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
Networks = Sequence[tuple[Sequence[int], int]]  # sizes of layers, and of the batch
BYTES = (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 27)


def steps(
    result: Result,
    options: Options,
    peers: Mapping[str, str],
    tf32: bool = False,
) -> None:
    """Measure training steps."""
    how = " with TF32" * tf32
    cases = {
        name: case | {"device": options.device, "tf32": tf32}
        for name, case in named(QUICK if options.quick else NETWORKS).items()
    }
    options, times = replace(options, tf32=tf32), Cells()
    try:
        timed(result, peers, cases, options, expected, times)
    finally:  # also after an interruption
        result.tables += [
            Table(f"Time of a step{how}", "µs", scaled(times, 1e6), "bars"),
            Table(f"Ratios{how}, block by block", "", compared(times, RATIOS)),
        ]


def mnist(result: Result, options: Options, peers: Mapping[str, str]) -> None:
    """Measure training on MNIST."""
    try:
        images(options.quick)
    except DataError as error:
        result.leave_out("all peers", str(error), "MNIST")
        return
    options = replace(options, repeats=min(options.repeats or 1, 3))
    result.tables += epoch.measured(result, peers, options, device=options.device)


def launches(
    result: Result, options: Options, peers: Mapping[str, str], chains: Mapping[str, str]
) -> None:
    """Measure single ops."""
    times = ops.measured(result, peers, chains, options, device=options.device)
    result.tables.append(
        Table("Time of an op, launches included", "µs", scaled(times, 1e6), "bars")
    )


def transfers(result: Result, options: Options, peers: Mapping[str, str]) -> None:
    """Measure transfers."""
    sizes = {f"{size >> 10} KiB": size for size in (BYTES[:1] if options.quick else BYTES)}
    times = Cells()
    cases = {name: {"size": size, "device": options.device} for name, size in sizes.items()}
    try:
        timed(result, peers, cases, options, None, times)
    finally:
        rates = {
            direction: {
                name: [sizes[name] / s / 1e9 for s in samples] for name, samples in cells.items()
            }
            for direction, cells in times.items()
        }
        result.tables.append(Table("Transfers", "GB/s", rates, "bars"))


#: The sections, with their groups of peers.
SECTIONS: dict[str, tuple[Callable[..., None], tuple[Mapping[str, str], ...]]] = {
    "steps": (steps, (PEERS,)),
    "steps with TF32": (partial(steps, tf32=True), (PEERS,)),
    "ops": (launches, (LAUNCHES, CHAINS)),
    "transfers": (transfers, (TRANSFERS,)),
    "MNIST": (mnist, (EPOCHS,)),
}


def run(options: Options) -> Result:
    device = hardware(options.device)
    options = options.filled()
    result = begin("gpu", __doc__ or "", options)
    result.environment |= device
    chosen = iter(options.chosen(*(group for _, groups in SECTIONS.values() for group in groups)))
    peers = {name: [next(chosen) for _ in groups] for name, (_, groups) in SECTIONS.items()}
    try:
        for name, (measure, _) in SECTIONS.items():
            measure(result, options, *peers[name])
    except KeyboardInterrupt:
        result.fail("all peers", "interrupted: later results are missing", "gpu")
    return result
