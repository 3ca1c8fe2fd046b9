"""Install the wheel with combinations of extras, and run `installed.py` for each of them.

Each combination has an environment of its own, made with the running Python, two at a time.
``python tests/extras.py`` needs only the standard library; ``python tests/extras.py ''
special,cli`` tests two of the combinations.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
MATRIX = ("", "special", "native", "cli", "parity", "test")
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


def build(folder: Path) -> Path:
    """Build a wheel, and return its path.

    It is built from a copy of the source, where setuptools may leave files.
    """
    ignored = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "runs")
    shutil.copytree(ROOT, folder / "source", ignore=ignored)
    command = [sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", folder, folder / "source"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check(extras: str, wheel: Path, folder: Path) -> tuple[int, str]:
    """Return the exit status and the output of the checks with some extras."""
    environment = folder / f"extras-{extras or 'none'}"
    venv.create(environment, with_pip=True, symlinks=sys.platform != "win32")
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    # may contain the source
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    script = shutil.copy(ROOT / "tests" / "installed.py", environment)
    commands = [
        [*PIP, "install", f"{wheel}[{extras}]" if extras else str(wheel)],
        ["-I", script, extras],
    ]
    for command in commands:
        done = subprocess.run(
            [python, *command], cwd=environment, env=env, capture_output=True, text=True
        )
        if done.returncode:
            return done.returncode, done.stdout + done.stderr
    shutil.rmtree(environment)
    return 0, done.stdout


def main(matrix: Sequence[str]) -> int:
    """Check all combinations, and return how many failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as threads:
        folder = Path(name)
        results = threads.map(partial(check, wheel=build(folder), folder=folder), matrix)
        for extras, (status, output) in zip(matrix, results, strict=True):
            print(f"[{extras}] {'FAILED' if status else 'passed'}\n{output}", end="", flush=True)
            failed += bool(status)
    print(f"{len(matrix) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or MATRIX))
