"""scikit-learn's MLPClassifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier

from benchmarks.peers import BATCH, LeftOut
from benchmarks.problems import Array, Images, mlp


def step(sizes: Sequence[int], batch: int) -> Callable[[], Any]:
    """Return a step: ``partial_fit`` of one batch, with neither momentum nor penalty."""
    if sizes[-1] < 3:
        raise LeftOut("its network has one output for two classes")
    problem = mlp(sizes, batch)
    plain = {
        "solver": "sgd",
        "alpha": 0,
        "momentum": 0,
        "nesterovs_momentum": False,
        "shuffle": False,
    }
    model = MLPClassifier(sizes[1:-1], learning_rate_init=problem.lr, batch_size=batch, **plain)
    model.partial_fit(problem.x, problem.y, classes=np.arange(sizes[-1]))
    for own, value in zip(
        model.coefs_ + model.intercepts_, problem.weights + problem.biases, strict=True
    ):
        # The optimizer updates these in place, and has no state without momentum.
        own[...] = value.T

    def run() -> Any:
        model.partial_fit(problem.x, problem.y)
        return model.loss_

    return run


def epochs(
    data: Images, sizes: Sequence[int], seed: int
) -> tuple[Callable[[float], Any], Callable[[Array], Array]]:
    """Return functions that train for one epoch, by ``partial_fit`` of all images, and predict.

    ``partial_fit`` takes mini-batches, and keeps Adam's moments. The initial weights differ from
    the other peers'.
    """
    model = MLPClassifier(sizes[1:-1], solver="adam", alpha=0, batch_size=BATCH, random_state=seed)
    classes = np.unique(data.train_labels)

    def train(lr: float) -> None:
        model.set_params(learning_rate_init=lr)
        if hasattr(model, "_optimizer"):  # made at the first step, with the rate at that time
            model._optimizer.learning_rate_init = lr
        model.partial_fit(data.train, data.train_labels, classes=classes)

    return train, model.predict
