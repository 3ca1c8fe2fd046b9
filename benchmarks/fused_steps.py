"""Captured steps on a GPU with and without fused kernels: values, nodes of the CUDA graph, times.

``python -m benchmarks.fused_steps`` prints a table; ``--output FILE`` also writes it to a file.
Losses and parameters after five steps are compared. They are bit-identical with and without fused
kernels, unless the model adds at repeated indices, as an embedding's gradient does, in an order
that differs from run to run. A time is the least mean of three blocks of calls, in one process,
from the first launch until the device has computed all. The graph alone is timed by launching it
again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import xgrad
from benchmarks.device_figures import nodes
from benchmarks.models import MODELS, QUICK
from benchmarks.peers import models_xgrad

KINDS: dict[str, dict[str, Any]] = {
    "eager": {},
    "captured": {"native": False},
    "captured, fused": {"native": None},
}
NAMES = [
    "step, µs",
    "graph alone, µs",
    "nodes of the graph",
    "largest difference from the CPU",
    "bits as captured",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, as a test: the figures mean nothing"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60,
        help="no model is begun after them (default: %(default)s)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write the table to a file of Markdown"
    )
    options = parser.parse_args()
    device, start, lines = xgrad.Device(options.device), time.monotonic(), list[str]()
    lines += [f"# Fused steps on {device.backend.describe(device.index)}", ""]
    lines += ["Made by `python -m benchmarks.fused_steps`", ""]
    lines += [f"- {name}: {version}" for name, version in device.backend.versions().items()]
    lines += ["", f"| model | | {' | '.join(NAMES)} |", "|---|---|" + "---|" * len(NAMES)]
    for model, sizes in (QUICK if options.quick else MODELS).items():
        if time.monotonic() - start < options.seconds:
            for kind, figures in measured(device, sizes).items():
                lines.append(
                    f"| {model} | {kind} |"
                    f" {' | '.join([str(figures.get(name, '')) for name in NAMES])} |"
                )
                print(lines[-1], flush=True)
    text = "\n".join([*lines, ""])
    print(text)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text, encoding="utf-8")


def measured(device: Any, sizes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the figures of a model for each kind of step."""
    right = after_five(models_xgrad.trained(dtype="float32", device="cpu", **sizes))
    values = {}
    figures = {}
    for kind, options in KINDS.items():
        step, model = models_xgrad.trained(dtype="float32", device=str(device), **sizes)
        call: Any = xgrad.capture(step, **options) if options else step
        values[kind] = after_five((call, model))
        row: dict[str, Any] = {"step, µs": microseconds(device, call)}
        largest = max(
            [float(np.abs(x - y).max()) for x, y in zip(values[kind], right, strict=True)]
        )
        row["largest difference from the CPU"] = f"{largest:.1e}"
        if options:
            (program,) = call._programs.values()
            graph = getattr(program.executor, "_graph", None)
            if graph is not None:
                row["graph alone, µs"] = microseconds(device, graph.launch)
                row["nodes of the graph"] = nodes(graph.graph) or ""
        figures[kind] = row
    for kind in ("eager", "captured, fused"):
        pairs = zip(values[kind], values["captured"], strict=True)
        figures[kind]["bits as captured"] = (
            "yes" if all(x.tobytes() == y.tobytes() for x, y in pairs) else "no"
        )
    return figures


def after_five(made: tuple[Callable[[], Any], Any]) -> list[np.ndarray]:
    """Return the losses of five steps, and the parameters after them, on the host."""
    call, model = made
    losses = [call() for _ in range(5)]
    return [x.detach().to("cpu").numpy().copy() for x in (*losses, *model.parameters())]


def microseconds(device: Any, call: Callable[[], Any]) -> float:
    """Return the least mean of three blocks of calls, in microseconds."""
    means = []
    for _ in range(3):
        call()
        device.synchronize()
        start, count = time.perf_counter(), 0
        while count < 10 or time.perf_counter() - start < 0.2:
            call()
            count += 1
        device.synchronize()
        means.append((time.perf_counter() - start) / count)
    return round(min(means) * 1e6, 1)


if __name__ == "__main__":
    main()
