"""PyTorch's samples of modules (ModuleInfo): constructor arguments, calls and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db

import xgrad.compat.torch as compat
from tests.pytorch_samples.functions import scalar, tensors
from tests.pytorch_samples.outcome import Arguments, Outcome, compare

#: Modules whose results are random in training mode.
RANDOM = ("Dropout", "RReLU", "Fractional")


def outcomes(names: list[str]) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome of each sample of the named modules, or of all, in both modes."""
    for info in module_db:
        name = info.name.removeprefix("torch.")
        if (names and name not in names) or "Lazy" in name:
            continue
        kind = mine(info.module_cls)
        for training in (True, False):
            samples = info.module_inputs_func(
                info, device="cpu", dtype=torch.float64, requires_grad=True, training=training
            )
            for sample in samples:
                yield name, Outcome("missing") if kind is None else outcome(info, sample, training)


def mine(value: Any) -> Any:
    """Return xgrad's module or function with the name of one of PyTorch's, None without one."""
    for space in ("nn", "nn.functional", ""):
        owner = reduce(getattr, filter(None, space.split(".")), compat)
        if hasattr(owner, value.__name__):
            return getattr(owner, value.__name__)
    return None


def replaced(value: Any) -> Any:
    """Return arguments of a constructor with functions and modules of xgrad."""
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        attention = value.self_attn
        return compat.nn.TransformerEncoderLayer(
            attention.embed_dim,
            attention.num_heads,
            value.linear1.out_features,
            value.dropout.p,
            replaced(value.activation),
            batch_first=attention.batch_first,
            norm_first=value.norm_first,
            bias=value.linear1.bias is not None,
        )
    if isinstance(value, torch.nn.Module):
        return mine(type(value))()
    if callable(value) and getattr(value, "__module__", "").startswith("torch"):
        return mine(value)
    return Arguments(compat).of(value)


def outcome(info: Any, sample: Any, training: bool) -> Outcome:
    """Compare a module with equal parameters on equal arguments."""
    made, given = sample.constructor_input, sample.forward_input
    only_shapes = training and any(part in info.name for part in RANDOM)
    theirs = None
    try:
        torch.manual_seed(0)
        theirs = info.module_cls(*made.args, **made.kwargs).double().train(training)
    except Exception:
        return Outcome("agrees")  # a sample of an error of the constructor
    state = {key: value.clone() for key, value in theirs.state_dict().items()}

    def build() -> Any:
        args = [replaced(value) for value in made.args]
        kwargs = {key: replaced(value) for key, value in made.kwargs.items()}
        module = mine(info.module_cls)(*args, **kwargs).double().train(training)
        module.load_state_dict(Arguments(compat).of(state))
        return module

    def arguments(lib: Any) -> Any:
        return Arguments(lib).of((given.args, given.kwargs))

    return compare(
        lambda: results(torch, lambda: theirs, arguments(torch), only_shapes),
        lambda: results(compat, build, arguments(compat), only_shapes),
    )


def results(lib: Any, build: Callable[[], Any], arguments: Any, only_shapes: bool) -> Any:
    """Return the results of a module, and the gradients for its inputs and parameters."""
    args, options = arguments
    module = build()
    out = module(*args, **options)
    if only_shapes:
        return [tuple(t.shape) for t in tensors(lib, out)]
    given = [t for t in tensors(lib, (args, options)) if t.requires_grad]
    leaves = [*given, *(p for p in module.parameters() if p.requires_grad)]
    ends = [t for t in tensors(lib, out) if t.requires_grad]
    if not leaves or not ends:
        return out
    total = sum((scalar(lib, t) for t in ends[1:]), scalar(lib, ends[0]))
    return out, list(lib.autograd.grad(total, leaves, allow_unused=True))
