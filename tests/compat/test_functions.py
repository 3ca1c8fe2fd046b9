"""`torch.autograd.Function`: functions with a context, against PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import xgrad
from tests.compat.compared import array, check_call
from xgrad.compat import torch as compat

#: Definitions that are evaluated with each library
DEFINITIONS = """
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, = ctx.saved_tensors
        return grad_output * y

class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        ctx.save_for_backward(x)
        return x ** n

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        return grad_output * ctx.n * x ** (ctx.n - 1), None

class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(input, weight, bias):
        return input.mm(weight.t()) + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias

class SplitSign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        sign = x.sign()
        ctx.mark_non_differentiable(sign)
        ctx.save_for_backward(sign)
        return x * sign, sign, x * 2

    @staticmethod
    def backward(ctx, g, g_sign, g_double):
        sign, = ctx.saved_tensors
        return g * sign + 2 * g_double
"""

EXPRESSIONS = """
Exp.apply(x)
Exp.apply(Exp.apply(x) * x)
Power.apply(x, 3)
LinearFunction.apply(x, y, b)
LinearFunction.apply(x.detach(), y, b)
SplitSign.apply(x)
SplitSign.apply(x)[2]
torch.autograd.grad(Power.apply(x, 3).sum(), x, create_graph=True)
torch.autograd.grad(Exp.apply(x * 2).sum(), x, create_graph=True)
torch.autograd.Variable(x, requires_grad=True)
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_value_and_gradients(torch: Any, text: str) -> None:
    def call(library: Any, x: Any, y: Any, b: Any) -> Any:
        names = {"torch": library, "x": x, "y": y, "b": b}
        exec(DEFINITIONS, names)
        return eval(text, names)

    check_call(torch, call, (array((3, 4)), array((2, 4)), array((2,))))


def test_captured_step_equals_eager_step() -> None:
    names: dict[str, Any] = {"torch": compat}
    exec(DEFINITIONS, names)
    power = names["Power"].apply

    def step(x: Any) -> Any:
        x.grad = None
        power(x, 3).sum().backward()
        return x.grad * 1

    results = []
    for run in (step, xgrad.capture(step)):
        x = compat.tensor(array((3,)), requires_grad=True)
        results.append([run(x).numpy() for _ in range(3)])
    np.testing.assert_array_equal(*results)


def test_wrong_gradients_are_refused() -> None:
    class Wrong(compat.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = compat.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="expected 2 gradients"):
        Wrong.apply(x, x).sum().backward()


def test_checkpoint(torch: Any) -> None:
    def call(library: Any, x: Any) -> Any:
        checkpoint = import_module(f"{library.__name__}.utils.checkpoint")
        y = checkpoint.checkpoint(lambda x: x.exp().max(1).values, x, use_reentrant=False)
        layers = [library.nn.Tanh(), library.nn.Sigmoid(), library.nn.ReLU()]
        return y, checkpoint.checkpoint_sequential(layers, 2, x, use_reentrant=False)

    check_call(torch, call, (array((3, 4)),))
