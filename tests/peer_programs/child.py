"""Run one program with one library, in a process of its own, and write down its losses.

Usage: ``python -m tests.peer_programs.child PROGRAM torch|xgrad FOLDER SCRATCH``. In SCRATCH are
the initial weights, which the run with PyTorch writes and the one with xgrad reads, and the result.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import sys
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from tests.peer_programs import equal_runs, stand_ins
from tests.peer_programs.import_lines import COMPAT, Rewriter, find_modules_of, rewritten
from tests.peer_programs.programs import PROGRAMS, Program

STEPS = 4


def main() -> None:
    name, library, folder, scratch = sys.argv[1:]
    program = next(p for p in PROGRAMS if p.name == name)
    lib = importlib.import_module("torch" if library == "torch" else COMPAT)
    lib.set_default_dtype(lib.float64)
    lib.manual_seed(0)
    stored = Path(scratch) / "weights.npz"
    recorded = list(np.load(stored).values()) if stored.exists() else None
    weights, losses = equal_runs.Weights(recorded), equal_runs.Losses(program.backward_passes)
    work = Path(scratch) / library
    work.mkdir()
    os.chdir(work)
    stand_ins.install(lib, program.stand_ins)
    with ExitStack() as stack:
        for replacements in (
            weights.replacements(lib),
            losses.replacements(lib),
            equal_runs.random_replacements(lib),
            equal_runs.loader_replacements(lib),
        ):
            stack.enter_context(equal_runs.replaced(replacements))
        changed, names = execute(program, Path(folder), library)
    result: dict[str, Any] = {"losses": losses.values, "changed_lines": changed}
    if recorded is None:
        np.savez(stored, *weights.values)
    else:
        result["captured"] = captured(program, lib, names)
    (Path(scratch) / f"{library}.json").write_text(json.dumps(result))


def execute(program: Program, folder: Path, library: str) -> tuple[int, dict[str, Any]]:
    """Run a program until its losses are recorded.

    Returns the number of changed lines, and the names that its training step then sees.
    """
    root = folder / program.repository
    path = root / (program.file or program.folder)
    source = path.read_text(encoding="utf-8") if program.file else program.source
    changed = 0
    for old, new in program.substitutions:
        if source.count(old) != 1:
            raise RuntimeError(f"{path}: expected one {old!r}, got {source.count(old)}")
        source = source.replace(old, new)
        changed += 1
    if library == "xgrad":
        source, lines = rewritten(source)
        changed += lines
        find_modules_of(root)
    sys.path[:0] = [str(path.parent if program.file else path), str(root)]
    sys.argv = [str(path), *(argument.format(root=root) for argument in program.arguments)]
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    code = compile(source, str(path), "exec")
    try:
        exec(code, names)
    except equal_runs.Enough as end:
        for frame, _ in traceback.walk_tb(end.__traceback__):
            if "tests/peer_programs/" not in frame.f_code.co_filename:
                names = {**names, **frame.f_locals}
    return changed + Rewriter.changed_lines, names


def has_state(value: Any) -> bool:
    """Return whether an object, which is no class, has a state to save and load."""
    return hasattr(value, "load_state_dict") and not isinstance(value, type)


def captured(program: Program, lib: Any, names: dict[str, Any]) -> str:
    """Return "yes" if a captured training step has the bits of the eager one, else why not."""
    xgrad = importlib.import_module("xgrad")
    if not program.step:
        return "no"
    exec(program.step, names)
    step, arguments = names["step"], eval(program.step_arguments, names)
    with_state = [value for value in names.values() if has_state(value)]
    for module in [value for value in with_state if isinstance(value, lib.nn.Module)]:
        parts = [part for m in module.modules() for part in vars(m).values()]  # with optimizers
        with_state += [p for p in parts if has_state(p) and not isinstance(p, lib.nn.Module)]
    before = [copy.deepcopy(value.state_dict()) for value in with_state]

    def losses_of(function: Any) -> list[float]:
        for value, state in zip(with_state, before, strict=True):
            value.load_state_dict(copy.deepcopy(state))
        lib.manual_seed(0)
        return [float(function(*arguments).detach()) for _ in range(STEPS)]

    eager = losses_of(step)
    replayed = xgrad.capture(step)
    got = losses_of(replayed)
    if replayed.refusal is not None:
        return f"no: {replayed.refusal}"
    if eager != got:
        return f"differs: {eager} eager, {got} captured"
    return "yes" if replayed.recordings < STEPS else f"no: {replayed.recordings} recordings"


if __name__ == "__main__":
    main()
