"""Compare `xgrad.compat.torch` with PyTorch on PyTorch's own samples of calls.

Usage: ``python -m tests.pytorch_samples [functions|modules|optimizers] [NAME ...]``. PyTorch's
package has them for its own tests: arguments of functions (OpInfo), of modules (ModuleInfo) and of
optimizers (OptimizerInfo). Each call must agree with PyTorch in values, dtypes, shapes and
gradients, or be refused: a difference is a failure. The table of all names is written to
``results.md``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.pytorch_samples import functions, modules, optimizers
from tests.pytorch_samples.outcome import KINDS, Outcome

HERE = Path(__file__).resolve().parent
SAMPLES = {
    "functions": functions.outcomes,
    "modules": modules.outcomes,
    "optimizers": optimizers.outcomes,
}
#: The share of samples of existing names that must agree.
LEAST = 0.95


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.pytorch_samples", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("samples", nargs="?", choices=SAMPLES, help="one kind (default: all)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of PyTorch (default: all)")
    parser.add_argument(
        "--first", type=int, metavar="N", help="run N samples of each function and dtype"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print every reason")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    text, failed = [TITLE], False
    for kind in [args.samples] if args.samples else SAMPLES:
        run = SAMPLES[kind]
        if kind == "functions" and args.first is not None:
            run = partial(functions.outcomes, count=args.first)
        results = by_name(run(args.names), args.verbose)
        totals = Counter(outcome.kind for found in results.values() for outcome in found)
        present = sum(totals.values()) - totals["missing"]
        share = totals["agrees"] / present if present else 0.0
        summary = f"{kind}: " + ", ".join(f"{totals[k]} {LABELS[k]}" for k in KINDS)
        summary += f"; of the samples of existing names {share:.1%} agree"
        print(summary, flush=True)
        failed = failed or bool(totals["differs"] or totals["error"]) or share < LEAST
        text += [f"\n## {kind.capitalize()}\n\n{summary}.\n", *table(results)]
    if not args.samples and args.first is None:
        (HERE / "results.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    return int(failed)


TITLE = """# PyTorch's samples on xgrad.compat.torch

Written by `make pytorch-samples`. A sample is a call from PyTorch's own tests. It agrees if \
values, dtypes, shapes and gradients do; it is refused if an error says that something is not \
available or not valid; a name is missing if `xgrad.compat.torch` does not have it."""

LABELS = {
    "agrees": "agree",
    "refused": "refused",
    "differs": "differ",
    "error": "fail otherwise",
    "missing": "of missing names",
}


def by_name(outcomes: Iterator[tuple[str, Outcome]], verbose: bool) -> dict[str, list[Outcome]]:
    """Collect outcomes by name, and print the reasons of failures."""
    results: dict[str, list[Outcome]] = {}
    for name, outcome in outcomes:
        found = results.setdefault(name, [])
        is_new = outcome.kind not in [other.kind for other in found]
        found.append(outcome)
        if outcome.kind in ("differs", "error") and (is_new or verbose):
            print(f"{outcome.kind.upper()} {name}: {outcome.reason}", flush=True)
        elif verbose and outcome.kind == "refused":
            print(f"refused {name}: {outcome.reason}", flush=True)
    return results


def table(results: dict[str, list[Outcome]]) -> list[str]:
    """Return the lines of a Markdown table, after the names whose samples all agree."""
    complete = [n for n, found in results.items() if all(o.kind == "agrees" for o in found)]
    missing = [n for n, found in results.items() if all(o.kind == "missing" for o in found)]
    lines = [f"All samples agree: {', '.join(f'`{n}`' for n in complete)}.\n"]
    lines += [f"Missing: {', '.join(f'`{n}`' for n in missing)}.\n"] if missing else []
    lines += ["| name | agree | refused | differ | fail | first reason |", "|---" * 6 + "|"]
    for name in sorted(set(results) - {*complete, *missing}):
        counts = Counter(outcome.kind for outcome in results[name])
        reason = next(o.reason for o in results[name] if o.kind != "agrees")
        cells = [counts[kind] for kind in ("agrees", "refused", "differs", "error")]
        lines.append(f"| `{name}` | {' | '.join(map(str, cells))} | {reason.replace('|', '/')} |")
    return lines


if __name__ == "__main__":
    # in a thread, for PyTorch inspects the stack for each sample: frames of runpy take long
    with ThreadPoolExecutor(1) as pool:
        sys.exit(pool.submit(main).result())
