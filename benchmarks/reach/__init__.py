"""Gradients through the code of SciPy and scikit-learn, called with the arrays of a library.

Each function is called with arrays that require gradients. A gradient flows if the values equal
NumPy's, and the derivative along a random direction equals central differences through NumPy. All
is in float64, in a process of its own for each peer and subject, with SCIPY_ARRAY_API=1 and
scikit-learn's array_api_dispatch. The needs of a call path are the functions and array methods of
xgrad that it used. If no gradient of xgrad flows, the reason is listed.
"""

from __future__ import annotations

from importlib import metadata

from benchmarks.harness import Options, begin, worker_group
from benchmarks.reach.path import FLOWS
from benchmarks.reach.verdicts import SUBJECTS
from benchmarks.report import Cells, Result, Table, Words

#: Versions of the list: a gradient that stops in these may flow in others, and the reverse.
LISTED = {"scipy": "1.17", "scikit-learn": "1.9"}
PEERS = {"xgrad": "xgrad_peer:pullback", "PyTorch": "pytorch:pullback"}


def unlisted(package: str) -> str:
    """Return why the list does not fit the installed version of a package, or an empty text."""
    try:
        installed = metadata.version(package)
    except metadata.PackageNotFoundError:
        return f"needs {package}"
    listed = LISTED[package]
    return (
        ""
        if installed.startswith(f"{listed}.")
        else f"the list is for {package} {listed}, not {installed}"
    )


def run(options: Options) -> Result:
    options = options.filled(threads=1, repeats=1)
    result = begin("reach", __doc__ or "", options)
    result.settings = {"threads": 1}
    (peers,) = options.chosen(PEERS)
    counts: Cells = {peer: {} for peer in ("call paths", *peers)}
    for subject in SUBJECTS[:1] if options.quick else SUBJECTS:
        title = (
            subject.replace("_", " ").replace("scipy", "SciPy").replace("sklearn", "scikit-learn")
        )
        words: dict[str, dict[str, str]] = {}
        needs: dict[str, str] = {}
        for peer, target in peers.items():
            with worker_group(
                result,
                {peer: target},
                "benchmarks.reach.verdicts:Verdicts",
                title,
                {"subject": subject},
                options,
            ) as group:
                for _, verdicts in group.ask("verdicts"):
                    counts["call paths"][title] = [len(verdicts)]
                    counts[peer][title] = [sum(verdict == FLOWS for verdict in verdicts.values())]
                    for path, verdict in verdicts.items():
                        words.setdefault(path, {})[peer] = verdict
                for _, stops in group.ask("stops") if peer == "xgrad" else ():
                    for path, reason in stops.items():
                        words[path][peer] = f"no: {reason}"
                for _, used in group.ask("needs") if peer == "xgrad" else ():
                    needs = used
        for path, needed in needs.items():
            words[path]["needs"] = needed
        result.words.append(Words(title, "call path", words))
    for row in counts.values():
        row["all"] = [sum(cell[0] for cell in row.values())]
    result.tables = [
        Table("Call paths with a gradient that flows", "", counts, "bars", corner="peer")
    ]
    return result
