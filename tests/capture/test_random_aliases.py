"""Random steps whose arguments and state share memory leave what the same eager steps leave.

Arguments overlap, are nested, reversed, broadcast, given twice, or are the state or views of it;
the step writes through any of them. Values, bases, views, results and exceptions are compared after
each call, with the same events outside of the step in between. A step that is refused must leave
the same.

``CAPTURE_ALIASES=10000`` in the environment runs 10 000 of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xgrad
from capture.twins import Capture, compare, on_cpu
from xgrad import nn, optim

PROGRAMS = int(os.environ.get("CAPTURE_ALIASES", 300))
FIRST = int(os.environ.get("CAPTURE_ALIASES_SEED", 0))
SHAPES = [(4,), (4,), (3, 4), (2, 3, 4), ()]


def _forms(text: str) -> list[str]:
    return [form.strip() for form in text.split(" |")]


#: Ways to take a tensor from another, each of which is tried on it.
TAKEN = _forms("""
{x}[1:] | {x}[:-1] | {x}[1:3] | {x}[::2] | {x}[::-1] | {x}[0] | {x}[-1] | {x}[..., 0] |
{x}[..., 1:] | {x}[None] | {x}.mT | xgrad.permute_dims({x}, tuple(reversed(range({x}.ndim)))) |
xgrad.reshape({x}, (-1,)) | {x}[...] | xgrad.expand_dims({x}, axis=0) | xgrad.flip({x}, axis=-1) |
xgrad.broadcast_to({x}, (2, *{x}.shape)) | {x} | {x} | xgrad.unstack({x})[1] |
xgrad.moveaxis({x}, 0, -1) | {x}.detach() | {x}.data | xgrad.asarray({x}, copy=True) |
xgrad.asarray({x}) | {x}[1:][:2] | {x}[:3][1:] | xgrad.squeeze({x}[:1], axis=0) | {x} * 1 |
{x}.reshape(-1)[1:3]
""")

#: Statements that write to a tensor.
WRITES = _forms("""
{x} += {y} | {x} *= 2 | {x} -= {y} | {x} *= {y} | {x}[...] = {y} | {x}[...] = 3 | {x}[0] = {y} |
{x}[1:] = {x}[:-1] | {x}[..., 1:] += 1 | {x}[0] -= 0.5 | {x}[::-1] = {x} * 2 |
{x}[...] = {x}[::-1] | {x}.data[...] = {y} | {x}.data *= 2 | {x}.mul_(2) | {x}.zero_() |
{x}.mT[...] = 7 | xgrad.reshape({x}, (-1,))[...] = 5 | {x}[[0, -1]] = 4 | {x} /= 2
""")

#: Expressions for results and temporaries.
EXPRESSIONS = _forms("""
{x} + {y} | {x} * {y} | {x}.sum() | ({x} * {y}).sum() | {x} * 2 - 1 | {x} | {x}.mean() |
{x}.detach() | xgrad.tanh({x}) | {x}.sum() * {y}
""")


def _forwards(x: Any) -> Any:
    """Return containers with arrays in place of tensors, in memory order, without negative strides.

    A write in place keeps negative strides, and a new array has none.
    """
    if isinstance(x, xgrad.Tensor):
        return x.requires_grad, x.detach().numpy().copy("K")
    if isinstance(x, dict):
        return {key: _forwards(part) for key, part in x.items()}
    return list(map(_forwards, x)) if isinstance(x, list) else x


class Program:
    """Tensors that share memory, a step on some of them, and the calls and events of a scenario.

    All are lines of code, the same for the eager and the captured twin, each with a namespace of
    its own.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world: list[str] = []
        self.names: dict[str, Any] = {
            "xgrad": xgrad,
            "np": np,
            "nn": nn,
            "optim": optim,
            "kept": [],
        }
        self.tensors: list[str] = []
        self._make_world()
        self.parameters = [f"a{i}" for i in range(self.random.choice([1, 2, 2, 2, 3]))]
        self.state = self.random.sample(
            self.tensors, min(len(self.tensors), self.random.choice([0, 0, 1, 1, 2]))
        )
        self.module = self.random.choice(["", "", "", "norm", "linear"])
        self._add_module()
        self.step = self._step()
        self.calls = self._calls()
        self.source = "\n".join([*self.world, self.step, *self.calls])

    def _run(self, line: str, lines: list[str]) -> bool:
        """Add a line if it can be run."""
        before = dict(self.names)
        try:
            exec(line, self.names)
        except Exception:
            self.names = before
            return False
        lines.append(line)
        return True

    def _make_world(self) -> None:
        for i in range(self.random.choice([1, 1, 2, 3])):
            shape = self.random.choice(SHAPES)
            dtype = self.random.choice(["float32"] * 4 + ["float64"])
            values = [
                self.random.choice([-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0]) for _ in range(24)
            ]
            size = int(np.prod(shape))
            line = (
                f"w{i} = xgrad.reshape(xgrad.asarray({values[:size]}, dtype=xgrad.{dtype}),"
                f" {shape}) * 1"
            )
            assert self._run(line, self.world)
            self.tensors.append(f"w{i}")
        for i in range(self.random.randint(1, 7)):
            name = f"v{i}"
            source = self.random.choice(self.tensors)
            if self._run(f"{name} = {self.random.choice(TAKEN)}".format(x=source), self.world):
                self.tensors.append(name)

    def _add_module(self) -> None:
        if self.module == "norm":
            self._run("norm = nn.BatchNorm1d(4)", self.world)
        elif self.module == "linear":
            self._run("xgrad.manual_seed(3); linear = nn.Linear(4, 2)", self.world)
            self._run(
                "optimizer = optim.SGD(linear.parameters(), lr=0.1, momentum=0.5)", self.world
            )

    def _step(self) -> str:
        """Return the code of a step.

        It does not depend on shapes: an error is part of the comparison.
        """
        names = [*self.parameters, *self.state]
        used = [*self.parameters, *self.parameters, *self.state]
        body: list[str] = []
        if self.module == "norm":
            body.append(
                f"n0 = norm(xgrad.reshape({self.parameters[0]}.detach(), (-1,))[:4] *"
                " xgrad.ones((3, 4)))"
            )
        if self.module == "linear":
            body.append("optimizer.zero_grad()")
            body.append(
                f"loss = (linear(xgrad.reshape({self.parameters[0]}.detach(), (-1,))[:4]) **"
                " 2).sum()"
            )
            body.append("loss.backward()")
        locals_: list[str] = []
        for i in range(self.random.randint(1, 6)):
            x, y = self.random.choice(used + locals_), self.random.choice(names + locals_)
            kind = self.random.random()
            if kind < 0.5:
                body.append(self.random.choice(WRITES).format(x=x, y=y))
            elif kind < 0.75:
                body.append(f"t{i} = {self.random.choice(TAKEN)}".format(x=x))
                locals_.append(f"t{i}")
            else:
                body.append(f"t{i} = {self.random.choice(EXPRESSIONS)}".format(x=x, y=y))
                locals_.append(f"t{i}")
        if self.module == "linear":
            body.insert(self.random.randint(3, len(body)), "optimizer.step()")
            if self.random.random() < 0.5:
                body.insert(
                    self.random.randint(4, len(body)),
                    f"{self.random.choice(names)}[...] = loss.detach()",
                )
        if self.random.random() < 0.12:
            body.insert(self.random.randint(1, len(body)), "raise KeyError('asked for')")
        results = [x for x in [*names, *locals_] if self.random.random() < 0.5]
        results += [f"{x}[..., None]" for x in results[:1] if self.random.random() < 0.3]
        results += ["loss.detach()"] * (self.module == "linear") + ["n0.detach()"] * (
            self.module == "norm"
        )
        body.append(f"return [{', '.join(results)}]")
        head = f"def step({', '.join(self.parameters)}):"
        declared = [f"    global {', '.join(self.state)}"] if self.state else []
        return "\n".join([head, *declared, *[f"    {line}" for line in body]])

    def _calls(self) -> list[str]:
        """Return calls of the step and events outside of it."""
        lines = []
        previous: list[str] = []
        for i in range(self.random.randint(4, 8)):
            if previous and self.random.random() < 0.4:
                chosen = previous
            else:
                chosen = [self.random.choice(self.tensors) for _ in self.parameters]
                chosen = [self._argument(x) for x in chosen]
            previous = chosen
            lines.append(f"result = step({', '.join(chosen)})")
            kind = self.random.random()
            if kind < 0.15:
                lines.append(
                    self.random.choice(WRITES).format(x=self.random.choice(self.tensors), y="1.5")
                )
            elif kind < 0.25:
                lines.append("kept.append(result)")
            elif kind < 0.33:
                lines.append("result[0][...] = 9")
            elif kind < 0.4:
                name = self.random.choice(self.tensors)
                lines.append(f"{name} = {name} * 0.5")
            elif kind < 0.5 and i < 2:
                lines.append(f"{self.random.choice(self.tensors)}.requires_grad_()")
        return lines

    def _argument(self, name: str) -> str:
        """Return an expression for an argument: a tensor, or one taken from it for this call."""
        if self.random.random() < 0.6:
            return name
        text = self.random.choice(TAKEN).format(x=name)
        try:
            eval(text, dict(self.names))
        except Exception:
            return name
        return text

    def play(self, capture: Capture) -> Iterator[Any]:
        """Play the scenario with a captured or an eager step; yield the values to compare."""
        names: dict[str, Any] = {"xgrad": xgrad, "np": np, "nn": nn, "optim": optim, "kept": []}
        for line in self.world:
            exec(line, names)
        exec(self.step, names)
        names["step"] = capture(names["step"])
        with xgrad.no_grad() if self.module != "linear" else xgrad.enable_grad():
            for line in self.calls:
                error: Any = None
                names["result"] = None
                try:
                    exec(line, names)
                except Exception as caught:
                    error = type(caught).__name__, str(caught).split(", at ")[0]
                tensors = {name: names[name].detach() for name in self.tensors}
                state = names[self.module].state_dict() if self.module else {}
                yield line, error, *_forwards([tensors, names["result"], names["kept"]]), state


@on_cpu
@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS))
@pytest.mark.filterwarnings("ignore")
def test_random_step_of_tensors_that_share_memory_leaves_what_eager_leaves(seed: int) -> None:
    program = Program(seed)
    try:
        compare(program.play)
    except Exception as error:
        raise AssertionError(f"{error}\n{program.source}") from error


@on_cpu
@pytest.mark.filterwarnings("ignore")
def test_most_random_steps_of_tensors_that_share_memory_are_captured() -> None:
    captures = [captured for seed in range(60) for captured in compare(Program(seed).play)]
    assert sum(captured.refusal is None for captured in captures) > 40
    assert sum(captured.recordings for captured in captures) > 60
