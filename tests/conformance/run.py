"""The standard's own test suite, run on xgrad and, to compare, on array-api-compat's NumPy.

Usage: ``python tests/conformance/run.py SUITE``, where SUITE is a checkout of
https://github.com/data-apis/array-api-tests with its submodule, and what its ``requirements.txt``
names is installed. It runs each version of the standard in `VERSIONS`, or those given by
``--version``. It fails if a test fails on xgrad, or fewer tests pass than on NumPy. There is no
list of known failures; `conformance_plugin.py` corrects one fault of the suite, on both.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: The namespace of xgrad that complies with each version of the standard.
VERSIONS = {"2024.12": "xgrad.standard_2024_12", "2025.12": "xgrad"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "suite", type=Path, help="a checkout of data-apis/array-api-tests, with its submodule"
    )
    parser.add_argument(
        "--version",
        action="append",
        choices=VERSIONS,
        help="of the standard; repeatable (default: each of VERSIONS)",
    )
    parser.add_argument(
        "--max-examples", type=int, default=20, help="for each test (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="processes of pytest-xdist (default: %(default)s)"
    )
    parser.add_argument(
        "-k", dest="select", default="", help="only tests whose names match, as pytest has it"
    )
    args = parser.parse_args()
    if not (args.suite / "array-api" / "spec").is_dir():
        parser.error(
            f"expected a checkout of array-api-tests with its submodule array-api, got {args.suite}"
        )
    return max([compare(version, args) for version in args.version or VERSIONS])


def compare(version: str, args: argparse.Namespace) -> int:
    """Run the suite at a version of the standard on both, print a table; return the exit status."""
    xgrad = run(VERSIONS[version], version, args)
    numpy = run("array_api_compat.numpy", version, args)
    print(f"{version:24}{'passed':>8}{'failed':>8}{'skipped':>8}")
    for name, counts in (("xgrad", xgrad), ("array_api_compat.numpy", numpy)):
        print(f"{name:24}" + "".join(f"{counts[key]:8}" for key in ("passed", "failed", "skipped")))
    return int(
        bool(xgrad["failed"] or xgrad["xfailed"] or xgrad["error"])
        or xgrad["passed"] < numpy["passed"]
    )


def run(module: str, version: str, args: argparse.Namespace) -> Counter[str]:
    """Run the suite at a version on a module, print the failures; return the outcomes' counts."""
    env = os.environ | {
        "ARRAY_API_TESTS_MODULE": module,
        "ARRAY_API_TESTS_VERSION": version,
        "PYTHONPATH": os.pathsep.join(
            [str(HERE), str(ROOT), str(ROOT / "backends"), os.environ.get("PYTHONPATH", "")]
        ),
    }
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "--tb=line", "-W", "ignore"]
    command += ["-p", "conformance_plugin"]
    command += [
        "--derandomize",
        "--disable-deadline",
        "--max-examples",
        str(args.max_examples),
        "-n",
        str(args.jobs),
    ]
    command += ["-k", args.select] if args.select else []
    done = subprocess.run(command, cwd=args.suite, env=env, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    print(*[line for line in lines if line.startswith(("FAILED", "ERROR"))], sep="\n")
    outcomes = re.findall(
        r"(\d+) (passed|failed|skipped|xfailed|error)", lines[-1] if lines else ""
    )
    if not outcomes:
        sys.exit(f"{module}: the suite did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return Counter({ending: int(count) for count, ending in outcomes})


if __name__ == "__main__":
    sys.exit(main())
