"""Interpreter of captured programs: makes the calls one after another while a stream captures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xgrad.capture.numbers import Number
from xgrad.capture.program import Call, Program, Unusable, Value, leaves, map_leaves
from xgrad_cupy.host_draws import is_host_draw

#: Functions with seeds and call numbers as arguments.
_RANDOM = {"random_bits", "dropout", "attention_weights", "attention_scores_gradient"}


class NumberOperand(NamedTuple):
    """A 0-d array for a number, in the dtype that a call computes in.

    `number` is its index in `Program.numbers`.
    """

    number: int
    dtype: Any


#: Return the calls of a program with fused kernels, given a function that returns the operands of
#: a call.
Fuse = Callable[[Program, Callable[[Call], tuple[Any, dict[str, Any]]]], Sequence[Call]]


class Interpreter:
    """The calls of a program on arrays, with 0-d arrays for numbers that change.

    `operands` are the 0-d arrays. `fuse`, if given, replaces groups of calls by calls of fused
    kernels. Raises Unusable if the program checks a value, which would wait for the GPU.
    """

    def __init__(self, program: Program, fuse: Fuse | None = None) -> None:
        self.program = program
        self._indices = {number.text: i for i, number in enumerate(program.numbers)}
        for call in program.calls:
            if call.check is not None:
                raise Unusable("a value is checked, which would wait for the GPU", call.line)
        self.replace_calls(program.calls if fuse is None else fuse(program, self._with_operands))

    def replace_calls(self, calls: Sequence[Call]) -> None:
        """Replace the calls by others with the same results."""
        self.calls = calls
        self._arguments = [self._with_operands(call) for call in self.calls]
        everything = leaves([(*args, *options.values()) for args, options in self._arguments])
        self.operands = list(dict.fromkeys([x for x in everything if type(x) is NumberOperand]))
        self._dying = self._last_uses()

    def _last_uses(self) -> list[list[int]]:
        """Return for each call the numbers of the values that no later call needs."""
        program = self.program
        last = {
            x.number: i
            for i, call in enumerate(self.calls)
            for x in (*call.reads, *call.results, *call.writes)
        }
        kept = {
            x.number for x in (*program.inputs, *program.state, *program.outputs)
        } | program.constants.keys()
        dying: list[list[int]] = [[] for _ in self.calls]
        for number in last.keys() - kept:
            dying[last[number]].append(number)
        return dying

    def _with_operands(self, call: Call) -> tuple[Any, dict[str, Any]]:
        """Return the arguments and options of a call.

        Numbers that change become operands, other numbers their values.
        """

        def operand(x: Any) -> Any:
            if type(x) is not Number:
                return x
            if not x.reads or is_host_draw(call):  # the host reads the numbers of its draws
                return x.value
            return NumberOperand(self._indices[x.text], _number_dtype(call, x))

        return map_leaves(operand, call.args), map_leaves(operand, call.options)

    def execute(
        self,
        arrays: Mapping[int, Any],
        numbers: Mapping[NumberOperand, Any],
        function_of: Callable[[Call], Callable[..., Any]],
    ) -> list[Any]:
        """Make all calls, and return the arrays of the outputs.

        `arrays` are the inputs and the state, by the numbers of their values; `numbers` are the 0-d
        arrays; `function_of` returns the function to make a call with. Raises Unusable if a call
        fails, and MemoryError if memory is short.
        """
        live = {**self.program.constants, **arrays}

        def concrete(x: Any) -> Any:
            return (
                live[x.number]
                if type(x) is Value
                else numbers[x]
                if type(x) is NumberOperand
                else x
            )

        for call, arguments, dying in zip(self.calls, self._arguments, self._dying, strict=True):
            args, options = map_leaves(concrete, arguments)
            try:
                result = function_of(call)(*args, **options)
            except (Unusable, MemoryError):
                raise
            except Exception as error:
                text = str(error).strip().partition("\n")[0]
                reason = (
                    f"{call.name} cannot be part of a CUDA graph: {type(error).__name__}: {text}"
                )
                raise Unusable(reason, call.line) from error
            if call.results:
                results = [result] if call.single else result
                live.update(zip([value.number for value in call.results], results, strict=True))
                del results
            del result, args, options  # releases memory early
            for number in dying:
                live.pop(number, None)
        return [live[value.number] for value in self.program.outputs]

    def view(self, value: Value, inputs: Mapping[int, Any]) -> Any:
        """Return an output that is a view of an input, given the arrays of inputs.

        Raises Unusable if it cannot be made.
        """
        if value.number in inputs:
            return inputs[value.number]
        for call in self.program.calls:
            if (
                value in call.results
                and not call.numbers
                and all(x.storage is value.storage for x in call.reads)
            ):
                args, options = map_leaves(
                    lambda x: self.view(x, inputs) if type(x) is Value else x,
                    (call.args, call.options),
                )
                result = call.function(*args, **options)
                return result if call.single else result[call.results.index(value)]
        raise Unusable("a result shares memory with an argument in a way that cannot be followed")


def _number_dtype(call: Call, number: Number) -> Any:
    """Return the dtype in which a call takes a number: its arrays' dtype, if that holds the number.

    A 0-d array is no weak scalar: a float64 one would promote float32 arrays. Kernels read factors
    as float64, and seeds and call numbers, which float64 would round, as uint64.
    """
    if call.name in _RANDOM and type(number.value) is int:
        return np.dtype(np.uint64)
    fused = getattr(call.function, "__module__", "").startswith("xgrad_cupy.kernels")
    if fused and call.reads[0].dtype in (np.float32, np.float64):
        return np.dtype(np.float64)
    operands = [
        *call.reads,
        *call.writes,
        *filter(_is_array, leaves((call.args, tuple(call.options.values())))),
    ]
    return np.result_type(*[x.dtype for x in operands or call.results], type(number.value)())


def _is_array(x: Any) -> bool:
    return hasattr(x, "dtype") and type(getattr(x, "shape", None)) is tuple and type(x) is not Value
