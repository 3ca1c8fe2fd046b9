"""`scipy.stats`: moments, scores, tests."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace
from scipy import special, stats

from benchmarks.reach.path import MASKED, NUMPY, constant, exactly, normal, path, positive, uniform

X, TABLE = normal(7), normal(6, 3)
POSITIVE = positive(7)
SAMPLES = (normal(7), normal(9))
THREE = (normal(7), normal(9), normal(8))
PAIRS = (normal(9), normal(9))


def normal_cdf(x: Any) -> Any:
    return special.ndtr(x)


def mean(x: Any, axis: int) -> Any:
    return array_namespace(x).mean(x, axis=axis)


PATHS = [
    # Means, moments and scales
    path("stats.gmean", stats.gmean, POSITIVE),
    path("stats.gmean, weights", lambda x, w: stats.gmean(x, weights=w), POSITIVE, positive(7)),
    path("stats.hmean", stats.hmean, POSITIVE),
    path("stats.hmean, weights", lambda x, w: stats.hmean(x, weights=w), POSITIVE, positive(7)),
    path("stats.pmean", lambda x: stats.pmean(x, 2.5), POSITIVE),
    path(
        "stats.pmean, weights", lambda x, w: stats.pmean(x, 2.5, weights=w), POSITIVE, positive(7)
    ),
    path("stats.tmean", lambda x: stats.tmean(x, limits=(-1, 1.5)), X),
    path("stats.tvar", lambda x: stats.tvar(x, limits=(-9, 9)), X),
    path("stats.tstd", lambda x: stats.tstd(x, limits=(-9, 9)), X),
    path("stats.tsem", lambda x: stats.tsem(x, limits=(-9, 9)), X),
    *(
        path(
            f"stats.{name}, values beyond the limits",
            lambda x, n=name: getattr(stats, n)(x, limits=(-1, 1.5)),
            X,
            stops=MASKED,
        )
        for name in ("tvar", "tstd", "tsem")
    ),
    path("stats.tmin", lambda x: stats.tmin(x, lowerlimit=-1), X),
    path("stats.tmax", lambda x: stats.tmax(x, upperlimit=1), X),
    path("stats.moment", lambda x: stats.moment(x, order=3), TABLE),
    path("stats.moment, several orders", lambda x: stats.moment(x, order=[2, 3, 4]), TABLE),
    path("stats.moment, center", lambda x: stats.moment(x, order=3, center=0.5), TABLE),
    path("stats.skew", stats.skew, TABLE),
    path("stats.skew, unbiased", lambda x: stats.skew(x, bias=False), TABLE),
    path("stats.kurtosis", stats.kurtosis, TABLE),
    path("stats.kurtosis, unbiased", lambda x: stats.kurtosis(x, bias=False, fisher=False), TABLE),
    path(
        "stats.describe",
        lambda x: tuple(
            getattr(stats.describe(x), n) for n in ("mean", "variance", "skewness", "kurtosis")
        ),
        TABLE,
    ),
    path("stats.describe, minmax", lambda x: tuple(stats.describe(x).minmax), TABLE),
    path("stats.variation", stats.variation, positive(6, 3)),
    path("stats.variation, ddof", lambda x: stats.variation(x, ddof=1), positive(6, 3)),
    path("stats.sem", stats.sem, TABLE),
    path("stats.gstd", stats.gstd, POSITIVE),
    path("stats.iqr", lambda x: stats.iqr(x, axis=0), TABLE),
    path("stats.iqr, scaled", lambda x: stats.iqr(x, axis=0, scale="normal", rng=(10, 80)), TABLE),
    path("stats.median_abs_deviation", stats.median_abs_deviation, TABLE),
    path(
        "stats.median_abs_deviation, scaled",
        lambda x: stats.median_abs_deviation(x, scale="normal"),
        TABLE,
    ),
    path("stats.trim_mean", lambda x: stats.trim_mean(x, 0.2), TABLE),
    path(
        "stats.sigmaclip",
        lambda x: stats.sigmaclip(x, 2.0, 2.0).clipped,
        exactly([0.1, -0.3, 0.4, 0.2, -0.2, 0.0, 0.3, 9.0]),
    ),
    path("stats.kstat", lambda x: stats.kstat(x, 3), normal(9)),
    path("stats.kstat, order 4", lambda x: stats.kstat(x, 4), normal(9)),
    path("stats.kstatvar", lambda x: stats.kstatvar(x, 2), normal(9)),
    path("stats.lmoment", lambda x: stats.lmoment(x, [1, 2, 3]), normal(9)),
    path("stats.circmean", stats.circmean, uniform(0, 3, 7)),
    path("stats.circvar", stats.circvar, uniform(0, 3, 7)),
    path("stats.circstd", stats.circstd, uniform(0, 3, 7)),
    path(
        "stats.directional_stats, mean direction",
        lambda x: stats.directional_stats(x).mean_direction,
        normal(6, 3),
    ),
    path(
        "stats.directional_stats, resultant length",
        lambda x: stats.directional_stats(x).mean_resultant_length,
        normal(6, 3),
    ),
    path("stats.quantile", lambda x, p: stats.quantile(x, p), X, uniform(0.1, 0.9, 3)),
    *(
        path(
            f"stats.quantile, {method}",
            lambda x, p, m=method: stats.quantile(x, p, method=m),
            X,
            constant([0.21, 0.5, 0.77]),
        )
        for method in ("inverted_cdf", "hazen", "weibull", "median_unbiased", "harrell-davis")
    ),
    path(
        "stats.quantile, axis",
        lambda x, p: stats.quantile(x, p, axis=0, keepdims=True),
        TABLE,
        constant([[0.3], [0.6]]),
    ),
    # Scores
    path("stats.zscore", stats.zscore, TABLE),
    path("stats.zscore, ddof", lambda x: stats.zscore(x, axis=1, ddof=1), TABLE),
    path("stats.gzscore", stats.gzscore, positive(6, 3)),
    path("stats.zmap", lambda x, y: stats.zmap(x, y), TABLE, TABLE),
    # Entropies and likelihoods
    path("stats.entropy", stats.entropy, POSITIVE),
    path("stats.entropy, relative", lambda p, q: stats.entropy(p, q, base=2), POSITIVE, POSITIVE),
    *(
        path(
            f"stats.differential_entropy, {method}",
            lambda x, m=method: stats.differential_entropy(x, method=m),
            normal(12),
        )
        for method in ("vasicek", "van es", "ebrahimi", "correa")
    ),
    path("stats.boxcox_llf", lambda x: stats.boxcox_llf(0.7, x), POSITIVE),
    path("stats.yeojohnson_llf", lambda x: stats.yeojohnson_llf(0.7, x), X),
    # Tests: statistics
    path("stats.skewtest, statistic", lambda x: stats.skewtest(x).statistic, normal(12)),
    path("stats.kurtosistest, statistic", lambda x: stats.kurtosistest(x).statistic, normal(25)),
    path("stats.normaltest, statistic", lambda x: stats.normaltest(x).statistic, normal(25)),
    path("stats.jarque_bera, statistic", lambda x: stats.jarque_bera(x).statistic, normal(25)),
    path("stats.ttest_1samp, statistic", lambda x: stats.ttest_1samp(x, 0.3).statistic, X),
    path("stats.ttest_ind, statistic", lambda *xs: stats.ttest_ind(*xs).statistic, *SAMPLES),
    path(
        "stats.ttest_ind, Welch",
        lambda *xs: stats.ttest_ind(*xs, equal_var=False).statistic,
        *SAMPLES,
    ),
    path("stats.ttest_rel, statistic", lambda *xs: stats.ttest_rel(*xs).statistic, *PAIRS),
    path(
        "stats.ttest_ind_from_stats, statistic",
        lambda m, s, k, t, n: stats.ttest_ind_from_stats(m, s, n, k, t, n).statistic,
        normal(3),
        positive(3),
        normal(3),
        positive(3),
        constant([5.0, 6.0, 7.0]),
    ),
    path("stats.f_oneway, statistic", lambda *xs: stats.f_oneway(*xs).statistic, *THREE),
    path(
        "stats.alexandergovern, statistic", lambda *xs: stats.alexandergovern(*xs).statistic, *THREE
    ),
    path("stats.bartlett, statistic", lambda *xs: stats.bartlett(*xs).statistic, *THREE),
    path("stats.levene, statistic", lambda *xs: stats.levene(*xs).statistic, *THREE),
    path("stats.levene, trimmed", lambda *xs: stats.levene(*xs, center="mean").statistic, *THREE),
    path(
        "stats.power_divergence, statistic",
        lambda f: stats.power_divergence(f, lambda_="cressie-read").statistic,
        POSITIVE,
    ),
    path(
        "stats.power_divergence, log-likelihood",
        lambda f: stats.power_divergence(f, lambda_="log-likelihood").statistic,
        POSITIVE,
    ),
    path("stats.chisquare, statistic", lambda f: stats.chisquare(f).statistic, POSITIVE),
    path("stats.pearsonr, statistic", lambda *xs: stats.pearsonr(*xs).statistic, *PAIRS),
    path(
        "stats.epps_singleton_2samp, statistic",
        lambda *xs: stats.epps_singleton_2samp(*xs).statistic,
        normal(12),
        normal(14),
    ),
    path(
        "stats.cramervonmises, statistic",
        lambda x: stats.cramervonmises(x, normal_cdf).statistic,
        X,
        stops=NUMPY,
    ),
    path(
        "stats.ks_1samp, statistic",
        lambda x: stats.ks_1samp(x, normal_cdf).statistic,
        X,
        stops=NUMPY,
    ),
    # Tests: p-values and confidence
    path("stats.skewtest, p-value", lambda x: stats.skewtest(x).pvalue, normal(12)),
    path("stats.kurtosistest, p-value", lambda x: stats.kurtosistest(x).pvalue, normal(25)),
    path("stats.normaltest, p-value", lambda x: stats.normaltest(x).pvalue, normal(25)),
    path("stats.jarque_bera, p-value", lambda x: stats.jarque_bera(x).pvalue, normal(25)),
    path("stats.ttest_1samp, p-value", lambda x: stats.ttest_1samp(x, 0.3).pvalue, X),
    path("stats.ttest_ind, p-value", lambda *xs: stats.ttest_ind(*xs).pvalue, *SAMPLES),
    path("stats.ttest_rel, p-value", lambda *xs: stats.ttest_rel(*xs).pvalue, *PAIRS),
    path(
        "stats.ttest_1samp, confidence interval",
        lambda x: tuple(stats.ttest_1samp(x, 0.3).confidence_interval()),
        X,
    ),
    path("stats.f_oneway, p-value", lambda *xs: stats.f_oneway(*xs).pvalue, *THREE),
    path("stats.alexandergovern, p-value", lambda *xs: stats.alexandergovern(*xs).pvalue, *THREE),
    path("stats.bartlett, p-value", lambda *xs: stats.bartlett(*xs).pvalue, *THREE),
    path("stats.levene, p-value", lambda *xs: stats.levene(*xs).pvalue, *THREE),
    path(
        "stats.power_divergence, p-value",
        lambda f: stats.power_divergence(f, lambda_=0.5).pvalue,
        POSITIVE,
    ),
    path("stats.chisquare, p-value", lambda f: stats.chisquare(f).pvalue, POSITIVE),
    path("stats.pearsonr, p-value", lambda *xs: stats.pearsonr(*xs).pvalue, *PAIRS),
    path(
        "stats.pearsonr, confidence interval",
        lambda *xs: tuple(stats.pearsonr(*xs).confidence_interval()),
        *PAIRS,
    ),
    path(
        "stats.epps_singleton_2samp, p-value",
        lambda *xs: stats.epps_singleton_2samp(*xs).pvalue,
        normal(12),
        normal(14),
    ),
    *(
        path(
            f"stats.combine_pvalues, {method}",
            lambda p, m=method: stats.combine_pvalues(p, method=m).statistic,
            uniform(0.1, 0.9, 5),
        )
        for method in ("fisher", "pearson", "mudholkar_george", "tippett", "stouffer")
    ),
    path(
        "stats.combine_pvalues, p-value",
        lambda p: stats.combine_pvalues(p).pvalue,
        uniform(0.1, 0.9, 5),
    ),
    path("stats.false_discovery_control", stats.false_discovery_control, uniform(0.01, 0.3, 6)),
    path(
        "stats.false_discovery_control, by",
        lambda p: stats.false_discovery_control(p, method="by"),
        uniform(0.01, 0.1, 6),
    ),
    path(
        "stats.bootstrap, standard error",
        lambda x: stats.bootstrap((x,), mean, n_resamples=20, rng=0).standard_error,
        X,
    ),
]
