"""A convolutional network that reads handwritten digits: the embedded digits, or MNIST.

python examples/cnn.py [--steps 600] [--device cpu] [--mnist FOLDER] [--plot cnn.svg]
"""

import argparse

import numpy as np

import xgrad
from xgrad import nn, optim

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--device", default="cpu")
parser.add_argument("--mnist", metavar="FOLDER", help="train on MNIST, from the files in a folder")
parser.add_argument("--plot", metavar="FILE", help="draw images that are misread, by Matplotlib")
options = parser.parse_args()

data = xgrad.data.mnist(options.mnist, download=False) if options.mnist else xgrad.data.digits()
side, scale = data.train.images.shape[1], 255 if options.mnist else 16


def tensors(split):
    """Return images, of shape (N, 1, H, W), and labels on the device."""
    images = split.images[:, None].astype(np.float32) / scale
    return xgrad.asarray(images, device=options.device), xgrad.asarray(
        split.labels, device=options.device
    )


train, labels = tensors(data.train)
xgrad.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(32 * (side // 4) ** 2, 10),
).to(options.device)
optimizer = optim.Adam(net.parameters(), lr=2e-3)


@xgrad.capture
def step(images, labels):
    """Update the network, and return the loss."""
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    return loss


for i in range(options.steps):
    chosen = xgrad.random.randint(0, train.shape[0], (64,), device=options.device)
    loss = step(train[chosen], labels[chosen])
    if (i + 1) % max(1, options.steps // 5) == 0:
        print(f"step {i + 1}: loss {float(loss):.3f}")

with xgrad.no_grad():
    test, _ = tensors(data.test)
    read = (
        xgrad.concat([net(test[i : i + 500]).argmax(1) for i in range(0, test.shape[0], 500)])
        .cpu()
        .numpy()
    )
wrong = np.flatnonzero(read != data.test.labels)
print(f"test accuracy {1 - len(wrong) / len(read):.1%}")

if options.plot:
    import matplotlib.pyplot as plt

    from xgrad.support.plotting import STYLE

    plt.style.use(STYLE)
    shown = wrong[:10]
    columns = min(5, max(1, len(shown)))
    rows = max(1, -(-len(shown) // columns))
    figure, axes = plt.subplots(rows, columns, figsize=(5.6, 1.4 * rows + 0.4), squeeze=False)
    figure.suptitle(f"{len(wrong)} of {len(read)} test images are misread")
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, i in zip(axes.flat, shown, strict=False):
        ax.imshow(data.test.images[i], cmap="gray", interpolation="nearest")
        ax.set_title(f"{data.test.labels[i]} read as {read[i]}", loc="center", fontsize=9)
    figure.savefig(options.plot)
