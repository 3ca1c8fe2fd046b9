"""Run test suites of other projects on xgrad and, to compare, on array-api-strict.

Usage: ``python tests/peer_suites/run.py [SUITE ...]``, where a SUITE is one of `SUITES`; the suites
are in the installed packages. Of SciPy's tests it runs those that take the array library as a
parameter. It fails if a test fails on xgrad that `xfails.txt` does not list, with its reason. After
a run of all suites, the table is written to `results.md`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = "signal special stats cluster optimize integrate spatial differentiate"
SUITES = {package: f"scipy.{package}" for package in PACKAGES.split()}
SUITES |= {"array-api-extra": "array_api_extra.tests.main", "einops": "einops.tests"}
NAMESPACES = ("xgrad", "array_api_strict")
ENDINGS = ("passed", "failed", "known", "skipped")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=f"one of {', '.join(SUITES)} (default: all)"
    )
    parser.add_argument(
        "--jobs", default="auto", help="processes of pytest-xdist (default: %(default)s)"
    )
    parser.add_argument(
        "-k", dest="select", default="", help="only tests whose names match, as pytest has it"
    )
    args = parser.parse_args()
    if unknown := set(args.suites) - set(SUITES):
        parser.error(f"expected suites of {', '.join(SUITES)}, got {', '.join(sorted(unknown))}")
    known = known_failures((HERE / "xfails.txt").read_text())
    rows, failed = [], False
    for suite in args.suites or SUITES:
        xgrad, strict = (dict(outcomes(suite, name, args)) for name in NAMESPACES)
        for test, (ending, reason) in xgrad.items():
            if ending == "failed" and is_known(test, known):
                xgrad[test] = "known", reason
            elif ending == "failed":
                print(f"FAILED {test}: {reason}")
        counts = [Counter(ending for ending, _ in results.values()) for results in (xgrad, strict)]
        failed = failed or bool(counts[0]["failed"])
        numbers = [counts[0][ending] for ending in ENDINGS] + [
            counts[1][ending] for ending in ("passed", "failed")
        ]
        rows.append([suite, *map(str, numbers)])
        print(*rows[-1], flush=True)
    table = markdown(["suite", *ENDINGS, "array-api-strict: passed", "failed"], rows)
    print(f"\n{table}")
    if not args.suites and not args.select:
        (HERE / "results.md").write_text(f"{TITLE}\n{table}\n", encoding="utf-8")
    return int(failed)


TITLE = """# Test suites of other projects on xgrad

Written by `make peer-suites`. Failures that are known are listed in [xfails.txt](xfails.txt), \
each with its reason.
"""


def outcomes(
    suite: str, namespace: str, args: argparse.Namespace
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Run a suite on a namespace, and yield the name of each test, its outcome, and the reason."""
    env = os.environ | {
        "PEER_NAMESPACE": namespace,
        "SCIPY_ARRAY_API": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(
            [*map(str, (HERE, ROOT, ROOT / "backends")), os.environ.get("PYTHONPATH", "")]
        ),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "peer_suites_plugin",
        "--pyargs",
        SUITES[suite],
        "-q",
    ]
    command += ["--tb=short", "-W", "ignore", "-n", args.jobs, "-p", "no:cacheprovider"]
    command += ["-k", args.select] if args.select else []
    if suite == "einops":
        env["EINOPS_TEST_BACKENDS"] = namespace
    elif suite != "array-api-extra":
        command += ["-m", "array_api_backends and not slow"]
    with tempfile.TemporaryDirectory() as folder:
        # or pytest uses the cache of a parent folder
        (Path(folder) / "pytest.ini").write_text("[pytest]\n")
        report = Path(folder) / "report.xml"
        command += ["-c", "pytest.ini", f"--junitxml={report}"]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        if not report.exists() or done.returncode not in (0, 1, 5):
            sys.exit(
                f"{suite}: the suite did not run on"
                f" {namespace}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
            )
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{suite}/{case.get('classname')}::{case.get('name')}"
            yield name, outcome(case)


def outcome(case: ElementTree.Element) -> tuple[str, str]:
    """Return the outcome of a test in a report, and the first line of its message."""
    for tag, ending in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        if (element := case.find(tag)) is not None:
            return ending, (element.get("message") or "").partition("\n")[0]
    return "passed", ""


def known_failures(text: str) -> set[str]:
    """Return the tests of a list of known failures, in which lines with # are reasons."""
    return {line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")}


def is_known(test: str, known: set[str]) -> bool:
    """Return whether a test is listed: itself, without parameters, or by its class or module."""
    return any(
        test == entry or test.startswith((f"{entry}[", f"{entry}::", f"{entry}."))
        for entry in known
    )


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
