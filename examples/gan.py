"""A generative adversarial network: it learns to draw points from a mixture of Gaussians.

The eight Gaussians are on a circle. The discriminator learns to tell real points from generated
ones, the generator to mislead it. The program prints the share of generated points that are within
four standard deviations of a center, and the number of centers with more than 1 % of the points.

    python examples/gan.py [--steps 4000] [--device cpu] [--plot gan.svg]
"""

import argparse
import math

import numpy as np

import xgrad
from xgrad import nn, optim

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--steps", type=int, default=4000)
parser.add_argument("--device", default="cpu")
parser.add_argument("--plot", metavar="FILE", help="draw the points, by Matplotlib")
options = parser.parse_args()

BATCH, NOISE, SPREAD = 256, 8, 0.1
REAL = xgrad.ones((BATCH, 1), device=options.device)
FAKE = xgrad.zeros((BATCH, 1), device=options.device)
angles = 2 * math.pi * np.arange(8, dtype=np.float32) / 8
centers = xgrad.asarray(np.stack([np.cos(angles), np.sin(angles)], axis=1), device=options.device)

xgrad.manual_seed(0)
generator = nn.MLP([NOISE, 64, 64, 2]).to(options.device)
discriminator = nn.MLP([2, 64, 64, 1]).to(options.device)
generator_optimizer = optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.999))
discriminator_optimizer = optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()


@xgrad.capture
def step(real, noise):
    """Update both networks, and return their losses."""
    discriminator_optimizer.zero_grad()
    fake = generator(noise).detach()
    told_apart = criterion(discriminator(real), REAL) + criterion(discriminator(fake), FAKE)
    told_apart.backward()
    discriminator_optimizer.step()
    generator_optimizer.zero_grad()
    misled = criterion(discriminator(generator(noise)), REAL)
    misled.backward()
    generator_optimizer.step()
    return told_apart.detach(), misled.detach()


def sample(count):
    """Return generated points, the share of points near a center, and the number of centers.

    A center counts if more than 1 % of the points are near it.
    """
    with xgrad.no_grad():
        points = generator(xgrad.random.randn((count, NOISE), device=options.device))
        distances = xgrad.sqrt(((points[:, None, :] - centers) ** 2).sum(axis=-1)).cpu().numpy()
    near = distances < 4 * SPREAD
    return points.cpu().numpy(), near.any(axis=1).mean(), (near.mean(axis=0) > 0.01).sum()


for i in range(options.steps):
    numbers = xgrad.random.randint(0, 8, (BATCH,), device=options.device)
    real = centers[numbers] + SPREAD * xgrad.random.randn((BATCH, 2), device=options.device)
    losses = step(real, xgrad.random.randn((BATCH, NOISE), device=options.device))
    if (i + 1) % max(1, options.steps // 5) == 0:
        told_apart, misled = map(float, losses)
        _, share, covered = sample(1000)
        print(
            f"step {i + 1}: losses {told_apart:.2f} and {misled:.2f}, {share:.0%} near {covered} of"
            " 8 centers"
        )

if options.plot:
    import matplotlib.pyplot as plt

    from xgrad.support.plotting import STYLE

    plt.style.use(STYLE)

    figure, ax = plt.subplots(figsize=(5.6, 5))
    ax.plot(*sample(1000)[0].T, ".", markersize=3, alpha=0.6, label="1000 generated points")
    ax.plot(*centers.cpu().numpy().T, "+", color="C1", markersize=12, mew=2, label="centers")
    ax.set(title="samples of the generator", xlabel="x", ylabel="y", aspect="equal")
    figure.legend(loc="outside lower center", ncols=2)
    figure.savefig(options.plot)
