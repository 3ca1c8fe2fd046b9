"""A Gaussian process: regression, with hyperparameters found by gradients through Cholesky.

The data are 60 noisy values of sin(3 x). The negative logarithm of the marginal likelihood is
minimized over the logarithms of an amplitude, a length scale and a noise. The fitted process then
predicts the function, with its uncertainty.

    python examples/gaussian_process.py [--steps 200] [--device cpu] [--plot gp.svg]
"""

import argparse
import math

import numpy as np

import xgrad
from xgrad import linalg, optim

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--device", default="cpu")
parser.add_argument("--plot", metavar="FILE", help="draw the prediction, by Matplotlib")
options = parser.parse_args()

NOISE = 0.2
random = np.random.default_rng(0)
inputs = np.sort(random.uniform(-2, 2, 60))
x = xgrad.asarray(inputs, device=options.device)
y = xgrad.asarray(np.sin(3 * inputs) + NOISE * random.normal(size=60), device=options.device)

#: Logarithms of the amplitude, the length scale and the standard deviation of the noise.
logs = xgrad.zeros(3, dtype=xgrad.float64, device=options.device, requires_grad=True)
optimizer = optim.Adam([logs], lr=0.05)


def kernel(x1, x2):
    """Return the covariances of the function between points."""
    amplitude, length, _ = xgrad.exp(logs)
    return amplitude**2 * xgrad.exp(-(((x1[:, None] - x2) / length) ** 2) / 2)


def factor():
    """Return the Cholesky factor of the data's covariances, and the weights of the predictions.

    The weights are the product of the inverse covariances and the data.
    """
    noise = xgrad.exp(2 * logs[2]) * xgrad.eye(x.size, dtype=x.dtype, device=x.device)
    lower = linalg.cholesky(kernel(x, x) + noise)
    return lower, linalg.cholesky_solve(y[:, None], lower)[:, 0]


def loss():
    """Return the negative logarithm of the marginal likelihood, per point."""
    lower, weights = factor()
    determinant = xgrad.log(linalg.diagonal(lower)).sum()
    return (y @ weights / 2 + determinant) / x.size + math.log(2 * math.pi) / 2


for i in range(options.steps):
    optimizer.zero_grad()
    value = loss()
    value.backward()
    optimizer.step()
    if i % max(1, options.steps // 5) == 0:
        print(f"step {i}: loss {float(value):.3f}")
amplitude, length, noise = xgrad.exp(logs.detach()).tolist()
print(
    f"loss {float(loss()):.3f}: amplitude {amplitude:.2f}, length {length:.2f}, noise {noise:.3f}"
    f" of {NOISE}"
)

with xgrad.no_grad():
    grid = np.linspace(-2, 2, 200)
    lower, weights = factor()
    across = kernel(xgrad.asarray(grid, device=options.device), x)
    mean = (across @ weights).cpu().numpy()
    explained = (across * linalg.cholesky_solve(across.mT, lower).mT).sum(axis=1).cpu().numpy()
spread = np.sqrt(np.maximum(amplitude**2 - explained, 0))
print(
    f"error {np.sqrt(np.mean((mean - np.sin(3 * grid)) ** 2)):.3f}, expected"
    f" {np.sqrt(np.mean(spread**2)):.3f}"
)

if options.plot:
    import matplotlib.pyplot as plt

    from xgrad.support.plotting import STYLE

    plt.style.use(STYLE)

    figure, ax = plt.subplots(figsize=(5.6, 3.8))
    band = (mean - 2 * spread, mean + 2 * spread)
    ax.fill_between(grid, *band, alpha=0.3, linewidth=0, label="± 2 standard deviations")
    ax.plot(grid, mean, label="prediction")
    ax.plot(grid, np.sin(3 * grid), "--", color="C7", label="sin(3 x)")
    ax.plot(inputs, y.cpu().numpy(), ".", color="C1", label="data")
    ax.set(title="a function from 60 noisy values", xlabel="x", ylabel="y")
    figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    figure.savefig(options.plot)
