"""The summary of a model: output shapes, parameters and memory of its layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.core.views import base_of
from xgrad.nn.calls import CallableModule
from xgrad.nn.parameter import Parameter
from xgrad.support import trees
from xgrad.support.units import size


@dataclass
class LayerSummary:
    """A row of the summary of a model.

    Attributes
    ----------
    path, kind : str
        The name of the layer in the model, "" for the model itself, and the name of its class.
    outputs : list of tuple of int
        The shapes of the tensors that its last call returned.
    calls : int
        The number of calls.
    parameters, trainable : int
        The number of elements of its own parameters, without nested layers, and how many of them
        require gradients. A shared parameter is counted at the first layer that has it.
    parameter_bytes, buffer_bytes, output_bytes : int
        The memory of its parameters, of its buffers, and of the new tensors that it returned:
        views, inputs and the outputs of nested layers do not count.
    """

    path: str
    kind: str
    outputs: list[tuple[int, ...]]
    calls: int = 0
    parameters: int = 0
    trainable: int = 0
    parameter_bytes: int = 0
    buffer_bytes: int = 0
    output_bytes: int = 0

    def cells(self) -> list[str]:
        """Return the cells of the row in the table."""
        shapes = ", ".join(map(str, self.outputs)) if self.calls else "not called"
        times = f" x {self.calls}" if self.calls > 1 else ""
        numbers = [f"{self.parameters:,}", size(self.parameter_bytes), size(self.output_bytes)]
        return [
            self.path,
            self.kind,
            shapes + times,
            *[text if text[0] != "0" else "" for text in numbers],
        ]


@dataclass(frozen=True)
class Summary:
    """A summary of the layers of a model, in the order of `Module.named_modules`.

    Its text is a table with totals.
    """

    layers: list[LayerSummary]

    def total(self, name: str) -> int:
        """Return the sum of an attribute over the layers, such as "parameters"."""
        return sum(getattr(layer, name) for layer in self.layers)

    def __repr__(self) -> str:
        head = ["layer", "class", "output", "parameters", "memory", "activations"]
        rows = [head, *[layer.cells() for layer in self.layers]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        form = "  ".join(
            [f"{{:{side}{width}}}" for side, width in zip("<<<>>>", widths, strict=True)]
        )
        lines = [form.format(*row).rstrip() for row in rows]
        count, trainable = self.total("parameters"), self.total("trainable")
        frozen = "" if trainable == count else f" ({trainable:,} trainable)"
        buffers = self.total("buffer_bytes")
        lines.append(
            f"total: {count:,} parameters{frozen} in {size(self.total('parameter_bytes'))}"
            + (f", buffers of {size(buffers)}" if buffers else "")
            + f", activations of {size(self.total('output_bytes'))}"
        )
        return "\n".join(lines)


def summarize(model: CallableModule, inputs: tuple[Any, ...], options: dict[str, Any]) -> Summary:
    """Call a model in evaluation mode without gradients, and return its summary.

    The model is not changed.
    """
    modules = list(model.named_modules())
    rows = {id(module): LayerSummary(path, type(module).__name__, []) for path, module in modules}
    # The values keep the objects alive, so that no id is used again.
    counted: dict[int, Any] = {id(x): x for _, x in trees.leaves([inputs, options])}
    for _, module in modules:
        _count_state(module, rows[id(module)], counted)

    def note_output(module: CallableModule, args: Any, output: Any) -> None:
        row = rows[id(module)]
        tensors = [x for _, x in trees.leaves(output) if isinstance(x, Tensor)]
        row.calls += 1
        row.outputs = [x.shape for x in tensors]
        for x in tensors:
            whole = x
            while (base := base_of(whole)) is not None:
                whole = base
            if id(whole) not in counted:
                row.output_bytes += _bytes(x)
            counted[id(whole)] = whole

    modes, handles = [(module, module.training) for _, module in modules], []
    try:
        for _, module in modules:
            module.training = False
            handles.append(module.register_forward_hook(note_output))
        with no_grad():
            model(*inputs, **options)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return Summary(list(rows.values()))


def _count_state(module: Any, row: LayerSummary, counted: dict[int, Any]) -> None:
    """Add a module's own parameters and buffers to its row, unless they are already counted."""
    for name, x in vars(module).items():
        if id(x) in counted or not (
            isinstance(x, Parameter) or (name in module._buffers and x is not None)
        ):
            continue
        counted[id(x)] = x
        if isinstance(x, Parameter):
            row.parameters += x.size
            row.trainable += x.size if x.requires_grad else 0
            row.parameter_bytes += _bytes(x)
        else:
            row.buffer_bytes += _bytes(x)


def _bytes(x: Tensor) -> int:
    return x.size * x.dtype.itemsize
