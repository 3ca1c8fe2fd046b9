"""scikit-learn's estimators: fitted attributes and predictions.

They are differentiated with respect to the training data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn import preprocessing
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
)
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from benchmarks.reach.path import NUMPY, Draw, Path, constant, normal, positive
from benchmarks.reach.paths.sklearn_metrics import dispatched

OPTIMIZER = "SciPy's L-BFGS fits the parameters, and takes NumPy's arrays"

DATA, NEW = normal(8, 3), normal(4, 3)
LABELS = constant([0, 1, 2, 0, 1, 2, 0, 1])
TWO = constant([0, 1, 1, 0, 1, 0, 0, 1])
Y, YS = normal(8), normal(8, 2)


def fitted(name: str, make: Callable[[], Any], *attributes: str, stops: str = "") -> list[Path]:
    """Return a path for each attribute of an estimator fitted to data."""
    return [
        dispatched(f"{name}, {a}", lambda x, a=a: getattr(make().fit(x), a), DATA, stops=stops)
        for a in attributes
    ]


def predicted(name: str, make: Callable[[], Any], *methods: str, stops: str = "") -> list[Path]:
    """Return a path for each method, on new data, of an estimator fitted to data."""
    return [
        dispatched(
            f"{name}.{m}",
            lambda x, new, m=m: getattr(make().fit(x), m)(new),
            DATA,
            NEW,
            stops=stops,
        )
        for m in methods
    ]


def supervised(
    name: str, make: Callable[[], Any], y: Draw, *methods: str, stops: str = ""
) -> list[Path]:
    """Return a path for each method, on new data, of an estimator fitted to data and targets."""
    return [
        dispatched(
            f"{name}.{m}",
            lambda x, y, new, m=m: getattr(make().fit(x, y), m)(new),
            DATA,
            y,
            NEW,
            stops=stops,
        )
        for m in methods
    ]


def solved(name: str, make: Callable[[], Any], y: Draw, *attributes: str) -> list[Path]:
    return [
        dispatched(f"{name}, {a}", lambda x, y, a=a: getattr(make().fit(x, y), a), DATA, y)
        for a in attributes
    ]


def signless(make: Callable[[], Any]) -> Callable[[Any, Any], Any]:
    """Return PCA's inverse transform of the transform of new data.

    The signs of the components do not affect it.
    """

    def call(x: Any, new: Any) -> Any:
        model = make().fit(x)
        return model.inverse_transform(model.transform(new))

    return call


def mixture(x: Any, kind: str, regularization: float = 0.0) -> GaussianMixture:
    """Return a mixture after a few steps from a given start.

    The start is given because compiled code finds the default start.
    """
    xp = array_namespace(x)
    means = xp.asarray([[0.8, 0.0, 0.0], [-0.8, 0.0, 0.0]], dtype=x.dtype)
    weights = xp.asarray([0.5, 0.5], dtype=x.dtype)
    one = xp.eye(3, dtype=x.dtype)
    precisions = {
        "full": xp.stack([one, one]),
        "tied": one,
        "diag": xp.ones((2, 3), dtype=x.dtype),
        "spherical": xp.ones(2, dtype=x.dtype),
    }
    model = GaussianMixture(
        2,
        covariance_type=kind,
        reg_covar=regularization,
        max_iter=3,
        weights_init=weights,
        means_init=means,
        precisions_init=precisions[kind],
        init_params="random",
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about convergence
        return model.fit(x)


CLUSTERS = Draw(
    lambda random: random.normal(size=(12, 3)) + np.repeat([[1.0, 0, 0], [-1.0, 0, 0]], 6, axis=0)
)

PATHS = [
    # Principal components
    *fitted(
        "PCA",
        lambda: PCA(2, svd_solver="full"),
        "explained_variance_",
        "explained_variance_ratio_",
        "singular_values_",
        "mean_",
        "noise_variance_",
    ),
    *fitted(
        "PCA, covariance_eigh",
        lambda: PCA(2, svd_solver="covariance_eigh"),
        "explained_variance_",
        "singular_values_",
    ),
    *predicted("PCA", lambda: PCA(2, svd_solver="full"), "transform", "score_samples"),
    *predicted("PCA, whitened", lambda: PCA(2, svd_solver="full", whiten=True), "transform"),
    *predicted("PCA, covariance_eigh", lambda: PCA(2, svd_solver="covariance_eigh"), "transform"),
    *predicted(
        "PCA, randomized",
        lambda: PCA(2, svd_solver="randomized", power_iteration_normalizer="QR", random_state=0),
        "transform",
    ),
    dispatched("PCA.fit_transform", lambda x: PCA(2, svd_solver="full").fit_transform(x), DATA),
    dispatched("PCA, there and back", signless(lambda: PCA(2, svd_solver="full")), DATA, NEW),
    dispatched(
        "PCA, components_", lambda x: abs(PCA(2, svd_solver="full").fit(x).components_), DATA
    ),
    dispatched(
        "PCA.get_covariance", lambda x: PCA(2, svd_solver="full").fit(x).get_covariance(), DATA
    ),
    dispatched(
        "PCA.get_precision", lambda x: PCA(2, svd_solver="full").fit(x).get_precision(), DATA
    ),
    # Linear models
    *solved("Ridge", lambda: Ridge(solver="svd"), Y, "coef_", "intercept_"),
    *solved("Ridge, several targets", lambda: Ridge(solver="svd", alpha=0.3), YS, "coef_"),
    *supervised("Ridge", lambda: Ridge(solver="svd"), Y, "predict"),
    *supervised(
        "Ridge, no intercept", lambda: Ridge(solver="svd", fit_intercept=False), YS, "predict"
    ),
    dispatched(
        "Ridge, weighted",
        lambda x, y, w: Ridge(solver="svd").fit(x, y, sample_weight=w).coef_,
        DATA,
        Y,
        positive(8),
    ),
    dispatched(
        "Ridge, alpha",
        lambda x, y, a: Ridge(solver="svd", alpha=a).fit(x, y).coef_,
        DATA,
        YS,
        positive(2),
    ),
    *supervised("RidgeCV", lambda: RidgeCV(alphas=(0.3, 3.0)), Y, "predict"),
    *supervised("RidgeClassifier", lambda: RidgeClassifier(solver="svd"), TWO, "decision_function"),
    *supervised(
        "RidgeClassifierCV",
        lambda: RidgeClassifierCV(alphas=(0.3, 3.0)),
        LABELS,
        "decision_function",
    ),
    *supervised(
        "LogisticRegression",
        lambda: LogisticRegression(solver="lbfgs", tol=1e-10),
        TWO,
        "decision_function",
        stops=OPTIMIZER,
    ),
    dispatched(
        "PoissonRegressor.predict",
        lambda x, y, new: PoissonRegressor(solver="lbfgs").fit(x, y).predict(new),
        DATA,
        positive(8),
        NEW,
        stops=OPTIMIZER,
    ),
    # Discriminants and naive Bayes
    *supervised(
        "LinearDiscriminantAnalysis",
        lambda: LinearDiscriminantAnalysis(),
        LABELS,
        "decision_function",
        "predict_proba",
        "predict_log_proba",
    ),
    *supervised(
        "LinearDiscriminantAnalysis, two classes",
        lambda: LinearDiscriminantAnalysis(),
        TWO,
        "decision_function",
        "predict_proba",
    ),
    *solved(
        "LinearDiscriminantAnalysis",
        lambda: LinearDiscriminantAnalysis(),
        LABELS,
        "coef_",
        "intercept_",
        "means_",
        "explained_variance_ratio_",
    ),
    dispatched(
        "LinearDiscriminantAnalysis.transform",
        lambda x, y, new: abs(LinearDiscriminantAnalysis().fit(x, y).transform(new)),
        DATA,
        LABELS,
        NEW,
    ),
    *supervised(
        "GaussianNB",
        lambda: GaussianNB(),
        LABELS,
        "predict_proba",
        "predict_log_proba",
        "predict_joint_log_proba",
    ),
    *solved("GaussianNB", lambda: GaussianNB(), LABELS, "theta_", "var_"),
    dispatched(
        "GaussianNB, weighted",
        lambda x, y, w: GaussianNB().fit(x, y, sample_weight=w).theta_,
        DATA,
        LABELS,
        positive(8),
    ),
    # Mixtures
    *(
        dispatched(
            f"GaussianMixture, {kind}, score_samples",
            lambda x, new, k=kind: mixture(x, k).score_samples(new),
            CLUSTERS,
            NEW,
        )
        for kind in ("full", "tied", "diag", "spherical")
    ),
    *(
        dispatched(
            f"GaussianMixture, {kind}, predict_proba",
            lambda x, new, k=kind: mixture(x, k).predict_proba(new),
            CLUSTERS,
            NEW,
        )
        for kind in ("full", "tied", "diag", "spherical")
    ),
    *(
        dispatched(f"GaussianMixture, {a}", lambda x, a=a: getattr(mixture(x, "full"), a), CLUSTERS)
        for a in ("means_", "covariances_", "weights_", "precisions_", "precisions_cholesky_")
    ),
    dispatched(
        "GaussianMixture, full, regularized",
        lambda x, new: mixture(x, "full", 1e-3).score_samples(new),
        CLUSTERS,
        NEW,
    ),
    # Preprocessing
    *fitted("StandardScaler", lambda: preprocessing.StandardScaler(), "mean_"),
    *predicted(
        "StandardScaler, no deviation",
        lambda: preprocessing.StandardScaler(with_std=False),
        "transform",
    ),
    *fitted("StandardScaler", lambda: preprocessing.StandardScaler(), "var_", "scale_"),
    *predicted(
        "StandardScaler", lambda: preprocessing.StandardScaler(), "transform", "inverse_transform"
    ),
    dispatched(
        "StandardScaler, weighted",
        lambda x, w: preprocessing.StandardScaler().fit(x, sample_weight=w).transform(x),
        DATA,
        positive(8),
    ),
    *predicted(
        "MinMaxScaler",
        lambda: preprocessing.MinMaxScaler((-1, 2)),
        "transform",
        "inverse_transform",
    ),
    *fitted("MinMaxScaler", lambda: preprocessing.MinMaxScaler(), "scale_", "data_range_"),
    *predicted(
        "MaxAbsScaler", lambda: preprocessing.MaxAbsScaler(), "transform", "inverse_transform"
    ),
    *(
        dispatched(
            f"Normalizer, {n}", lambda x, n=n: preprocessing.Normalizer(n).transform(x), DATA
        )
        for n in ("l1", "l2", "max")
    ),
    dispatched("preprocessing.normalize, axis", lambda x: preprocessing.normalize(x, axis=0), DATA),
    dispatched("preprocessing.scale", lambda x: preprocessing.scale(x), DATA, stops=NUMPY),
    dispatched("preprocessing.minmax_scale", lambda x: preprocessing.minmax_scale(x), DATA),
    dispatched("preprocessing.maxabs_scale", lambda x: preprocessing.maxabs_scale(x), DATA),
    dispatched(
        "KernelCenterer", lambda k: preprocessing.KernelCenterer().fit(k).transform(k), normal(4, 4)
    ),
    *predicted("PolynomialFeatures", lambda: preprocessing.PolynomialFeatures(2), "transform"),
    *predicted(
        "PolynomialFeatures, interactions",
        lambda: preprocessing.PolynomialFeatures(3, interaction_only=True, include_bias=False),
        "transform",
    ),
    *(
        dispatched(
            f"Nystroem, {k}",
            lambda x, new, k=k: Nystroem(k, n_components=4, random_state=0).fit(x).transform(new),
            DATA,
            NEW,
        )
        for k in ("rbf", "linear", "poly")
    ),
    # Pipelines
    dispatched(
        "make_pipeline, scaler, PCA, Ridge",
        lambda x, y, new: (
            make_pipeline(
                preprocessing.StandardScaler(), PCA(2, svd_solver="full"), Ridge(solver="svd")
            )
            .fit(x, y)
            .predict(new)
        ),
        DATA,
        Y,
        NEW,
    ),
    dispatched(
        "make_pipeline, MinMaxScaler, PCA, Ridge",
        lambda x, y, new: (
            make_pipeline(
                preprocessing.MinMaxScaler(), PCA(2, svd_solver="full"), Ridge(solver="svd")
            )
            .fit(x, y)
            .predict(new)
        ),
        DATA,
        Y,
        NEW,
    ),
    dispatched(
        "make_pipeline, features, Ridge",
        lambda x, y, new: (
            make_pipeline(preprocessing.PolynomialFeatures(2), Ridge(solver="svd"))
            .fit(x, y)
            .predict(new)
        ),
        DATA,
        Y,
        NEW,
    ),
]
