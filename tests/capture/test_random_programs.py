"""Random programs, traced with some inputs and replayed with others, give the bits and layouts of eager runs.

``CAPTURE_PROGRAMS=10000`` in the environment runs 10 000 of them.
"""

from __future__ import annotations

import functools
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from capture.twins import assert_same, snapshot
from xgrad.capture import CaptureWarning

PROGRAMS = int(os.environ.get("CAPTURE_PROGRAMS", 250))
LARGEST = 1 << 15  # elements of a tensor of a program


def _forms(text: str) -> list[str]:
    return [form.strip() for form in text.split(" |")]


# Expressions and statements, with {x}, {y} and {z} for names

UNARY = _forms("""
xgrad.tanh({x}) | xgrad.exp(-xgrad.abs({x})) | xgrad.sin({x}) | xgrad.maximum({x}, 0) | -{x} | abs({x}) |
{x} * {x} | xgrad.sqrt(abs({x})) | xgrad.log1p(abs({x})) | {x} ** 2 | {x} ** 3 | 2 * {x} | 1 - {x} | {x} / 3 |
xgrad.sign({x}) | xgrad.clip({x}, -0.5, 0.75) | xgrad.floor({x}) | 1 / {x} | {x} ** 0.5 |
xgrad.cumulative_sum(xgrad.reshape({x}, (-1,))) | xgrad.nn.functional.softmax({x}, axis=-1) |
xgrad.nn.functional.relu({x}) | xgrad.sort({x}, axis=-1) | xgrad.nn.functional.gelu({x}) |
xgrad.diff({x}, axis=-1) | xgrad.logaddexp({x}, 0) | {x} + 1e-3 | {x} * 0 | xgrad.nn.functional.sigmoid({x}) |
xgrad.special.logsumexp({x}, axis=-1) | xgrad.nn.functional.log_softmax({x}, axis=0)
""")
BINARY = _forms("""
{x} + {y} | {x} - {y} | {x} * {y} | {x} / {y} | xgrad.maximum({x}, {y}) | xgrad.minimum({x}, {y}) |
xgrad.atan2({x}, {y}) | xgrad.hypot({x}, {y}) | {x} ** 2 + {y} | xgrad.copysign({x}, {y}) | {x} + {y} * {x} |
xgrad.logaddexp({x}, {y})
""")
VIEWS = _forms("""
{x}.mT | {x}[0] | {x}[-1, ...] | {x}[..., 0] | {x}[1:] | {x}[::-1] | {x}[..., ::2] | {x}[None] | {x}[..., None] |
xgrad.reshape({x}, (-1,)) | xgrad.flip({x}) | xgrad.expand_dims({x}, axis=0) | xgrad.moveaxis({x}, 0, -1) |
xgrad.broadcast_to({x}, (2, *{x}.shape)) | xgrad.roll({x}, 1) | {x}[:, 1] | {x}[::-2, ...] | {x}.T |
xgrad.squeeze({x}, axis=0) | xgrad.reshape({x}, (2, -1)) | xgrad.tile({x}, (2,)) | xgrad.repeat({x}, 2) |
xgrad.unstack({x})[-1]
""")
PRODUCTS = _forms("""
{x} @ {y} | {x} @ {y}.mT | {x}.mT @ {y} | xgrad.vecdot({x}, {y}) | {x} @ {x}.mT |
xgrad.tensordot({x}, {y}, axes=1) | xgrad.linalg.outer(xgrad.reshape({x}, (-1,)), xgrad.reshape({y}, (-1,))) |
xgrad.sum({x} * {y}, axis=0)
""")
JOINED = _forms("""
xgrad.concat([{x}, {y}]) | xgrad.stack([{x}, {y}]) | xgrad.concat([{x}, {y}, {x}], axis=-1) |
xgrad.stack([{y}, {x}], axis=-1)
""")
COPIES = _forms("{x} * 1 | xgrad.asarray({x}, copy=True) | {x}.detach() * 2 | xgrad.zeros_like({x})")
IN_PLACE = _forms("""
{z} += {y} | {z} *= {y} | {z} -= 0.5 | {z}[0] = {y} | {z}[...] = {y} | {z}[..., 0] = 2 | {z}[1:] = {z}[:-1] |
{z} /= 3 | {z}[{z} > 0] = 0
""")
CONSTANTS = _forms("""
xgrad.ones({x}.shape) | xgrad.zeros_like({x}) | xgrad.arange(3.0) | xgrad.asarray([1.5, -0.0]) |
xgrad.full((2, 1), 0.5) | xgrad.eye(2) | xgrad.ones((2, 3)).T
""")
CONDITIONS = _forms("{x} > 0 | {x} < {y} | {x} == {y} | ({x} > -1) & ({x} <= {y}) | ~({x} != {y})")
CHOICES = _forms("{x}, 0 | 0, {x} | {x}, 0.0 | {x}, {y} | -{x}, {x} | {x}, 1")
INDICES = _forms("""
xgrad.argmax({x}, axis=-1) | xgrad.argmin({x}, axis=0) | xgrad.argsort({x}, axis=0) | xgrad.arange({x}.shape[0])
""")
INDEXED = _forms("""
{i} * 2 - 1 | {i} % 2 | {x}[{i} % {x}.shape[0]] | {i} // 2 + {x} |
xgrad.take({x}, xgrad.reshape({i}, (-1,)) % {x}.shape[0], axis=0)
""")
#: Expressions with the kinds of the dtypes of their operands, the more frequent ones repeatedly.
SIMPLE = [(UNARY, "f", "f"), *[(BINARY, "f", "fi")] * 2, *[(VIEWS, "fiub", "f")] * 2]
SIMPLE += [(PRODUCTS, "f", "f"), (CONSTANTS, "f", "f")]
REDUCTIONS = "sum mean max min prod std var sum mean any all count_nonzero".split()
AXES = ["", ", axis=0", ", axis=-1", ", axis=-1, keepdims=True", ", axis=(0, 1)", ", axis=1"]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]


class Writer:
    """Writes a program line by line, and runs each line to know the tensors that the next one can use."""

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.large = self.random.random() < 0.15
        self.names: dict[str, Any] = {"xgrad": xgrad}
        self.lines: list[str] = []
        self.count = 0
        self.layouts = [self.layout() for _ in range(self.random.randint(1, 4))]
        self.parameters = [f"x{i}" for i in range(len(self.layouts))]
        self.names |= dict(zip(self.parameters, self.inputs(0), strict=True))
        for i, name in enumerate(self.parameters):
            if self.names[name].dtype.kind == "f" and self.random.random() < 0.8:
                self.add(f"a{i}", f"{name}.detach().requires_grad_()")
        self.leaves = [name for name in self.names if name.startswith("a")]
        simple = [functools.partial(self.simple, *kind) for kind in SIMPLE]
        kinds = [*simple, self.reduction, self.joined, self.choice, self.in_place, self.cast, self.indexed]
        for _ in range(self.random.randint(3, 25)):
            try:
                self.random.choice(kinds)()
            except LookupError:  # nothing of the kind to compute with
                continue
        self.gradients()
        self.results()
        self.source = f"def step({', '.join(self.parameters)}):\n" + "".join(f"    {line}\n" for line in self.lines)

    def step(self) -> Callable[..., Any]:
        """Return the program as a function."""
        scope: dict[str, Any] = {"xgrad": xgrad}
        exec(compile(self.source, f"program {self.seed}", "exec"), scope)
        return scope["step"]  # type: ignore[no-any-return]

    # Inputs

    def layout(self) -> tuple[tuple[int, ...], str, str]:
        """Return the shape, the dtype and the memory layout of an input."""
        lengths = [1, 3, 40, 130] if self.large else [1, 2, 2, 3, 4, 5]
        shape = tuple([self.random.choice(lengths) for _ in range(self.random.choice([0, 1, 1, 2, 2, 2, 3]))])
        if self.random.random() < 0.05 and shape:
            shape = (0, *shape[1:])
        dtype = self.random.choice(["float32"] * 5 + ["float64"] * 2 + ["int64", "bool", "int32"])
        return shape, dtype, self.random.choice(["plain"] * 4 + ["columns", "spaced", "reversed"])

    def inputs(self, turn: int) -> list[Any]:
        """Return inputs, other ones each turn."""
        return [self.input(np.random.default_rng([self.seed, turn, i]), *x) for i, x in enumerate(self.layouts)]

    def input(self, rng: Any, shape: tuple[int, ...], dtype: str, memory: str) -> Any:
        """Return a tensor of random values, with special ones in every third program."""
        full = (*shape[:-1], 2 * shape[-1]) if memory == "spaced" and shape else shape
        values = rng.normal(size=full)
        chosen = rng.random(size=full) < (0.08 if self.seed % 3 == 0 else 0)
        values = np.where(chosen, rng.choice(SPECIAL, size=full), values)
        if dtype.startswith("int"):
            values = rng.integers(-3, 4, size=full)
        values = np.asarray(values > 0 if dtype == "bool" else values).astype(dtype)
        if memory == "columns" and len(shape) > 1:
            return xgrad.asarray(np.ascontiguousarray(values.swapaxes(-1, -2))).mT
        if memory == "spaced" and shape:
            return xgrad.asarray(values)[..., ::2]
        return xgrad.flip(xgrad.asarray(values)) if memory == "reversed" and shape else xgrad.asarray(values)

    # Statements

    def add(self, name: str, expression: str) -> bool:
        """Add an assignment, and return whether it can be run."""
        return self.add_line(f"{name} = {expression}", name)

    def add_line(self, line: str, *made: str) -> bool:
        """Add a statement, and return whether it can be run."""
        before = dict(self.names)
        try:
            with np.errstate(all="ignore"):
                exec(line, self.names)
            tensors = [self.names[name] for name in made if isinstance(self.names[name], xgrad.Tensor)]
            if any(t.size > LARGEST or t.ndim > 4 for t in tensors):
                raise ValueError("too large")
        except Exception:
            self.names = before
            return False
        self.lines.append(line)
        return True

    def new(self) -> str:
        """Return a new name."""
        self.count += 1
        return f"v{self.count}"

    def some(self, kinds: str = "fiub", test: Callable[[Any], bool] = lambda t: True) -> str:
        """Return the name of a tensor of one of some kinds, preferably a recent one."""
        found = [
            name
            for name, value in self.names.items()
            if isinstance(value, xgrad.Tensor) and value.dtype.kind in kinds and test(value)
        ]
        if not found:
            raise LookupError
        return self.random.choice(found[-6:] if self.random.random() < 0.6 else found)

    def simple(self, forms: list[str], x: str, y: str) -> None:
        operands = [self.some(x), self.some(y)]
        if forms is BINARY:
            self.random.shuffle(operands)
        self.add(self.new(), self.random.choice(forms).format(x=operands[0], y=operands[1]))

    def reduction(self) -> None:
        self.add(self.new(), f"xgrad.{self.random.choice(REDUCTIONS)}({self.some('fib')}{self.random.choice(AXES)})")

    def joined(self) -> None:
        x = self.some("f")
        y = self.some("f", lambda t: t.ndim == self.names[x].ndim)
        self.add(self.new(), self.random.choice(JOINED).format(x=x, y=y))

    def choice(self) -> None:
        x, y, condition = self.some("f"), self.some("fi"), self.new()
        if self.add(condition, self.random.choice(CONDITIONS).format(x=x, y=y)):
            self.add(self.new(), f"xgrad.where({condition}, {self.random.choice(CHOICES).format(x=x, y=y)})")

    def in_place(self) -> None:
        y, z = self.some("fi"), self.new()
        if self.add(z, self.random.choice(COPIES).format(x=self.some("f"))):
            for _ in range(self.random.randint(1, 3)):
                self.add_line(self.random.choice(IN_PLACE).format(z=z, y=y), z)

    def cast(self) -> None:
        x, dtype = self.some("fib"), self.random.choice(["float32", "float64", "float32", "int64", "bool"])
        if dtype == "int64" and self.names[x].dtype.kind == "f":
            x = f"xgrad.clip(xgrad.where({x} == {x}, {x}, 0), -9, 9)"
        self.add(self.new(), f"({x}).astype(xgrad.{dtype})")

    def indexed(self) -> None:
        x, i = self.some("f", lambda t: t.ndim > 0 and t.size > 0), self.new()
        if self.add(i, self.random.choice(INDICES).format(x=x)):
            self.add(self.new(), self.random.choice(INDEXED).format(x=x, i=i))

    # Gradients and results

    def gradients(self) -> None:
        """Add gradients of something, or gradients of gradients."""
        ends = [n for n, v in self.names.items() if isinstance(v, xgrad.Tensor) and v.requires_grad and not v.is_leaf]
        if not ends or self.random.random() < 0.1:
            return
        ends = self.random.sample(ends, min(len(ends), self.random.choice([1, 1, 2])))
        if not self.add("total", " + ".join(f"xgrad.sum({end})" for end in ends)):
            return
        leaves, kind = f"[{', '.join(self.leaves)}]", self.random.random()
        if kind < 0.3:
            self.add_line("total.backward()")
            for leaf in self.leaves:
                self.add(f"g_{leaf}", f"{leaf}.grad if {leaf}.grad is not None else {leaf}.detach()")
        elif kind < 0.65:
            self.add("gs", f"xgrad.autograd.grad(total, {leaves}, allow_unused=True)")
        else:
            self.add("gs", f"xgrad.autograd.grad(total, {leaves}, create_graph=True, allow_unused=True)")
            self.add("second", "sum((xgrad.sum(g * g) for g in gs if g is not None), 0 * total)")
            self.add("hs", f"xgrad.autograd.grad(second, {leaves}, allow_unused=True)")

    def results(self) -> None:
        """Add the results: some of the tensors, and views of them, perhaps of the inputs."""
        found = []
        for name, value in self.names.items():
            if isinstance(value, xgrad.Tensor) and self.random.random() < 0.4:
                found.append(f"{name}.detach()" if value.requires_grad else name)
        for many in ("gs", "hs"):
            if many in self.names:
                found.append(f"[g if g is None else g.detach() for g in {many}]")
        if found and self.random.random() < 0.5:
            again = self.random.choice(found)
            found.append(again)
            if not again.startswith("["):
                found.append(f"{again}[..., ::-1]" if self.names[again.partition(".")[0]].ndim else again)
        found += [name for name in self.parameters if self.random.random() < 0.2]
        if self.random.random() < 0.3:
            self.lines.append(f"return {{'some': [{', '.join(found)}], 'nothing': None, 'three': (3,)}}")
        else:
            self.lines.append(f"return [{', '.join(found)}]")


@pytest.mark.parametrize("seed", range(PROGRAMS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_program_replayed_has_the_bits_of_eager(seed: int) -> None:
    program = Writer(seed)
    step = program.step()
    captured = xgrad.capture(step)
    masks = "> 0] = 0" in program.source  # refused where the value is an array, whose shape depends on the mask
    for turn in (0, 0, 1, 2, 3):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            expected = snapshot(step(*program.inputs(turn)))
            try:
                warnings.simplefilter("ignore" if masks else "error", CaptureWarning)
                assert_same([expected], [snapshot(captured(*program.inputs(turn)))])
            except Exception as error:
                raise AssertionError(f"turn {turn}: {error}\n{program.source}") from error
    assert masks or (captured.refusal is None and captured.recordings == 1), program.source
