"""The parts of ``make gpu-check``: cases on a device, each with figures or an error.

``python -m benchmarks.gpu_parts PART DEVICE I/N`` runs every Nth case from the Ith on, except for
the cases named in a JSON list on standard input. It writes a line of JSON at the start and at the
end of each case. An error on a GPU can make all later work of a process fail: the process then ends
with the status `UNUSABLE`, and `benchmarks.gpu_check` starts another one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

import xgrad
from benchmarks import agreement, gpu_cells, gpu_sanitized
from benchmarks.environment import ROOT
from benchmarks.gpu_cells import Cases, Figures
from benchmarks.harness import agree
from benchmarks.peers import xgrad_peer
from benchmarks.step import expected
from xgrad import cli
from xgrad.capture import CaptureWarning
from xgrad.parity import fused_parity, seed_parity, training_parity
from xgrad.parity.cases import OP_CASES
from xgrad.parity.compare import compare
from xgrad.parity.op_case import OpCase
from xgrad.parity.run_op import options, outputs, quiet, tensors

UNUSABLE = 3


class Reporter:
    """Reporter of a share of the cases, which it selects and runs.

    It writes the start and the end of each case.
    """

    def __init__(
        self, device: str, share: int, shares: int, done: Sequence[str], write: Callable[[str], Any]
    ) -> None:
        self.device = device
        self.share = share
        self.shares = shares
        self.done = set(done)
        self._write = write

    def write(self, **event: Any) -> None:
        self._write(json.dumps(event, default=float) + "\n")

    def select(self, names: Sequence[str]) -> list[str]:
        """Return the names of this share that are not done yet."""
        self.write(total=len(names))
        return [name for name in names[self.share :: self.shares] if name not in self.done]

    def run(self, cases: Cases) -> None:
        for name in self.select(list(cases)):
            self.write(start=name)
            try:
                figures, error = cases[name](), ""
            except Exception as failure:  # any error of a device is a result
                figures, error = None, f"{type(failure).__name__}: {failure}"
            self.end(name, figures, error)

    def end(self, case: str, figures: Figures | None, error: str) -> None:
        self.write(case=case, figures=figures or {}, error=error[:500])
        if error and not works(self.device):
            os._exit(UNUSABLE)  # without destructors, which would wait for the device


class TestReporter:
    """A pytest plug-in that treats each test as a case."""

    __test__ = False

    def __init__(self, reporter: Reporter) -> None:
        self.reporter, self.figures, self.error = reporter, Figures(), ""

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and report.nodeid not in self.reporter.done:
            self.reporter.end(report.nodeid, None, str(report.longrepr).splitlines()[-1])

    @pytest.hookimpl(trylast=True)  # after the selection by device
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        wanted = set(self.reporter.select([item.nodeid for item in items]))
        items[:] = [item for item in items if item.nodeid in wanted]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.figures, self.error = {}, ""
        self.reporter.write(start=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.skipped:
            reason = (
                report.longrepr[2]
                if isinstance(report.longrepr, tuple)
                else getattr(report, "wasxfail", "")
            )
            self.figures = {"skipped": reason.removeprefix("Skipped: ")}
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.error = self.error or (crash.message if crash else str(report.longrepr))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.reporter.end(nodeid, self.figures, self.error)


def works(device: str) -> bool:
    """Return whether a small computation is right."""
    try:
        return bool((xgrad.ones(4, device=device) * 3).sum().item() == 12)
    except Exception:  # any error is the answer
        return False


def smoke(device: str) -> Cases:
    """Return basic checks of a device."""
    on, rng = xgrad.Device(device), np.random.default_rng(0)
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float32)

    def close(got: xgrad.Tensor, right: np.ndarray) -> None:
        np.testing.assert_allclose(got.cpu().numpy(), right, rtol=1e-4, atol=1e-4)

    def gradient() -> None:
        x = xgrad.Tensor(a, device=device, requires_grad=True)
        xgrad.tanh(x @ x).sum().backward()
        assert x.grad is not None
        g = 1 - np.tanh(a @ a) ** 2
        close(x.grad, g @ a.T + a.T @ g)

    def drawn(where: str) -> np.ndarray:
        xgrad.manual_seed(0)
        return xgrad.random.rand(1000, device=where).cpu().numpy()

    def captured() -> Figures | None:
        if skipped := _without_replay(on):
            return skipped
        _losses(xgrad_peer.step_captured, device)
        return None

    return {
        "transfers": lambda: close(xgrad.asarray(a, device=device), a),
        "elementwise": lambda: close(
            xgrad.exp(xgrad.asarray(a, device=device)) * 2 + 1, np.exp(a) * 2 + 1
        ),
        "sum": lambda: close(xgrad.asarray(a, device=device).sum(axis=0), a.sum(axis=0)),
        "matmul": lambda: close(
            xgrad.asarray(a, device=device) @ xgrad.asarray(b, device=device), a @ b
        ),
        "gradient": gradient,
        "random numbers": lambda: np.testing.assert_array_equal(drawn(device), drawn("cpu")),
        "training step": partial(_losses, xgrad_peer.step, device),
        "captured training step": captured,
        "replays": partial(_replays, on),
        "memory": on.memory,
    }


def _without_replay(device: xgrad.Device) -> Figures | None:
    """Return the reason to skip captured steps on a device that runs them eagerly."""
    return None if device.backend.executor else {"skipped": f"{device} does not replay"}


def _losses(make: Callable[..., Callable[[], Any]], device: str) -> None:
    sizes, batch = (784, 256, 128, 10), 128
    call, right = make(sizes, batch, device), expected(sizes, batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CaptureWarning)
        losses = [float(call()) for _ in range(5)]
    assert agree(losses, right), f"expected the losses {right.values}, got {losses}"


def _replays(device: xgrad.Device) -> Figures | None:
    """Compare losses of eager and captured steps with cpu's; the memory must not grow."""
    if skipped := _without_replay(device):
        return skipped
    sizes, batch, count = (64, 32, 10), 32, 50
    on_cpu, eager = (xgrad_peer.step(sizes, batch, name) for name in ("cpu", str(device)))
    captured = xgrad_peer.step_captured(sizes, batch, str(device))
    with warnings.catch_warnings():
        warnings.simplefilter("error", CaptureWarning)
        right = [float(on_cpu()) for _ in range(count)]
        for step in (eager, captured):
            first = [float(step()) for _ in range(5)]
            before = device.memory().get("reserved", 0)
            losses = first + [float(step()) for _ in range(count - 5)]
            np.testing.assert_allclose(losses, right, rtol=1e-3)
            grown = device.memory().get("reserved", 0) - before
            assert grown <= 0, f"expected no more memory after {count} steps than 5, got {grown} B"
    return {"largest loss difference": max(abs(x - y) for x, y in zip(losses, right, strict=True))}


def op_table(device: str, dtype: str) -> Cases:
    """Return the op table: values and gradients compared with the high-precision reference."""
    return {f"{op} {dtype}": partial(_op, op, device, dtype) for op in OP_CASES}


def _op(op: OpCase, device: str, dtype: str) -> Figures:
    result = compare(op, [xgrad.Device(device)], [dtype], time=False)
    if result.skipped:
        return {"skipped": result.skipped[device]}
    messages = [
        f"{bad.quantity} on {bad.device}:"
        f" {bad.note or f'off by {bad.error:.3g} {bad.unit}, tolerated {bad.limit:.3g}'}, on"
        f" {bad.sample}"
        for bad in result.failures
    ]
    assert not messages, "; ".join(messages)
    return {
        cell.quantity: float(f"{cell.error:.3g}") for cell in result.cells if cell.device == device
    }


def fused(device: str) -> Cases:
    """Return the fused kernels, compared with the generic rules that they replace."""
    on = xgrad.Device(device)
    return {
        f"{what} {dtype}": partial(_kernel, what, on, dtype)
        for dtype in ("float32", "float64")
        for what in fused_parity.KERNEL_CASES
    }


def _kernel(what: str, device: xgrad.Device, dtype: str) -> Figures:
    if fused_parity.KERNEL_CASES[what].kernel not in device.backend.kernels:
        return {"skipped": f"{device} has no kernel for it"}
    kernel = fused_parity.compare_kernel(what, device, dtype)
    assert kernel.passed, kernel.note or f"off by {kernel.error:.3g}, tolerated {kernel.limit:.3g}"
    return {"error": float(f"{kernel.error:.3g}")}


def capture(device: str) -> Cases:
    """Return the op table in float32: captured values and gradients compared with eager ones."""
    return {str(op): partial(_captured, op, xgrad.Device(device)) for op in OP_CASES}


def _captured(op: OpCase, device: xgrad.Device) -> Figures | None:
    sample, fn = op.samples[0], op.fn  # not `op`, whose samples would be searched for state
    if skipped := _without_replay(device):
        return skipped
    if reason := op.unsupported.get(device.type) or op.missing():
        return {"skipped": reason}
    fixed = options(sample, device)

    def step(*inputs: Any) -> list[xgrad.Tensor]:
        xs = [
            x.detach().requires_grad_() if op.differentiable and differentiable(x) else x
            for x in inputs
        ]
        outs = outputs(fn(*xs, **fixed))
        ends, leaves = (
            [x for x in each if differentiable(x) and x.requires_grad] for each in (outs, xs)
        )
        seeds = [xgrad.ones_like(x.detach()) for x in ends]
        grads = (
            xgrad.autograd.grad(ends, leaves, seeds, allow_unused=True) if ends and leaves else ()
        )
        return [x.detach() for x in (*outs, *grads) if x is not None]

    replayed = xgrad.capture(step)
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)
        inputs = tensors(sample, device, np.dtype("float32"), False)
        right = [x.cpu().numpy() for x in step(*inputs)]
        for _ in range(3):
            got = [x.cpu().numpy() for x in replayed(*inputs)]
            for x, y in zip(got, right, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5, strict=True)
    return (
        {"skipped": f"runs eagerly: {replayed.refusal.partition(': ')[2]}"}
        if replayed.refusal
        else None
    )


def differentiable(x: Any) -> bool:
    return isinstance(x, xgrad.Tensor) and x.dtype.kind in "fc"


def sanitizer(device: str) -> Cases:
    """Return small captured programs: by themselves, and under NVIDIA's compute-sanitizer."""
    return {
        f"{name}{' under compute-sanitizer' * checked}": partial(_sanitized, name, device, checked)
        for checked in (False, True)
        for name in gpu_sanitized.PROGRAMS
    }


def _sanitized(name: str, device: str, checked: bool) -> Figures | None:
    """Run a program in a process of its own: an error of memory may end it."""
    if skipped := _without_replay(xgrad.Device(device)):
        return skipped
    if name in gpu_sanitized.ON_CUDA and xgrad.Device(device).type != "cuda":
        return {"skipped": f"{device} has no pool of memory with a limit"}
    tool = which("compute-sanitizer") or which("compute-sanitizer", path="/usr/local/cuda/bin")
    if checked and not tool:
        return {"skipped": "compute-sanitizer, of the CUDA toolkit, is not on PATH"}
    memcheck = [tool, "--tool", "memcheck", "--error-exitcode", "9"] if checked and tool else []
    program = [sys.executable, "-m", "benchmarks.gpu_sanitized", name, "--device", device]
    done = subprocess.run([*memcheck, *program], cwd=ROOT, capture_output=True, text=True)
    printed = (done.stdout + done.stderr).strip().splitlines()
    errors = [line for line in printed if "=========" in line][:8] or printed[-1:]
    assert not done.returncode, f"status {done.returncode}: {' '.join(errors)}"
    return None


def mnist(device: str) -> Cases:
    """Return training runs on MNIST, or else on the embedded digits, compared with cpu."""
    return {name: partial(_train, device, name) for name in ("capture", "no-capture")}


def _train(device: str, mode: str) -> Figures:
    runs = {}
    for each in (device, "cpu"):
        with tempfile.TemporaryDirectory() as folder:
            command = "train mnist --no-download --fallback digits --quiet --out"
            assert cli.main([*command.split(), f"{folder}/run", "--device", each, f"--{mode}"]) == 0
            files = [Path(folder, "run", name) for name in ("metrics.jsonl", "timing.jsonl")]
            metrics, timing = (
                json.loads(file.read_text("utf-8").splitlines()[-1]) for file in files
            )
            runs[each] = {**metrics, **timing}
    got, right = runs[device]["test_accuracy"], runs["cpu"]["test_accuracy"]
    assert abs(got - right) <= 0.01, (
        f"test accuracy: expected cpu's, {right}, within 0.01, got {got}"
    )
    return runs[device]


def parity(device: str) -> Cases:
    """Return seeded draws, training runs, arrays, CuPy's functions, and the op table in float64."""
    on, cpu, dtypes = xgrad.Device(device), xgrad.Device("cpu"), ("float32", "float64")

    def seeds(dtype: str) -> None:
        wrong = [f"{x.what}: {x.note}" for x in seed_parity.compare_seeds(on, dtype) if not x.equal]
        assert not wrong, "; ".join(wrong)

    def training(dtype: str, optimizer: str) -> Figures:
        baseline = training_parity.isolated(training_parity.train, cpu, dtype, optimizer)
        run = training_parity.compare_training(on, dtype, optimizer, baseline)
        off = {"losses": run.loss_error, "weights": run.weight_error}
        assert run.passed, run.note or f"off by {off}, tolerated {run.limit}"
        return off

    return {
        **{f"seeded draws {dtype}": partial(seeds, dtype) for dtype in dtypes},
        **{
            f"training by {name} {dtype}": partial(training, dtype, name)
            for name in training_parity.OPTIMIZERS
            for dtype in dtypes
        },
        **{check.label: partial(agreement.compare, check, on) for check in agreement.checks(on)},
        **op_table(device, "float64"),
    }


#: Cases by part. Parts that measure also take `quick`.
CASES: dict[str, Callable[..., Cases]] = {
    "smoke": smoke,
    "models": gpu_cells.trained_models,
    "bandwidth": gpu_cells.rates,
    "steps": gpu_cells.steps,
    "ops": partial(op_table, dtype="float32"),
    "capture": capture,
    "sanitizer": sanitizer,
    "fused": fused,
    "mnist": mnist,
    "parity": parity,
    "speed": gpu_cells.speed,
}
QUICK = ("models", "bandwidth", "steps", "speed")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_parts")
    parser.add_argument("part", choices=[*CASES, "tests"])
    parser.add_argument("device")
    parser.add_argument("share", metavar="I/N")
    parser.add_argument("--quick", action="store_true", help="tiny sizes in parts that measure")
    options = parser.parse_args(arguments)
    events = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # output of the cases goes to standard error
    share, shares = map(int, options.share.split("/"))
    reporter = Reporter(options.device, share, shares, json.load(sys.stdin), events.write)
    if options.part == "tests":
        settings = (
            "-q",
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
            "--device",
            options.device,
        )
        pytest.main(
            [str(ROOT / "tests"), f"--rootdir={ROOT}", *settings], plugins=[TestReporter(reporter)]
        )
    else:
        sizes = {"quick": True} if options.quick and options.part in QUICK else {}
        reporter.run(CASES[options.part](options.device, **sizes))
    reporter.write(end=True)


if __name__ == "__main__":
    main()
