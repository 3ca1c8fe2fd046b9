"""Random programs: recorded on some inputs and replayed on others, they give the bits and layouts of an eager run."""

import random
import warnings

import numpy as np
import pytest

import xgrad
from capturing.twins import alike, snapshot
from xgrad.capturing import CaptureWarning

PROGRAMS = 400
LARGEST = 1 << 15  # elements of what a program makes


# What can be done, with {x}, {y} and {z} for names

UNARY = """
xgrad.tanh({x}) | xgrad.exp(-xgrad.abs({x})) | xgrad.sin({x}) | xgrad.maximum({x}, 0) | -{x} | abs({x}) |
{x} * {x} | xgrad.sqrt(abs({x})) | xgrad.log1p(abs({x})) | {x} ** 2 | {x} ** 3 | 2 * {x} | 1 - {x} | {x} / 3 |
xgrad.sign({x}) | xgrad.clip({x}, -0.5, 0.75) | xgrad.floor({x}) | 1 / {x} | {x} ** 0.5 |
xgrad.cumulative_sum(xgrad.reshape({x}, (-1,))) | xgrad.nn.functional.softmax({x}, axis=-1) |
xgrad.nn.functional.relu({x}) | xgrad.sort({x}, axis=-1) | xgrad.nn.functional.gelu({x}) |
xgrad.diff({x}, axis=-1) | xgrad.logaddexp({x}, 0) | {x} + 1e-3 | {x} * 0 | xgrad.nn.functional.sigmoid({x}) |
xgrad.special.logsumexp({x}, axis=-1) | xgrad.nn.functional.log_softmax({x}, axis=0)
"""
BINARY = """
{x} + {y} | {x} - {y} | {x} * {y} | {x} / {y} | xgrad.maximum({x}, {y}) | xgrad.minimum({x}, {y}) |
xgrad.atan2({x}, {y}) | xgrad.hypot({x}, {y}) | {x} ** 2 + {y} | xgrad.copysign({x}, {y}) | {x} + {y} * {x} |
xgrad.logaddexp({x}, {y})
"""
VIEW = """
{x}.mT | {x}[0] | {x}[-1, ...] | {x}[..., 0] | {x}[1:] | {x}[::-1] | {x}[..., ::2] | {x}[None] | {x}[..., None] |
xgrad.reshape({x}, (-1,)) | xgrad.flip({x}) | xgrad.expand_dims({x}, axis=0) | xgrad.moveaxis({x}, 0, -1) |
xgrad.broadcast_to({x}, (2, *{x}.shape)) | xgrad.roll({x}, 1) | {x}[:, 1] | {x}[::-2, ...] | {x}.T |
xgrad.squeeze({x}, axis=0) | xgrad.reshape({x}, (2, -1)) | xgrad.tile({x}, (2,)) | xgrad.repeat({x}, 2) |
xgrad.unstack({x})[-1]
"""
PRODUCT = """
{x} @ {y} | {x} @ {y}.mT | {x}.mT @ {y} | xgrad.vecdot({x}, {y}) | {x} @ {x}.mT |
xgrad.tensordot({x}, {y}, axes=1) | xgrad.linalg.outer(xgrad.reshape({x}, (-1,)), xgrad.reshape({y}, (-1,))) |
xgrad.sum({x} * {y}, axis=0)
"""
JOINED = """
xgrad.concat([{x}, {y}]) | xgrad.stack([{x}, {y}]) | xgrad.concat([{x}, {y}, {x}], axis=-1) |
xgrad.stack([{y}, {x}], axis=-1)
"""
IN_PLACE = """
{z} += {y} | {z} *= {y} | {z} -= 0.5 | {z}[0] = {y} | {z}[...] = {y} | {z}[..., 0] = 2 | {z}[1:] = {z}[:-1] |
{z} /= 3 | {z}[{z} > 0] = 0
"""


class Writer:
    """Writes a program a line at a time, and runs it on the way to know what there is to go on with."""

    def __init__(self, seed):
        self.seed, self.random = seed, random.Random(seed)
        self.large = self.random.random() < 0.15
        self.names, self.lines, self.count = {"xgrad": xgrad}, [], 0
        self.layouts = [self.layout() for _ in range(self.random.randint(1, 4))]
        self.parameters = [f"x{i}" for i in range(len(self.layouts))]
        for name, x in zip(self.parameters, self.inputs(0), strict=True):
            self.names[name] = x
        for i, name in enumerate(self.parameters):
            if self.names[name].dtype.kind == "f" and self.random.random() < 0.8:
                self.add(f"a{i} = {name}.detach().requires_grad_()", f"a{i}")
        self.leaves = [name for name in self.names if name.startswith("a")]
        for _ in range(self.random.randint(3, 25)):
            self.statement()
        self.gradients()
        self.results()
        self.source = f"def step({', '.join(self.parameters)}):\n" + "".join(f"    {line}\n" for line in self.lines)

    def step(self):
        """Return the program."""
        scope = {"xgrad": xgrad}
        exec(compile(self.source, f"program {self.seed}", "exec"), scope)
        return scope["step"]

    # What it is given

    def layout(self):
        """Return the shape, the dtype and the memory of an input."""
        lengths = [1, 2, 2, 3, 4, 5] if not self.large else [1, 3, 40, 130]
        shape = tuple(self.random.choice(lengths) for _ in range(self.random.choice([0, 1, 1, 2, 2, 2, 3])))
        if self.random.random() < 0.05 and shape:
            shape = (0, *shape[1:])
        dtype = self.random.choice(["float32"] * 5 + ["float64"] * 2 + ["int64", "bool", "int32"])
        return shape, dtype, self.random.choice(["plain"] * 4 + ["columns", "spaced", "reversed"])

    def inputs(self, turn):
        """Return inputs, others at each turn."""
        rng = np.random.default_rng([self.seed, turn])
        made = []
        for shape, dtype, memory in self.layouts:
            wide = (*shape[:-1], 2 * shape[-1]) if memory == "spaced" and shape else shape
            values = rng.normal(size=wide)
            special = rng.random(size=wide) < (0.08 if self.seed % 3 == 0 else 0)
            values = np.where(special, rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], size=wide), values)
            if dtype in ("int64", "int32"):
                values = rng.integers(-3, 4, size=wide)
            elif dtype == "bool":
                values = values > 0
            values = np.asarray(values).astype(dtype)
            if memory == "columns" and len(shape) > 1:
                x = xgrad.asarray(np.ascontiguousarray(values.swapaxes(-1, -2))).mT
            elif memory == "spaced" and shape:
                x = xgrad.asarray(values)[..., ::2]
            elif memory == "reversed" and shape:
                x = xgrad.flip(xgrad.asarray(values))
            else:
                x = xgrad.asarray(values)
            made.append(x)
        return made

    # What it does

    def add(self, line, *made):
        """Add a line, if it can be run."""
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

    def new(self):
        """Return a new name."""
        self.count += 1
        return f"v{self.count}"

    def some(self, kinds="fiub", test=lambda t: True):
        """Return the name of a tensor of one of some kinds, of the last ones rather than the first."""
        found = [
            name
            for name, value in self.names.items()
            if isinstance(value, xgrad.Tensor) and value.dtype.kind in kinds and test(value)
        ]
        if not found:
            raise LookupError
        return self.random.choice(found[-6:] if self.random.random() < 0.6 else found)

    def statement(self):
        """Add one statement, or try to."""
        write = self.random.choice(
            [
                self.unary,
                self.binary,
                self.binary,
                self.view,
                self.view,
                self.reduction,
                self.product,
                self.joined,
                self.choice,
                self.in_place,
                self.cast,
                self.integers,
                self.constant,
            ]
        )
        try:
            write()
        except LookupError:
            return

    def one_of(self, forms):
        """Return one of the forms of a table."""
        return self.random.choice([form.strip() for form in forms.split(" |")])

    def unary(self):
        x, y = self.some("f"), self.new()
        form = self.one_of(UNARY)
        self.add(f"{y} = {form.format(x=x)}", y)

    def binary(self):
        x, y, z = self.some("f"), self.some("fi"), self.new()
        form = self.one_of(BINARY)
        if self.random.random() < 0.5:
            x, y = y, x
        self.add(f"{z} = {form.format(x=x, y=y)}", z)

    def view(self):
        x, y = self.some(), self.new()
        form = self.one_of(VIEW)
        self.add(f"{y} = {form.format(x=x)}", y)

    def reduction(self):
        x, y = self.some("fib"), self.new()
        name = self.random.choice("sum mean max min prod std var sum mean any all count_nonzero".split())
        axis = self.random.choice(
            ["", ", axis=0", ", axis=-1", ", axis=-1, keepdims=True", ", axis=(0, 1)", ", axis=1"]
        )
        self.add(f"{y} = xgrad.{name}({x}{axis})", y)

    def product(self):
        x, y, z = self.some("f"), self.some("f"), self.new()
        form = self.one_of(PRODUCT)
        self.add(f"{z} = {form.format(x=x, y=y)}", z)

    def joined(self):
        x, z = self.some("f"), self.new()
        y = self.some("f", lambda t: t.ndim == self.names[x].ndim)
        form = self.one_of(JOINED)
        self.add(f"{z} = {form.format(x=x, y=y)}", z)

    def choice(self):
        x, y, c, z = self.some("f"), self.some("fi"), self.new(), self.new()
        comparison = self.random.choice(
            ["{x} > 0", "{x} < {y}", "{x} == {y}", "({x} > -1) & ({x} <= {y})", "~({x} != {y})"]
        )
        if self.add(f"{c} = {comparison.format(x=x, y=y)}", c):
            sides = self.random.choice(["{x}, 0", "0, {x}", "{x}, 0.0", "{x}, {y}", "-{x}, {x}", "{x}, 1"])
            self.add(f"{z} = xgrad.where({c}, {sides.format(x=x, y=y)})", z)

    def in_place(self):
        x, y, z = self.some("f"), self.some("fi"), self.new()
        made = self.random.choice(
            ["{x} * 1", "xgrad.asarray({x}, copy=True)", "{x}.detach() * 2", "xgrad.zeros_like({x})"]
        )
        if not self.add(f"{z} = {made.format(x=x)}", z):
            return
        for _ in range(self.random.randint(1, 3)):
            form = self.one_of(IN_PLACE)
            self.add(form.format(z=z, y=y), z)

    def cast(self):
        x, y = self.some("fib"), self.new()
        dtype = self.random.choice(["float32", "float64", "float32", "int64", "bool"])
        if dtype in ("int64", "bool") and self.names[x].dtype.kind == "f":
            x = f"xgrad.clip(xgrad.where({x} == {x}, {x}, 0), -9, 9)" if dtype == "int64" else x
        self.add(f"{y} = ({x}).astype(xgrad.{dtype})", y)

    def integers(self):
        x, y, i = self.some("f", lambda t: t.ndim > 0 and t.size > 0), self.new(), self.new()
        form = self.random.choice(
            [
                "xgrad.argmax({x}, axis=-1)",
                "xgrad.argmin({x}, axis=0)",
                "xgrad.argsort({x}, axis=0)",
                "xgrad.arange({x}.shape[0])",
            ]
        )
        if self.add(f"{i} = {form.format(x=x)}", i):
            use = self.random.choice(
                [
                    "{i} * 2 - 1",
                    "{i} % 2",
                    "{x}[{i} % {x}.shape[0]]",
                    "{i} // 2 + {x}",
                    "xgrad.take({x}, xgrad.reshape({i}, (-1,)) % {x}.shape[0], axis=0)",
                ]
            )
            self.add(f"{y} = {use.format(x=x, i=i)}", y)

    def constant(self):
        x, y = self.some("f"), self.new()
        form = self.random.choice(
            [
                "xgrad.ones({x}.shape)",
                "xgrad.zeros_like({x})",
                "xgrad.arange(3.0)",
                "xgrad.asarray([1.5, -0.0])",
                "xgrad.full((2, 1), 0.5)",
                "xgrad.eye(2)",
                "xgrad.ones((2, 3)).T",
            ]
        )
        self.add(f"{y} = {form.format(x=x)}", y)

    # What comes of it

    def gradients(self):
        """Add gradients of something, perhaps of gradients."""
        wanting = [
            n for n, v in self.names.items() if isinstance(v, xgrad.Tensor) and v.requires_grad and not v.is_leaf
        ]
        if not wanting or self.random.random() < 0.1:
            return
        ends = self.random.sample(wanting, min(len(wanting), self.random.choice([1, 1, 2])))
        total = " + ".join(f"xgrad.sum({end})" for end in ends)
        self.add(f"total = {total}", "total")
        if "total" not in self.names:
            return
        leaves = f"[{', '.join(self.leaves)}]"
        kind = self.random.random()
        if kind < 0.3:
            self.add("total.backward()")
            for leaf in self.leaves:
                self.add(f"g_{leaf} = {leaf}.grad if {leaf}.grad is not None else {leaf}.detach()", f"g_{leaf}")
        elif kind < 0.65:
            self.add(f"gs = xgrad.autograd.grad(total, {leaves}, allow_unused=True)")
        else:
            self.add(f"gs = xgrad.autograd.grad(total, {leaves}, create_graph=True, allow_unused=True)")
            self.add("second = sum((xgrad.sum(g * g) for g in gs if g is not None), 0 * total)", "second")
            self.add(f"hs = xgrad.autograd.grad(second, {leaves}, allow_unused=True)")

    def results(self):
        """Add the results: some of what there is, and views of it, perhaps of the inputs."""
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
                found += [f"{again}[..., ::-1]" if self.names[again.partition(".")[0]].ndim else again]
        found += [name for name in self.parameters if self.random.random() < 0.2]
        if self.random.random() < 0.3:
            self.lines.append(f"return {{'some': [{', '.join(found)}], 'nothing': None, 'three': (3,)}}")
        else:
            self.lines.append(f"return [{', '.join(found)}]")


@pytest.mark.parametrize("seed", range(PROGRAMS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_replayed_is_eager_to_the_bit(seed):
    program = Writer(seed)
    step = program.step()
    captured = xgrad.capture(step)
    masks = "> 0] = 0" in program.source  # of which it matters whether they are full: such a program may be refused
    for turn in (0, 0, 1, 2, 3):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            expected = snapshot(step(*program.inputs(turn)))
            try:
                warnings.simplefilter("ignore" if masks else "error", CaptureWarning)
                alike([expected], [snapshot(captured(*program.inputs(turn)))])
            except Exception as error:
                raise AssertionError(f"turn {turn}: {error}\n{program.source}") from error
    assert masks or (captured.refusal is None and captured.recordings == 1), program.source
