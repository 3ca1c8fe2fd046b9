"""Runs of the fuzzers.

``python -m tests.fuzz programs|transforms|arguments COUNT [SEED]`` or ``calls COUNT [SEED [NAME]]``
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator

from . import arguments, calls, programs, transforms

CHECKS = {"programs": programs.check, "transforms": transforms.check, "arguments": arguments.check}


def run(subject: str, check: Callable[[int], str], count: int, seed: int = 0) -> int:
    """Check seeds, print mismatches and a summary, and return the number of mismatches.

    More than 1000 seeds are checked on all processors.
    """
    outcomes: Counter[str] = Counter()
    start, seeds = time.monotonic(), range(seed, seed + count)
    with contextlib.ExitStack() as stack:
        # of processes that are killed, too
        os.environ["TMPDIR"] = stack.enter_context(tempfile.TemporaryDirectory())
        results: Iterator[str]
        if count > 1000:
            pool = stack.enter_context(multiprocessing.get_context("spawn").Pool())
            results = pool.imap_unordered(check, seeds, chunksize=50)
        else:
            results = map(check, seeds)
        for outcome in results:
            if outcome.startswith("MISMATCH"):
                print(ascii(outcome), flush=True)
            outcomes[outcome.partition(":")[0].partition(" with")[0]] += 1
    print(
        f"{count} {subject} of seeds {seed} to {seed + count - 1} in"
        f" {time.monotonic() - start:.0f} s"
    )
    print("\n".join(f"{n:8} {outcome}" for outcome, n in outcomes.most_common()))
    return outcomes["MISMATCH"]


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes that follow
    subject, *numbers = sys.argv[1:4]
    if subject == "calls":
        calls.main(*map(int, numbers), *sys.argv[4:])
    elif subject in CHECKS:
        sys.exit(run(subject, CHECKS[subject], *map(int, numbers)) > 0)
    else:
        sys.exit(f"{__doc__}")
