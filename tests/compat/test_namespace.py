"""Paths, sizes, formatted numbers and missing names of the namespace, compared with PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from xgrad.compat import torch as compat

#: Imports in the forms that programs have them, without the name ``torch``.
IMPORTS = """
.amp autocast
.autograd Variable
.autograd.function once_differentiable
.autograd.functional jacobian
.backends.cudnn benchmark
.cuda.amp GradScaler
.nn.init xavier_uniform_
.nn.parameter Parameter
.nn.utils clip_grad_norm_
.nn.utils.rnn pad_sequence
.optim.lr_scheduler StepLR
.optim.optimizer Optimizer
.random fork_rng
.utils.checkpoint checkpoint
.utils.data.dataloader DataLoader
.utils.data.dataset Dataset
"""

#: Expressions of numbers and strings.
EXPRESSIONS = """
(1,) + torch.Size([2, 3])
torch.Size([2, 3]) + (4,)
torch.Size([2]) * 2
2 * torch.Size([2])
torch.Size([1]) + torch.Size([2])
f"{torch.tensor(2.5)}"
f"{torch.tensor(3)} {torch.tensor(True)}"
f"{torch.tensor(2.5):.3f} {torch.tensor(3):04d}"
f"{torch.tensor(2.5, requires_grad=True)}"
"%.2f %d" % (torch.tensor(0.5), torch.tensor(3))
f"{torch.tensor([1, 2])}"
"""
CASES = EXPRESSIONS.strip().splitlines()


@pytest.mark.parametrize("line", IMPORTS.strip().splitlines())
def test_names_are_imported_from_pytorch_paths(torch: Any, line: str) -> None:
    path, name = line.split()
    assert hasattr(import_module("torch" + path), name)
    assert hasattr(import_module("xgrad.compat.torch" + path), name)


@pytest.mark.parametrize("expression", CASES)
def test_sizes_and_formatted_numbers_match_pytorch(torch: Any, expression: str) -> None:
    theirs, mine = (eval(expression, {"torch": library}) for library in (torch, compat))
    assert mine == theirs
    assert type(mine).__name__ == type(theirs).__name__


@pytest.mark.parametrize("other", [[1], "a", 2])
def test_sizes_are_joined_with_tuples_alone(other: Any) -> None:
    with pytest.raises(TypeError):
        compat.Size([2]) + other
    with pytest.raises(TypeError):
        other + compat.Size([2])


@pytest.mark.parametrize(
    "path",
    "accelerator amp autograd autograd.functional backends cuda fft func nn nn.functional nn.init"
    " nn.parameter optim optim.lr_scheduler random utils utils.data".split(),
)
def test_missing_names_say_so(path: str) -> None:
    module = import_module(f"xgrad.compat.torch.{path}")
    with pytest.raises(AttributeError, match=rf"torch\.{path}\.nope is not available"):
        module.nope  # noqa: B018


def test_fork_rng_restores_the_state() -> None:
    compat.manual_seed(0)
    with compat.random.fork_rng():
        first = compat.rand(2)
    assert compat.rand(2).tolist() == first.tolist()
