"""A neural ODE: a network learns the right-hand side of a differential equation from a spiral.

`Solve` is a custom `Function` with the Runge-Kutta method. Its derivative is the adjoint equation
[1], which runs back in time together with the state. Therefore only the last state is saved for
backward, whatever the number of steps.

    python examples/neural_ode.py [--steps 600] [--device cpu] [--plot ode.png]

[1] R. T. Q. Chen, Y. Rubanova, J. Bettencourt, D. Duvenaud, "Neural ordinary differential
equations", 2018.
"""

import argparse

import numpy as np

import xgrad
from xgrad import optim

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--device", default="cpu")
parser.add_argument("--plot", metavar="FILE", help="draw the spiral, by Matplotlib")
options = parser.parse_args()


def runge_kutta(slope, states, time, steps):
    """Return the states after some time, given the function of their slopes.

    The time may be negative.
    """
    h = time / steps

    def moved(by, slopes):
        return [state + by * change for state, change in zip(states, slopes, strict=True)]

    for _ in range(steps):
        first = slope(*states)
        second = slope(*moved(h / 2, first))
        third = slope(*moved(h / 2, second))
        fourth = slope(*moved(h, third))
        sums = [
            a + 2 * b + 2 * c + d for a, b, c, d in zip(first, second, third, fourth, strict=True)
        ]
        states = moved(h / 6, sums)
    return states


class Solve(xgrad.Function):
    """The state after some time of dy/dt = tanh(y**3 @ w + b) @ v."""

    @staticmethod
    def forward(xp, y, w, b, v, *, time, steps):
        return runge_kutta(lambda y: [xp.tanh(y**3 @ w + b) @ v], [y], time, steps)[0]

    @staticmethod
    def backward(xp, g, out, w, b, v, time, steps):
        def slopes(y, g, *_):
            """Return the slopes of the state, its gradient, and the gradients of w, b and v."""
            h = xp.tanh(y**3 @ w + b)
            inner = g @ v.T * (1 - h * h)
            return (
                h @ v,
                -(inner @ w.T) * 3 * y**2,
                -(y**3).T @ inner,
                -xp.sum(inner, axis=0),
                -h.T @ g,
            )

        states = [out, g, xp.zeros_like(w), xp.zeros_like(b), xp.zeros_like(v)]
        return tuple(runge_kutta(slopes, states, -time, steps)[1:])


solve = Solve(steps=4)
TRUE = np.array([[-0.1, 2.0], [-2.0, -0.1]], dtype=np.float32)
spiral = [np.array([[2.0, 0.0]], dtype=np.float32)]
for _ in range(400):
    spiral += runge_kutta(lambda y: [y**3 @ TRUE], spiral[-1:], 0.025, 1)
spiral = xgrad.asarray(np.concatenate(spiral), device=options.device)

xgrad.manual_seed(0)
shapes = {"w": (2, 32), "b": (32,), "v": (32, 2)}
params = [
    (0.3 * xgrad.random.randn(shape, device=options.device)).requires_grad_()
    for shape in shapes.values()
]
optimizer = optim.Adam(params, lr=0.01)
for i in range(options.steps):
    optimizer.param_groups[0]["lr"] = 0.01 * (1 - i / options.steps)
    optimizer.zero_grad()
    start = xgrad.random.randint(0, 380, (32,), device=options.device)
    state, loss = spiral[start], 0.0
    for n in range(1, 5):  # each five points of the data later
        state = solve(state, *params, time=0.125)
        loss = loss + xgrad.abs(state - spiral[start + 5 * n]).mean() / 4
    loss.backward()
    optimizer.step()
    if i % max(1, options.steps // 5) == 0 or i == options.steps - 1:
        print(f"step {i}: loss {float(loss):.3f}")

with xgrad.no_grad():
    path = [spiral[:1]]
    for _ in range(80):
        path.append(solve(path[-1], *params, time=0.125))
path, exact = xgrad.concat(path).cpu().numpy(), spiral.cpu().numpy()
print(f"distance from the whole spiral: {np.abs(path - exact[::5]).mean():.2f}")

if options.plot:
    import matplotlib.pyplot as plt

    plt.plot(*exact.T)
    plt.plot(*path.T)
    plt.savefig(options.plot)
