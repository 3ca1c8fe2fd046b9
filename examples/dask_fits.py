"""Three fits of data that need not fit into memory: least squares, k-means and a classifier.

The data are Dask's arrays. In each step, Dask reads files one by one, and sums their gradients;
with --workers, a cluster of processes does so. --memory is a limit for each process that reads
files. With --device cpu, NumPy reads all files at the start.

    python examples/dask_fits.py [--steps 20] [--device dask] [--size MIB] [--memory MIB]
        [--workers 2]
"""

import argparse
import resource
from contextlib import ExitStack
from tempfile import TemporaryDirectory

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client

import xgrad
from xgrad import nn, optim

ROWS, FEATURES, CLUSTERS = 2**15, 62, 8  # a file has 8 MiB
*CENTERS, WEIGHTS = np.random.default_rng(0).normal(size=(CLUSTERS + 1, FEATURES))


def write(path, seed):
    """Write a file: for each row, features, a target and a cluster.

    The features lie around the centers of clusters; the target is a noisy linear function of them.
    """
    generator = np.random.default_rng(seed)
    clusters = generator.integers(0, CLUSTERS, ROWS)
    x = np.stack(CENTERS)[clusters] + generator.normal(size=(ROWS, FEATURES))
    np.save(
        path,
        np.column_stack([x, x @ WEIGHTS + generator.normal(size=ROWS), clusters]).astype(
            np.float32
        ),
    )
    return path


def read(paths, device):
    """Return features, targets and clusters.

    These are NumPy's arrays for the device cpu, else Dask's, with a chunk for each file.
    """
    if device == "cpu":
        data = np.concatenate(list(map(np.load, paths)))
    else:
        load, shape = dask.delayed(np.load), (ROWS, FEATURES + 2)
        data = da.concatenate([da.from_delayed(load(path), shape, np.float32) for path in paths])
    data = xgrad.asarray(data)
    return data[:, :FEATURES], data[:, FEATURES], data[:, FEATURES + 1].astype(xgrad.int64)


def descend(optimizer, loss, losses):
    """Take a step of an optimizer for each element of `losses`, and store the losses there."""
    for step in range(len(losses)):
        optimizer.zero_grad()
        (value := loss()).backward()
        losses[step] = value.detach()  # the step computes it in the same pass over the data
        optimizer.step()


def least_squares(x, y, losses):
    """Return the weights of a linear function."""
    weights = xgrad.zeros(x.shape[1], device=x.device, requires_grad=True)
    descend(
        optim.SGD([weights], lr=0.03, momentum=0.8), lambda: ((x @ weights - y) ** 2).mean(), losses
    )
    return weights


def k_means(x, losses):
    """Return the centers of clusters, by Lloyd's method.

    It is Newton's method, with counts as second derivatives.
    """
    centers = xgrad.asarray(x[:CLUSTERS].numpy(), device=x.device, requires_grad=True)
    for step in range(len(losses)):
        centers.grad = None
        distances = (centers**2).sum(axis=1) - 2 * x @ centers.T  # less the squares of x
        loss = (distances.min(axis=1) + (x**2).sum(axis=1)).mean()
        loss.backward()
        shares = (
            distances.argmin(axis=1)[:, None] == xgrad.arange(CLUSTERS, device=x.device)
        ).mean(axis=0)
        centers.data -= centers.grad / (2 * shares[:, None])
        losses[step] = loss.detach()
        x.device.synchronize()  # as optimizers do
    return centers


def classifier(x, clusters, losses):
    """Return the weights of a network that tells the clusters apart."""
    xgrad.manual_seed(0)
    net = nn.MLP([FEATURES, 32, CLUSTERS]).to(x.device)
    descend(
        optim.Adam(net.parameters(), lr=0.02),
        lambda: nn.functional.cross_entropy(net(x), clusters),
        losses,
    )
    return nn.utils.parameters_to_vector(net.parameters())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in {
        "--steps": 20,
        "--device": "dask",
        "--size": 64,
        "--memory": 0,
        "--workers": 0,
    }.items():
        parser.add_argument(name, type=type(default), default=default)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder, call = (
            stack.enter_context(TemporaryDirectory()),
            lambda function, *args: function(*args),
        )
        paths = [write(f"{folder}/{i}.npy", seed=i) for i in range(options.size // 8)]
        if options.workers:
            call = stack.enter_context(Client(n_workers=options.workers, threads_per_worker=1)).run
        if options.memory:
            call(
                resource.setrlimit,
                resource.RLIMIT_DATA,
                (options.memory << 20, options.memory << 20),
            )
        x, y, clusters = read(paths, options.device)
        for fit, *data in (least_squares, x, y), (k_means, x), (classifier, x, clusters):
            fit(*data, losses := xgrad.zeros(options.steps, device=options.device))
            print(f"{fit.__name__}: loss {losses[0].item():.6f}, then {losses[-1].item():.6f}")
