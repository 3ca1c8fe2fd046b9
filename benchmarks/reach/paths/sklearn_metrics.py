"""scikit-learn's metrics and pairwise functions, with its `array_api_dispatch`.

Most metrics end in a Python float, which ends any graph. Here, metrics are asked for results that
they return as an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace
from sklearn import config_context, metrics
from sklearn.metrics import pairwise
from sklearn.utils import extmath

from benchmarks.reach.path import Draw, Path, normal, path, positive

TARGETS, COUNTS = (normal(6, 2), normal(6, 2)), (positive(6, 2), positive(6, 2))
ROWS, OTHERS = normal(4, 3), normal(5, 3)


def dispatched(name: str, call: Callable[..., Any], *draws: Draw, stops: str = "") -> Path:
    """Return a path through scikit-learn with its dispatch by array type."""

    def within(*arrays: Any) -> Any:
        with config_context(array_api_dispatch=True):
            return call(*arrays)

    return path(name, within, *draws, stops=stops)


def raw(name: str, *draws: Draw, **options: Any) -> Path:
    """Return a regression metric of each output."""
    arguments = ", ".join(f"{key}={value}" for key, value in options.items())
    metric = getattr(metrics, name)
    return dispatched(
        f"metrics.{name}" + (f", {arguments}" if arguments else ""),
        lambda y, p: metric(y, p, multioutput="raw_values", **options),
        *draws,
    )


def weighted(name: str, *draws: Draw, **options: Any) -> Path:
    metric = getattr(metrics, name)
    return dispatched(
        f"metrics.{name}, weighted",
        lambda y, p, w: metric(y, p, sample_weight=w, multioutput="raw_values", **options),
        *draws,
        positive(6),
    )


def pairwise_path(name: str, *draws: Draw, **options: Any) -> Path:
    arguments = ", ".join(f"{key}={value}" for key, value in options.items())
    function = getattr(pairwise, name)
    return dispatched(
        f"metrics.pairwise.{name}" + (f", {arguments}" if arguments else ""),
        lambda *xs: function(*xs, **options),
        *draws,
    )


PATHS = [
    # Regression, for each output
    raw("mean_squared_error", *TARGETS),
    raw("root_mean_squared_error", *TARGETS),
    raw("mean_absolute_error", *TARGETS),
    dispatched(
        "metrics.median_absolute_error",
        lambda y, p: metrics.median_absolute_error(y, p, multioutput="raw_values"),
        *TARGETS,
    ),
    raw("mean_absolute_percentage_error", *TARGETS),
    raw("mean_squared_log_error", *COUNTS),
    raw("root_mean_squared_log_error", *COUNTS),
    raw("mean_pinball_loss", *TARGETS, alpha=0.3),
    raw("explained_variance_score", *TARGETS),
    raw("r2_score", *TARGETS),
    raw("d2_pinball_score", *TARGETS, alpha=0.3),
    raw("d2_absolute_error_score", *TARGETS),
    weighted("mean_squared_error", *TARGETS),
    weighted("mean_absolute_error", *TARGETS),
    weighted("mean_absolute_percentage_error", *TARGETS),
    weighted("mean_pinball_loss", *TARGETS),
    weighted("explained_variance_score", *TARGETS),
    weighted("r2_score", *TARGETS),
    # Kernels
    pairwise_path("linear_kernel", ROWS, OTHERS),
    pairwise_path("polynomial_kernel", ROWS, OTHERS, degree=2, gamma=0.5),
    pairwise_path("sigmoid_kernel", ROWS, OTHERS, gamma=0.3),
    pairwise_path("rbf_kernel", ROWS, OTHERS),
    pairwise_path("rbf_kernel", ROWS, gamma=0.3),
    pairwise_path("laplacian_kernel", ROWS, OTHERS),
    pairwise_path("cosine_similarity", ROWS, OTHERS),
    pairwise_path("chi2_kernel", positive(4, 3), positive(5, 3)),
    pairwise_path("additive_chi2_kernel", positive(4, 3), positive(5, 3)),
    *(
        dispatched(
            f"metrics.pairwise.pairwise_kernels, {kernel}",
            lambda x, y, k=kernel: pairwise.pairwise_kernels(x, y, metric=k),
            ROWS,
            OTHERS,
        )
        for kernel in ("linear", "rbf", "poly", "sigmoid", "cosine")
    ),
    # Distances
    pairwise_path("cosine_distances", ROWS, OTHERS),
    dispatched("metrics.pairwise.cosine_distances, to itself", pairwise.cosine_distances, ROWS),
    pairwise_path("euclidean_distances", ROWS, OTHERS),
    pairwise_path("euclidean_distances", ROWS, OTHERS, squared=True),
    dispatched(
        "metrics.pairwise.euclidean_distances, to itself", pairwise.euclidean_distances, ROWS
    ),
    pairwise_path("manhattan_distances", ROWS, OTHERS),
    pairwise_path("paired_cosine_distances", ROWS, ROWS),
    pairwise_path("paired_euclidean_distances", ROWS, ROWS),
    pairwise_path("paired_manhattan_distances", ROWS, ROWS),
    *(
        dispatched(
            f"metrics.pairwise_distances, {metric}",
            lambda x, y, m=metric: metrics.pairwise_distances(x, y, metric=m),
            ROWS,
            OTHERS,
        )
        for metric in ("euclidean", "cosine", "manhattan", "l2")
    ),
    # Helper functions
    dispatched("utils.extmath.row_norms", extmath.row_norms, ROWS),
    dispatched("utils.extmath.softmax", lambda x: extmath.softmax(x, copy=True), ROWS),
    dispatched(
        "utils.extmath.safe_sparse_dot",
        lambda x, y: extmath.safe_sparse_dot(x, y),
        ROWS,
        normal(3, 2),
    ),
    dispatched(
        "utils.extmath.randomized_svd",
        lambda x: extmath.randomized_svd(x, n_components=2, random_state=0)[1],
        normal(6, 4),
    ),
    dispatched(
        "utils.extmath.randomized_range_finder",
        lambda x: projector(extmath.randomized_range_finder(x, size=2, n_iter=2, random_state=0)),
        normal(6, 4),
    ),
]


def projector(q: Any) -> Any:
    return q @ array_namespace(q).matrix_transpose(q)
