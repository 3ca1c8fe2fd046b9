"""Gradients through code that others wrote: SciPy's and scikit-learn's, handed the arrays of a library.

Each is called with arrays that require gradients. One flows if the values are those with NumPy, and the derivative
along a random direction is that of central differences through NumPy. All in float64, in a process of its own for each
peer and subject, with SCIPY_ARRAY_API=1 and scikit-learn's array_api_dispatch. What each call path needs, of the
namespace and of arrays, is what it asked of xgrad's while it ran. Where none of xgrad's flows, the reason stands.
"""

from __future__ import annotations

from importlib import metadata

from benchmarks.harness import Options, begin, crew
from benchmarks.reach.path import FLOWS
from benchmarks.reach.verdicts import SUBJECTS
from benchmarks.report import Cells, Result, Table, Words

#: The versions that the list is for: what stops in these may flow in others, and the reverse.
LISTED = {"scipy": "1.17", "scikit-learn": "1.9"}
PEERS = {"xgrad": "ours:pullback", "PyTorch": "pytorch:pullback"}


def unlisted(package: str) -> str:
    """Return why the list is not for what is installed of a package, or nothing."""
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        return f"needs {package}"
    listed = LISTED[package]
    return "" if found.startswith(f"{listed}.") else f"the list is for {package} {listed}, not {found}"


def run(options: Options) -> Result:
    options = options.filled(threads=1, repeats=1)
    result = begin("reach", __doc__ or "", options)
    result.settings = {"threads": 1}
    (peers,) = options.chosen(PEERS)
    counts: Cells = {peer: {} for peer in ("call paths", *peers)}
    for subject in SUBJECTS[:1] if options.quick else SUBJECTS:
        title = subject.replace("_", " ").replace("scipy", "SciPy").replace("sklearn", "scikit-learn")
        words: dict[str, dict[str, str]] = {}
        needs: dict[str, str] = {}
        for peer, target in peers.items():
            with crew(
                result, {peer: target}, "benchmarks.reach.verdicts:Verdicts", title, {"subject": subject}, options
            ) as members:
                for _, found in members.ask("verdicts"):
                    counts["call paths"][title] = [len(found)]
                    counts[peer][title] = [sum(verdict == FLOWS for verdict in found.values())]
                    for path, verdict in found.items():
                        words.setdefault(path, {})[peer] = verdict
                for _, stops in members.ask("stops") if peer == "xgrad" else ():
                    for path, reason in stops.items():
                        words[path][peer] = f"no: {reason}"
                for _, found in members.ask("needs") if peer == "xgrad" else ():
                    needs = found
        for path, needed in needs.items():
            words[path]["needs"] = needed
        result.words.append(Words(title, "call path", words))
    for row in counts.values():
        row["all"] = [sum(cell[0] for cell in row.values())]
    result.tables = [Table("Call paths with a gradient that flows", "", counts, "bars", corner="peer")]
    return result
