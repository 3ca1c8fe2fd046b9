"""What ``import xgrad`` costs beside ``import numpy``: ``python -m benchmarks.imports``.

Each import runs in fresh processes, in turn; what is printed are medians of the whole process's time.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time


def seconds(statement: str) -> float:
    """Return how long a new interpreter takes to run a statement."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    statements = ["pass", "import numpy", "import xgrad"]
    times = [[seconds(statement) for statement in statements] for _ in range(rounds + 1)][1:]  # the first fills caches
    python, numpy, xgrad = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
    print(f"median of {rounds}: python {python:.0f} ms, with numpy {numpy:.0f} ms, with xgrad {xgrad:.0f} ms")
    print(f"import xgrad takes {(xgrad - python) / (numpy - python):.2f} of what import numpy takes")


if __name__ == "__main__":
    main()
