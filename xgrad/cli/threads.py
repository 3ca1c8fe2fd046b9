"""The number of BLAS threads of a training run, by the size of the network."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

import xgrad
from xgrad import nn
from xgrad.backend.threads import blas_libraries, get_num_threads, set_num_threads
from xgrad.cli.arguments import UsageError

#: Multiply-adds of a matrix product that is worth more than one thread.
WORTH_THREADS = 10**7


def largest_product(model: nn.Module, row: xgrad.Tensor, batch_size: int) -> int:
    """Return the multiply-adds of the largest product of a network's weights with a batch.

    `row` is a batch of one sample.
    """
    modules = dict(model.named_modules())
    sizes = [
        batch_size * math.prod(layer.outputs[0]) * math.prod(weight.shape[1:])
        for layer in model.summary(row).layers
        if layer.outputs and (weight := getattr(modules[layer.path], "weight", None)) is not None
    ]
    return max(sizes, default=0)


def threads_for(product: int, most: int) -> int:
    """Return the number of threads for a network, of at most `most`.

    `product` is the number of multiply-adds of its largest product.
    """
    # `python -m benchmarks threads` on two cores of an AMD EPYC: time with one thread divided by
    # the time with two, by the largest product, on idle cores 1.45 with quartiles from 0.62 (2e6),
    # 1.63 (3e7, LeNet), 1.84 (5e7, the default network on MNIST), 1.57 (1e8), 1.82 (2e9); beside a
    # busy process for each core 0.73, 1.07, 1.07, 0.85, 1.25; beside some 20 processes 0.04, 0.34,
    # 0.06, 0.18, 0.75. A thread that waits for another one, which does not run, loses a time slice
    # of the system, milliseconds, as often as there are products. Small networks gain least from
    # the second thread and lose most; from LeNet on, two threads pay on idle cores.
    return 1 if product < WORTH_THREADS else most


def variable() -> str:
    """Return the environment variable by which the user set the number, or an empty text.

    A library reads a variable of its own, and OpenMP's; it ignores the variables of others, and
    values that are not numbers above 0.
    """
    own = [f"{library['internal_api'].upper()}_NUM_THREADS" for library in blas_libraries()]
    for name in [*own, "OMP_NUM_THREADS"]:
        # OpenMP's may have a number for each level of nested regions
        first = os.environ.get(name, "").partition(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            return name
    return ""


@contextmanager
def blas_threads(requested: int | None, product: int | None) -> Iterator[str]:
    """Set the number of BLAS threads in a context, and yield a line on it; empty if it is not set.

    The number is the `requested` one, or the user's in an environment variable, or `threads_for`
    the product; None stands for the product of a network on another device than the CPU. If the
    number cannot be set, UsageError is raised if one was requested.
    """
    try:
        before = get_num_threads()
    except (ImportError, RuntimeError) as error:
        if requested is not None:
            raise UsageError(f"--threads: {error}") from error
        line = f"threads: as BLAS chooses, since {str(error).partition(': ')[2]}"
        yield line if product is not None else ""
        return
    if requested is not None:
        number, reason = requested, "by --threads"
    elif product is None:
        number, reason = before, ""
    elif name := variable():
        number, reason = before, f"by {name}"
    else:
        number = threads_for(product, before)
        reason = f"for products of {product:,} multiply-adds; --threads overrides"
    set_num_threads(number)
    try:
        yield f"threads: {number} of {os.cpu_count()}, {reason}" if product is not None else ""
    finally:
        set_num_threads(before)
