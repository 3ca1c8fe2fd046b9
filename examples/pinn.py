"""A physics-informed network: its second derivatives satisfy the heat equation.

The rod is from 0 to 1, its ends have temperature 0, and its initial temperature is sin(pi x). The
network's output is weighted so that these conditions hold; training minimizes the square of u_t -
u_xx / 10 at random points. The error is measured against the exact solution, exp(-pi^2 t / 10)
sin(pi x).

    python examples/pinn.py [--steps 1500] [--device cpu] [--plot pinn.svg]
"""

import argparse
import math

import numpy as np

import xgrad
from xgrad import grad, nn, optim, vmap

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--steps", type=int, default=1500)
parser.add_argument("--device", default="cpu")
parser.add_argument("--plot", metavar="FILE", help="draw the solution, by Matplotlib")
options = parser.parse_args()

xgrad.manual_seed(0)
net = nn.MLP([2, 32, 32, 1], activation=nn.Tanh).to(options.device)
optimizer = optim.Adam(net.parameters(), lr=3e-3)


def u(x, t):
    """Return the temperature at one point and time."""
    return xgrad.sin(math.pi * x) + t * x * (1 - x) * net(xgrad.stack([x, t]))[0]


def residual(x, t):
    """Return the residual of the heat equation at one point and time."""
    return grad(u, argnums=1)(x, t) - 0.1 * grad(grad(u))(x, t)


@xgrad.capture
def step(x, t):
    """Update the network, and return the loss."""
    optimizer.zero_grad()
    loss = (vmap(residual)(x, t) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss


x, t = np.meshgrid(np.linspace(0, 1, 41, dtype=np.float32), np.linspace(0, 1, 41, dtype=np.float32))
exact = np.exp(-0.1 * math.pi**2 * t) * np.sin(math.pi * x)


def solution():
    """Return the temperatures on the grid."""
    with xgrad.no_grad():
        points = [xgrad.asarray(values.ravel(), device=options.device) for values in (x, t)]
        return vmap(u)(*points).cpu().numpy().reshape(x.shape)


print(f"error {np.abs(solution() - exact).max():.2e} before training")
for i in range(options.steps):
    points = xgrad.random.rand((2, 256), device=options.device)
    loss = step(points[0], points[1])
    if (i + 1) % max(1, options.steps // 5) == 0:
        print(
            f"step {i + 1}: residual {float(loss):.2e}, error"
            f" {np.abs(solution() - exact).max():.2e}"
        )

if options.plot:
    import matplotlib.pyplot as plt

    from xgrad.support.plotting import STYLE

    plt.style.use(STYLE)
    figure, axes = plt.subplots(1, 2, figsize=(6.2, 2.7))
    error = 1000 * (solution() - exact)
    for ax, values, title, colors in (
        (axes[0], solution(), "temperature u(x, t)", "viridis"),
        (axes[1], error, "error, thousandths", "coolwarm"),
    ):
        limit = {"vmin": -np.abs(error).max(), "vmax": np.abs(error).max()} if ax is axes[1] else {}
        picture = ax.imshow(
            values, colors, origin="lower", extent=(0, 1, 0, 1), interpolation="bilinear", **limit
        )
        figure.colorbar(picture, ax=ax)
        ax.set(title=title, xlabel="place x", ylabel="time t")
    figure.savefig(options.plot)
