"""The table of optimizers and options, and a problem for them.

References by equations in NumPy replace rules that PyTorch lacks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import xgrad
from xgrad.optim import Optimizer

#: The optimizers with a learning rate for the problem, and options beside the defaults.
TABLE: dict[tuple[str, float], list[dict[str, Any]]] = {
    ("SGD", 0.05): [
        {},
        {"weight_decay": 0.1},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"momentum": 0.5, "maximize": True, "lr": 1e-3},
    ],
    ("Adam", 0.02): [
        {},
        {"betas": (0.7, 0.9), "lr": 5e-3},
        {"betas": (0.0, 0.0), "eps": 0.1},
        {"weight_decay": 0.1},
        {"amsgrad": True},
        {"betas": (0.8, 0.5), "eps": 1e-3, "weight_decay": 0.2, "amsgrad": True, "maximize": True},
    ],
    ("AdamW", 0.02): [
        {},
        {"weight_decay": 0.0},
        {"amsgrad": True, "weight_decay": 0.5},
        {"maximize": True},
    ],
    ("RMSprop", 0.01): [
        {"lr": 0.003},
        {"alpha": 0.5, "eps": 1e-3, "weight_decay": 0.1},
        {"momentum": 0.9},
        {"centered": True, "eps": 1e-3},
        {"centered": True, "momentum": 0.5, "weight_decay": 0.1, "maximize": True, "eps": 1e-3},
    ],
    ("Adagrad", 0.03): [
        {},
        {"lr_decay": 0.1, "weight_decay": 0.1},
        {"initial_accumulator_value": 0.5, "eps": 1e-3},
        {"maximize": True},
    ],
    ("Adadelta", 1.0): [{}, {"rho": 0.5, "eps": 1e-4, "weight_decay": 0.1}, {"maximize": True}],
    ("Adamax", 0.01): [
        {},
        {"betas": (0.8, 0.9), "eps": 1e-2, "weight_decay": 0.1},
        {"maximize": True},
    ],
    ("NAdam", 0.02): [
        {"lr": 0.01},
        {"momentum_decay": 0.1, "weight_decay": 0.1},
        {"decoupled_weight_decay": True, "weight_decay": 0.1, "eps": 1e-3, "lr": 0.01},
        {"maximize": True},
    ],
    ("RAdam", 0.02): [
        {},
        {"betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 1e-2},
        {"decoupled_weight_decay": True, "weight_decay": 0.1},
        {"maximize": True},
    ],
    ("Rprop", 0.01): [
        {},
        {"etas": (0.3, 1.5), "step_sizes": (1e-4, 0.1)},
        {"maximize": True, "step_sizes": (1e-6, 1e-3)},
    ],
    ("ASGD", 0.03): [
        {},
        {"lambd": 0.1, "alpha": 0.5, "t0": 5.0, "weight_decay": 0.1},
        {"t0": 0.0, "maximize": True, "lr": 1e-3},
    ],
    ("Adafactor", 0.05): [
        {},
        {"lr": 0.02, "beta2_decay": -0.3, "eps": (1e-3, 0.1), "d": 2.0, "weight_decay": 0.1},
        {"maximize": True},
    ],
    ("Lion", 0.003): [{}, {"betas": (0.5, 0.7), "weight_decay": 0.3}, {"maximize": True}],
    ("Muon", 0.02): [
        {},
        {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"},
        {"ns_coefficients": (2.0, -1.5, 0.5), "ns_steps": 3, "momentum": 0.5, "eps": 1e-3},
    ],
}
OPTIONS = [(name, {"lr": lr, **options}) for (name, lr), rows in TABLE.items() for options in rows]
NAMES = [name for name, _ in TABLE]
IDS = [
    f"{name}({', '.join(f'{key}={value}' for key, value in options.items())})"
    for name, options in OPTIONS
]

_GENERATOR = np.random.default_rng(0)
INPUT, TARGET = _GENERATOR.normal(size=(16, 3)), _GENERATOR.normal(size=(16, 2))
#: The parameters of an MLP, of a parabola, and of Rosenbrock's function.
START = [
    *(_GENERATOR.normal(size=shape) / 2 for shape in ((3, 5), (5,), (5, 2), (2,))),
    np.array([[0.0, 4.0]]),
    np.array([[-0.5, 0.5]]),
]
SLOWER = 0.02  # the factor of the learning rate for Rosenbrock's function, which is steep


def objective(xp: Any, params: list[Any], data: tuple[Any, Any]) -> Any:
    """Return the sum of three losses, computed by a namespace.

    They are the losses of an MLP, of a parabola, and of Rosenbrock's function.
    """
    w1, b1, w2, b2, x, y = params
    errors = xp.tanh(data[0] @ w1 + b1) @ w2 + b2 - data[1]
    return (
        (errors * errors).mean()
        + ((x - 1.0) ** 2).sum()
        + ((1 - y[:, 0]) ** 2 + 100 * (y[:, 1] - y[:, 0] ** 2) ** 2).sum()
    )


def kind(name: str) -> type[Optimizer]:
    """Return an optimizer by its name."""
    found: type[Optimizer] = getattr(xgrad.optim, name)
    return found


def groups(name: str, params: list[Any], lr: float) -> list[dict[str, Any]]:
    """Return groups of the parameters of `objective`, the last one with a smaller learning rate."""
    params = [p for p in params if p.ndim == 2] if name == "Muon" else params
    return [{"params": params[:-1]}, {"params": params[-1:], "lr": lr * SLOWER}]


def lion(
    p: np.ndarray, g: np.ndarray, state: dict[str, Any], options: dict[str, Any]
) -> np.ndarray:
    """Return the parameter after a step: Algorithm 2 of the paper."""
    lr = options["lr"]
    (beta1, beta2) = options.get("betas", (0.9, 0.99))
    decay = options.get("weight_decay", 0.0)
    g, m = (-g if options.get("maximize") else g), state.get("m", 0.0)
    update = np.sign(beta1 * m + (1 - beta1) * g)
    state["m"] = beta2 * m + (1 - beta2) * g
    return p - lr * (update + decay * p)


def muon(
    p: np.ndarray, g: np.ndarray, state: dict[str, Any], options: dict[str, Any]
) -> np.ndarray:
    """Return the parameter after a step: the documented equations, in the parameter's dtype."""
    lr, mu = options["lr"], options.get("momentum", 0.95)
    a, b, c = options.get("ns_coefficients", (3.4445, -4.775, 2.0315))
    state["b"] = mu * state.get("b", 0.0) + (1 - mu) * g
    x = (1 - mu) * g + mu * state["b"] if options.get("nesterov", True) else state["b"]
    m, n = x.shape
    x = x / max(np.linalg.norm(x), options.get("eps", 1e-7))
    for _ in range(options.get("ns_steps", 5)):
        x = a * x + b * (x @ x.T @ x) + c * (x @ x.T @ x @ x.T @ x)
    factor = 0.2 * max(m, n) ** 0.5 if options.get("adjust_lr_fn") else max(1.0, m / n) ** 0.5
    return (1 - lr * 0.1) * p - lr * factor * x


class Reference:
    """An optimizer of PyTorch's tensors by a rule in NumPy."""

    def __init__(self, torch: Any, rule: Any, groups: list[dict[str, Any]], **options: Any) -> None:
        self.torch = torch
        self.rule = rule
        self.param_groups = [{**options, **group} for group in groups]
        self.state: dict[Any, Any] = {}

    def step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                new = self.rule(
                    p.detach().numpy(), p.grad.numpy(), self.state.setdefault(p, {}), group
                )
                with self.torch.no_grad():
                    p.copy_(self.torch.as_tensor(new))


def reference(torch: Any, name: str, groups: list[dict[str, Any]], **options: Any) -> Any:
    """Return PyTorch's optimizer, or one by equations.

    Muon is one by equations, since PyTorch computes it in bfloat16.
    """
    rules = {"Lion": lion, "Muon": muon}
    if name in rules:
        return Reference(torch, rules[name], groups, **options)
    return getattr(torch.optim, name)(groups, foreach=False, **options)
