"""A chain of a million additions, forward, backward and freed, against PyTorch: ``python -m benchmarks.chain``.

Each library runs in fresh processes, in turn, on one thread; what is printed are medians and their spread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

PROGRAM = """
import json, sys, time
import {module} as library
{setup}
x = library.{tensor}(1.0, requires_grad=True)
start = time.perf_counter()
y = x
for _ in range({length}):
    y = y + 1.0
middle = time.perf_counter()
y.backward()
end = time.perf_counter()
del y
freed = time.perf_counter()
assert x.grad.item() == 1 and sys.getrecursionlimit() == 1000
print(json.dumps([middle - start, end - middle, freed - end, freed - start]))
"""
LIBRARIES = {
    "xgrad": {"module": "xgrad", "tensor": "Tensor", "setup": ""},
    "PyTorch": {"module": "torch", "tensor": "tensor", "setup": "library.set_num_threads(1)"},
}


def measure(length: int, rounds: int) -> dict[str, list[list[float]]]:
    """Return for each library that is installed, for each round, the seconds of each part and of all."""
    times: dict[str, list[list[float]]] = {}
    for _ in range(rounds):
        for name, words in LIBRARIES.items():
            program = PROGRAM.format(length=length, **words)
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
            if done.returncode and "ModuleNotFoundError" in done.stderr:
                continue
            done.check_returncode()
            times.setdefault(name, []).append(json.loads(done.stdout))
    return times


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    times = measure(asked.length, asked.rounds)
    print(f"{asked.length} additions, seconds: median of {asked.rounds} (least to most)")
    for name, rounds in times.items():
        columns = list(zip(*rounds, strict=True))
        parts = [f"{statistics.median(c):.2f} ({min(c):.2f} to {max(c):.2f})" for c in columns]
        print(f"{name:8} forward {parts[0]}, backward {parts[1]}, freed {parts[2]}, all {parts[3]}")
    if len(times) == 2:
        ours, theirs = (statistics.median(r[-1] for r in rounds) for rounds in times.values())
        print(f"xgrad takes {ours / theirs:.2f} of PyTorch's time")


if __name__ == "__main__":
    main()
