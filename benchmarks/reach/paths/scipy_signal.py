"""`scipy.signal` and `scipy.fft`: convolutions, filters, transforms."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace
from scipy import fft, signal

from benchmarks.reach.path import COMPILED, NUMPY, normal, path, positive, uniform

X, Y, IMAGE = normal(8), normal(5), normal(4, 6)
POLYNOMIALS = (normal(3), uniform(2, 3, 4))


def complex_of(re: Any, im: Any) -> Any:
    return re + 1j * im


def sections(b: Any, a: Any) -> Any:
    xp = array_namespace(b)
    return xp.concat([b, xp.ones_like(a[:, :1]), a], axis=1)


PATHS = [
    # scipy.fft
    path("fft.fft", fft.fft, X),
    path(
        "fft.fft, complex, n, ortho",
        lambda a, b: fft.fft(complex_of(a, b), n=6, norm="ortho"),
        X,
        X,
    ),
    path("fft.ifft", lambda a, b: fft.ifft(complex_of(a, b)), X, X),
    path("fft.rfft", fft.rfft, X),
    path("fft.rfft, odd n", lambda x: fft.rfft(x, n=7, norm="forward"), X),
    path("fft.irfft", lambda a, b: fft.irfft(complex_of(a, b), n=7), normal(4), normal(4)),
    path("fft.hfft", lambda a, b: fft.hfft(complex_of(a, b)), normal(4), normal(4)),
    path("fft.ihfft", fft.ihfft, X),
    path("fft.fft2", fft.fft2, IMAGE),
    path("fft.ifft2", lambda a, b: fft.ifft2(complex_of(a, b)), IMAGE, IMAGE),
    path("fft.rfft2", fft.rfft2, IMAGE),
    path("fft.irfft2", lambda a, b: fft.irfft2(complex_of(a, b)), IMAGE, IMAGE),
    path("fft.fftn", lambda x: fft.fftn(x, axes=(0, 2)), normal(2, 3, 4)),
    path("fft.ifftn", lambda x: fft.ifftn(x, s=(3, 5)), IMAGE),
    path("fft.rfftn", fft.rfftn, normal(2, 3, 4)),
    path("fft.irfftn", lambda a, b: fft.irfftn(complex_of(a, b), s=(4, 9)), IMAGE, IMAGE),
    path("fft.fftshift", fft.fftshift, IMAGE),
    path("fft.ifftshift", fft.ifftshift, IMAGE),
    path("fft.fht", lambda x: fft.fht(x, 0.1, 0.5), X),
    path("fft.ifht", lambda x: fft.ifht(x, 0.1, 0.5), X),
    # Convolutions and correlations
    path("signal.fftconvolve", signal.fftconvolve, X, Y),
    path("signal.fftconvolve, same", lambda x, y: signal.fftconvolve(x, y, mode="same"), X, Y),
    path(
        "signal.fftconvolve, images",
        lambda x, y: signal.fftconvolve(x, y, mode="valid"),
        IMAGE,
        normal(2, 3),
    ),
    path(
        "signal.fftconvolve, axes",
        lambda x, y: signal.fftconvolve(x, y, axes=1),
        IMAGE,
        normal(4, 3),
    ),
    path(
        "signal.fftconvolve, complex",
        lambda a, b, y: signal.fftconvolve(complex_of(a, b), y),
        X,
        X,
        Y,
    ),
    path("signal.oaconvolve", signal.oaconvolve, normal(40), Y),
    path("signal.convolve, fft", lambda x, y: signal.convolve(x, y, method="fft"), X, Y),
    path("signal.correlate, fft", lambda x, y: signal.correlate(x, y, method="fft"), X, Y),
    path(
        "signal.correlate, fft, same",
        lambda x, y: signal.correlate(x, y, mode="same", method="fft"),
        X,
        Y,
    ),
    path("signal.hilbert", signal.hilbert, X),
    path("signal.hilbert, N", lambda x: signal.hilbert(x, N=11), X),
    path("signal.hilbert2", signal.hilbert2, IMAGE),
    path("signal.envelope", lambda x: signal.envelope(x, (1, None)), normal(12)),
    path(
        "signal.envelope, residual",
        lambda x: signal.envelope(x, (1, 5), residual="all"),
        normal(12),
    ),
    path("signal.resample", lambda x: signal.resample(x, 12), X),
    path("signal.resample, fewer", lambda x: signal.resample(x, 5), X),
    path("signal.detrend, linear", signal.detrend, X, stops=NUMPY),
    path(
        "signal.detrend, constant", lambda x: signal.detrend(x, type="constant"), IMAGE, stops=NUMPY
    ),
    path(
        "signal.vectorstrength",
        lambda t, period: signal.vectorstrength(t, period)[0],
        positive(6),
        positive(),
    ),
    path(
        "signal.vectorstrength, phase",
        lambda t, period: signal.vectorstrength(t, period)[1],
        positive(6),
        positive(),
    ),
    path("signal.gauss_spline", lambda x: signal.gauss_spline(x, 3), X),
    # Filters
    path("signal.freqz", lambda b, a: signal.freqz(b, a, worN=5)[1], *POLYNOMIALS),
    path(
        "signal.freqz, at frequencies",
        lambda b, a, w: signal.freqz(b, a, worN=w)[1],
        *POLYNOMIALS,
        uniform(0.1, 3, 4),
    ),
    path("signal.freqz, numerator", lambda b: signal.freqz(b, worN=8)[1], normal(3)),
    path("signal.freqs", lambda b, a, w: signal.freqs(b, a, worN=w)[1], *POLYNOMIALS, positive(4)),
    path(
        "signal.freqz_zpk",
        lambda z, p, k: signal.freqz_zpk(z, p, k, worN=5)[1],
        normal(2),
        uniform(-0.5, 0.5, 3),
        positive(),
    ),
    path(
        "signal.freqs_zpk",
        lambda z, p, w: signal.freqs_zpk(z, p, 1.5, worN=w)[1],
        normal(2),
        normal(3),
        positive(4),
    ),
    path(
        "signal.freqz_sos",
        lambda b, a: signal.freqz_sos(sections(b, a), worN=5)[1],
        normal(2, 3),
        uniform(-0.4, 0.4, 2, 2),
    ),
    path(
        "signal.group_delay",
        lambda b, a: signal.group_delay((b, a), w=5)[1],
        *POLYNOMIALS,
        stops=NUMPY,
    ),
    path(
        "signal.zpk2tf", lambda z, p: signal.zpk2tf(z, p, 1.5), normal(2), normal(3), stops=COMPILED
    ),
    path("signal.sos2tf", signal.sos2tf, uniform(1, 2, 2, 6), stops=COMPILED),
    path(
        "signal.tf2zpk",
        lambda b, a: tuple((abs(r) ** 2).sum() for r in signal.tf2zpk(b, a)),
        *POLYNOMIALS,
    ),
    path("signal.normalize", signal.normalize, *POLYNOMIALS),
    path("signal.bilinear", lambda b, a: signal.bilinear(b, a, 2.0), *POLYNOMIALS, stops=NUMPY),
    path(
        "signal.bilinear_zpk",
        lambda z, p: signal.bilinear_zpk(z, p, 1.5, 2.0)[:2],
        normal(2),
        normal(3),
    ),
    path("signal.lp2lp", lambda b, a: signal.lp2lp(b, a, 2.0), *POLYNOMIALS),
    path("signal.lp2hp", lambda b, a: signal.lp2hp(b, a, 2.0), *POLYNOMIALS),
    path("signal.lp2bp", lambda b, a: signal.lp2bp(b, a, 2.0, 0.5), *POLYNOMIALS),
    path("signal.lp2bs", lambda b, a: signal.lp2bs(b, a, 2.0, 0.5), *POLYNOMIALS),
    path(
        "signal.lp2lp_zpk", lambda z, p: signal.lp2lp_zpk(z, p, 1.5, 2.0)[:2], normal(2), normal(3)
    ),
    path(
        "signal.lp2hp_zpk",
        lambda z, p: signal.lp2hp_zpk(z, p, 1.5, 2.0)[:2],
        positive(2),
        positive(3),
    ),
    path(
        "signal.lp2bp_zpk",
        lambda z, p: signal.lp2bp_zpk(z, p, 1.5, 2.0, 0.5)[:2],
        positive(2),
        positive(3),
    ),
    path(
        "signal.lp2bs_zpk",
        lambda z, p: signal.lp2bs_zpk(z, p, 1.5, 2.0, 0.5)[:2],
        positive(2),
        positive(3),
    ),
    path(
        "signal.abcd_normalize",
        lambda a, b, c: signal.abcd_normalize(a, b, c)[:3],
        normal(2, 2),
        normal(2, 1),
        normal(1, 2),
    ),
    path("signal.lfilter_zi", signal.lfilter_zi, normal(3), uniform(0.1, 0.3, 3), stops=NUMPY),
    path(
        "signal.sosfilt_zi",
        lambda b, a: signal.sosfilt_zi(sections(b, a)),
        normal(2, 3),
        uniform(-0.4, 0.4, 2, 2),
        stops=NUMPY,
    ),
    path(
        "signal.cspline1d_eval",
        lambda c, x: signal.cspline1d_eval(c, x),
        X,
        uniform(1, 5, 4),
        stops=NUMPY,
    ),
    path(
        "signal.qspline1d_eval",
        lambda c, x: signal.qspline1d_eval(c, x),
        X,
        uniform(1, 5, 4),
        stops=NUMPY,
    ),
    path("signal.wiener", lambda x: signal.wiener(x, 3, noise=0.1), X, stops=COMPILED),
    path(
        "signal.firwin2",
        lambda g: signal.firwin2(7, array_namespace(g).asarray([0.0, 0.5, 1.0], dtype=g.dtype), g),
        positive(3),
        stops=NUMPY,
    ),
    path(
        "signal.savgol_filter",
        lambda x: signal.savgol_filter(x, 5, 2, mode="constant"),
        X,
        stops=COMPILED,
    ),
    path("signal.lfilter", lambda b, x: signal.lfilter(b, 1.0, x), normal(3), X, stops=COMPILED),
]
