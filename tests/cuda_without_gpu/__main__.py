"""Build the emulation of CUDA, or run a command with it.

python -m tests.cuda_without_gpu build FOLDER
python -m tests.cuda_without_gpu run FOLDER python -m pytest tests --device cuda
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.cuda_without_gpu.build import build, environment


def main(args: list[str]) -> None:
    match args:
        case ["build", folder]:
            build(Path(folder).resolve())
        case ["run", folder, *command] if command:
            os.environ.update(environment(Path(folder).resolve()))
            os.execvp(command[0], command)
        case _:
            raise SystemExit(__doc__)


main(sys.argv[1:])
