"""``python -m tests.fuzz programs COUNT [SEED]`` or ``calls COUNT [SEED [NAME]]``: long runs of the fuzzers."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import Counter

from . import calls, programs


def run_programs(count: int, seed: int = 0) -> int:
    """Check programs in all processors, print mismatches and a summary, and return the number of mismatches."""
    outcomes: Counter[str] = Counter()
    start = time.monotonic()
    with multiprocessing.get_context("spawn").Pool() as pool:
        for outcome in pool.imap_unordered(programs.check, range(seed, seed + count), chunksize=50):
            if outcome.startswith("MISMATCH"):
                print(outcome, flush=True)
            outcomes[outcome.partition(":")[0].partition(" with")[0]] += 1
    print(f"{count} programs of seeds {seed} to {seed + count - 1} in {time.monotonic() - start:.0f} s")
    print("\n".join(f"{n:8} {outcome}" for outcome, n in outcomes.most_common()))
    return outcomes["MISMATCH"]


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes that follow
    subject, *numbers = sys.argv[1:4]
    if subject == "calls":
        calls.main(*map(int, numbers), *sys.argv[4:])
    elif subject == "programs":
        sys.exit(run_programs(*map(int, numbers)) > 0)
    else:
        sys.exit(f"{__doc__}")
