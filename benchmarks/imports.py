"""Time of an import in a fresh interpreter, without the start and end of Python itself.

The benchmark fails if the import of xgrad takes more than 1.3 times as long as NumPy's, by the
median of the rounds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec

from benchmarks import environment
from benchmarks.harness import Options, begin
from benchmarks.report import Cells, Result, Table
from benchmarks.statistics import ratios, spread

BOUND = 1.3  # largest ratio to NumPy's time
PEERS = {
    "xgrad": "xgrad",
    "NumPy": "numpy",
    "PyTorch": "torch",
    "JAX": "jax",
    "scikit-learn": "sklearn.neural_network",
    "MyGrad": "mygrad",
    "HIPS autograd": "autograd",
}


def seconds(statement: str, env: dict[str, str]) -> float:
    """Return the seconds in which a new interpreter starts, runs a statement and ends."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, env=env)
    return time.perf_counter() - start


def run(options: Options) -> Result:
    options = options.filled(threads=1, repeats=11)
    result = begin("import", __doc__ or "", options)
    (peers,) = options.chosen(PEERS)
    env = environment.for_workers(1, "cpu")
    for peer, module in list(peers.items()):
        if not find_spec(module.partition(".")[0]):
            result.leave_out(peer, f"{module.partition('.')[0]} is not installed", "all")
            del peers[peer]
    cells: Cells = {peer: {"import": []} for peer in peers}
    for i in range((options.repeats or 1) + 1):
        python = seconds("pass", env)
        for peer, module in peers.items():
            spent = seconds(f"import {module}", env) - python
            if i:  # the first round fills the caches
                cells[peer]["import"].append(1e3 * spent)
    result.tables = [Table("Time of an import", "ms", cells, "bars")]
    if "NumPy" in cells:
        numpy = cells["NumPy"]["import"]
        others = {
            f"{peer} / NumPy": {"import": ratios(c["import"], numpy)}
            for peer, c in cells.items()
            if peer != "NumPy"
        }
        result.tables.append(Table("Ratios, round by round", "", others))
        if "xgrad" in cells and not options.quick:
            check(result, others["xgrad / NumPy"]["import"])
    return result


def check(result: Result, ratios: Sequence[float]) -> None:
    """Record a failure if the median of the ratios is above the bound."""
    if (median := spread(ratios).median) > BOUND:
        result.fail(
            "xgrad",
            f"takes {median:.2f} times as long as NumPy: expected at most {BOUND}",
            "import",
        )
