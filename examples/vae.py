"""A variational autoencoder of handwritten digits: it compresses 64 pixels to 8 numbers.

It also draws new digits. The loss is the negative evidence lower bound, in nats per image: the
cross-entropy of the pixels, plus the divergence of the code from the standard normal distribution.

    python examples/vae.py [--steps 3000] [--device cpu] [--plot vae.svg]
"""

import argparse

import numpy as np

import xgrad
from xgrad import nn, optim
from xgrad.distributions import Bernoulli, Normal, kl_divergence

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--device", default="cpu")
parser.add_argument("--plot", metavar="FILE", help="draw new digits, by Matplotlib")
options = parser.parse_args()

CODE = 8
digits = xgrad.data.digits()
train, test = [
    xgrad.asarray(split.images.reshape(-1, 64).astype(np.float32) / 16, device=options.device)
    for split in (digits.train, digits.test)
]
prior = Normal(xgrad.zeros(CODE, device=options.device), 1.0)
xgrad.manual_seed(0)
encoder = nn.MLP([64, 128, 2 * CODE]).to(options.device)
decoder = nn.MLP([CODE, 128, 64]).to(options.device)
optimizer = optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)


def loss(images):
    """Return the mean negative evidence lower bound of images."""
    codes = encoder(images)
    posterior = Normal(codes[:, :CODE], xgrad.exp(codes[:, CODE:] / 2))
    # gray pixels count as probabilities, which are no samples of the distribution
    pixels = Bernoulli(logits=decoder(posterior.rsample()), validate_args=False)
    divergence = kl_divergence(posterior, prior).sum(axis=1)
    return (divergence - pixels.log_prob(images).sum(axis=1)).mean()


@xgrad.capture
def step(images):
    """Update the networks, and return the loss."""
    optimizer.zero_grad()
    value = loss(images)
    value.backward()
    optimizer.step()
    return value


def test_loss():
    """Return the loss of the test images."""
    with xgrad.no_grad():
        return float(loss(test))


print(f"test loss {test_loss():.2f} before training")
for i in range(options.steps):
    value = step(train[xgrad.random.randint(0, train.shape[0], (64,), device=options.device)])
    if (i + 1) % max(1, options.steps // 5) == 0:
        print(f"step {i + 1}: loss {float(value):.2f}, test loss {test_loss():.2f}")

with xgrad.no_grad():
    drawn = xgrad.sigmoid(decoder(prior.sample((40,))))
images = drawn.cpu().numpy().reshape(40, 8, 8)
for line in images[:8].transpose(1, 0, 2).reshape(8, 64):
    print("".join(" .:-=+*#%@"[min(9, int(10 * value))] for value in line))

if options.plot:
    import matplotlib.pyplot as plt

    from xgrad.support.plotting import STYLE

    plt.style.use(STYLE)

    figure, axes = plt.subplots(
        5, 8, figsize=(5.6, 3.6), gridspec_kw={"wspace": 0.08, "hspace": 0.08}
    )
    for ax, image in zip(axes.flat, images, strict=True):
        ax.imshow(image, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        ax.set_axis_off()
    figure.savefig(options.plot)
