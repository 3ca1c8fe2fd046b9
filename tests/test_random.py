"""Random numbers: bits, devices, distributions, and generators of threads and tasks.

Bits are compared with published vectors of Philox and with `cpu`, distributions with SciPy's tests.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import xgrad
from helpers import check_error
from reference_philox import VECTORS, stream, words
from xgrad.backend import philox
from xgrad.capture import CaptureWarning
from xgrad.random import (
    Generator,
    bernoulli,
    counts,
    exponential,
    multinomial,
    normal,
    poisson,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    uniform,
    variates,
)

DRAWS = {
    "rand": lambda **options: rand((3, 4), **options),
    "randn": lambda **options: randn((3, 4), **options),
    "uniform": lambda **options: uniform((3, 4), -2.0, 3.0, **options),
    "normal": lambda **options: normal((3, 4), -2.0, 3.0, **options),
    "exponential": lambda **options: exponential((3, 4), 2.5, **options),
    "rand_like": lambda dtype=None, device=None, **options: rand_like(
        xgrad.zeros((3, 4), dtype=dtype, device=device), **options
    ),
    "randn_like": lambda dtype=None, device=None, **options: randn_like(
        xgrad.zeros((3, 4), dtype=dtype, device=device), **options
    ),
    "randint_like": lambda device=None, **options: randint_like(
        xgrad.zeros((3, 4), device=device), -5, 50, **options
    ),
    "bernoulli": lambda device=None, **options: bernoulli(
        xgrad.full((20, 9), 0.3, device=device), **options
    ),
    "poisson": lambda device=None, **options: poisson(some_weights(device), **options),
    "randint": lambda **options: randint(-5, 5, (3, 4), **options),
    "randperm": lambda **options: randperm(12, **options),
    "multinomial": lambda device=None, **options: multinomial(
        some_weights(device), 9, True, **options
    ),
    "multinomial without replacement": lambda device=None, **options: multinomial(
        some_weights(device), 9, **options
    ),
}


FLOATING = ("rand", "randn", "uniform", "normal", "exponential", "rand_like", "randn_like")


def some_weights(device: object = None) -> xgrad.Tensor:
    return xgrad.asarray(np.sqrt(np.arange(39.0)).reshape(3, 13), device=device)


def bits(x: xgrad.Tensor) -> bytes:
    return x.detach().cpu().numpy().tobytes()


# Bits


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_reference_is_the_published_algorithm(counter, key, expected):
    assert words(counter, key, 4) == expected


CALLS = [(0, 0), (1, 0), (0, 1), (3, 7), (2**64 - 1, 2**32), (2**63, 2**64 - 1)]


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize(("seed", "call"), CALLS)
def test_every_backend_has_the_bits_of_the_reference(seed, call, width, device):
    target = xgrad.Device(device)
    for count in (0, 1, 5, 37):
        expected = np.array(stream(seed, call, count), "<u8").view(f"<i{width // 8}")[:count]
        with target.active():
            drawn = target.backend.random_bits(seed, call, width, count, target.index)
        assert (
            type(drawn) is target.array_type
            and target.backend.numpy_dtype(drawn.dtype) == f"int{width}"
        )
        np.testing.assert_array_equal(target.backend.to_host(drawn), expected)


def test_first_draws_are_the_first_published_words():
    published = VECTORS[0][2]
    first = {
        dtype: rand(4, dtype=dtype, generator=Generator(0)).tolist()
        for dtype in ("float64", "float32")
    }
    assert first["float64"] == [(word >> 11) * 2.0**-53 for word in published]
    assert first["float32"] == [
        (word >> 8 & 0xFFFFFF) * 2.0**-24 for w in published[:2] for word in (w, w >> 32)
    ]


def test_words_drawn_in_threads_are_those_drawn_alone():
    def draw(seed: int) -> bool:
        return all(
            philox.words(seed, call, 5000).tobytes() == expected[seed, call] for call in range(50)
        )

    expected = {
        (seed, call): philox.words(seed, call, 5000).tobytes()
        for seed in range(4)
        for call in range(50)
    }
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(draw, range(4)))


# The same on all devices


@pytest.mark.parametrize("dtype", ["float32", "float64", None])
@pytest.mark.parametrize("name", DRAWS)
def test_seed_gives_the_same_bits_on_every_device(name, dtype, device):
    options = {"dtype": dtype} if name in FLOATING else {}
    results = []
    for target in ("cpu", device):
        xgrad.manual_seed(3)
        results += [
            DRAWS[name](device=target, **options),
            DRAWS[name](generator=Generator(3), device=target, **options),
        ]
    assert {str(x.device) for x in results[2:]} == {device}
    assert len(set(map(bits, results))) == 1


def test_many_numbers_are_the_same_on_every_device(device):
    for name, draw in (("rand", rand), ("randn", randn), ("normal", normal)):
        for dtype in ("float32", "float64"):
            ours, other = (
                draw(10**5 + 1, dtype=dtype, device=d, generator=Generator(8))
                for d in ("cpu", device)
            )
            assert bits(ours) == bits(other), (name, dtype)


@pytest.mark.parametrize("name", ["rand", "randn", "uniform", "normal", "exponential", "randint"])
def test_elements_do_not_depend_on_their_number(name):
    draw = {"randint": lambda n, **options: randint(-5, 10**6, n, **options)}.get(name) or getattr(
        xgrad.random, name
    )
    long = draw(101, generator=Generator(2)).tolist()
    for n in (1, 2, 7, 100):
        assert draw(n, generator=Generator(2)).tolist() == long[:n]
    assert draw((10, 10), generator=Generator(2)).reshape(-1).tolist() == long[:100]


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_and_calls_differ(name):
    generator = Generator(3)
    draws = [
        DRAWS[name](generator=g) for g in (generator, generator, Generator(4), Generator(2**64 - 1))
    ]
    assert len(set(map(bits, draws))) == 4
    assert Generator().seed != Generator().seed


@pytest.mark.parametrize("name", FLOATING)
@pytest.mark.parametrize("dtype", [None, xgrad.float32, xgrad.float64, "float64"])
def test_draws_have_the_requested_dtype_and_are_leaves(name, dtype, device):
    x = DRAWS[name](dtype=dtype, device=device, requires_grad=True)
    assert x.dtype == (dtype or xgrad.float32) and x.requires_grad and x.is_leaf
    assert type(x._data) is xgrad.Device(device).array_type
    assert not DRAWS[name]().requires_grad


def test_numbers_are_drawn_on_the_default_device():
    with xgrad.default_device("strict:1"):
        assert str(rand(2).device) == "strict:1"
        assert str(randperm(2, device="cpu").device) == "cpu"


@pytest.mark.parametrize("shape", [(), 0, 3, (0, 2), [2, 3], (np.int64(2), 1)])
def test_draws_have_the_requested_shape(shape):
    expected = np.empty(shape).shape
    for draw in (rand, randn, uniform, normal, exponential):
        assert draw(shape).shape == expected
    assert randint(0, 9, shape).shape == expected


# Distributions


@pytest.fixture
def stats():
    return pytest.importorskip("scipy.stats", reason="needs SciPy")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize(
    ("draw", "distribution", "parameters"),
    [
        (rand, "uniform", ()),
        (randn, "norm", ()),
        (normal, "norm", (2.0, 3.0)),
        (uniform, "uniform", (-2.0, 3.0)),
        (exponential, "expon", (4.0,)),
    ],
)
def test_floats_have_their_distribution(draw, distribution, parameters, seed, dtype, stats):
    x = draw(100_000, *parameters, dtype=dtype, generator=Generator(seed)).numpy().astype("float64")
    location = (parameters[0], parameters[1] - parameters[0]) if draw is uniform else parameters
    location = (0, 1 / parameters[0]) if draw is exponential else location
    expected = getattr(stats, distribution)(*location)
    # SciPy 1.18 takes a name without parameters only
    assert stats.kstest(x, expected.cdf).pvalue > 1e-3
    if draw is rand:
        assert 0 <= x.min() < 1e-4 and 1 - 1e-4 < x.max() < 1


def test_counts_have_their_distribution(stats, device):
    for rate in (0.0, 1e-3, 0.7, 5.0, 300.0):
        rates = xgrad.full(20_000, rate, dtype="float64", device=device)
        drawn = poisson(rates, generator=Generator(5)).numpy().astype(int)
        expected = stats.poisson(rate)
        low, high = int(expected.ppf(0.01)), int(expected.ppf(0.99)) + 1
        observed = np.bincount(np.clip(drawn, low, high) - low, minlength=high - low + 1)
        inner = expected.pmf(np.arange(low, high + 1))
        inner[0], inner[-1] = expected.cdf(low), expected.sf(high - 1)
        kept = inner * 20_000 > 5
        assert observed[~kept].sum() < 60
        if kept.sum() > 1:
            scaled = inner[kept] * observed[kept].sum() / inner[kept].sum()
            assert stats.chisquare(observed[kept], scaled).pvalue > 1e-3
    ones = bernoulli(xgrad.full(100_000, 0.3, device=device), generator=Generator(5)).numpy()
    assert set(ones) == {0, 1} and abs(ones.mean() - 0.3) < 4 * (0.21 / 100_000) ** 0.5


@pytest.mark.parametrize("size", [1.0, 3.0, 40.0, 1e4, 1e6])
def test_quantiles_of_counts_are_those_of_scipy(size, stats):
    numbers = np.concatenate(
        [[2.0**-54, 1e-12, 0.5, 1 - 1e-12], rand(500, dtype="float64").numpy()]
    )
    drawn = xgrad.asarray(numbers)
    for rate in (size / 100, size, 1.7 * size):
        got = counts.poisson_quantile(xgrad.asarray(rate, dtype="float64"), drawn)
        np.testing.assert_array_equal(got.numpy(), stats.poisson.ppf(numbers, rate))
    for p in (0.0, 1e-3, 0.3, 0.5, 0.9999, 1.0):
        given = [xgrad.asarray(x, dtype="float64") for x in (size, p)]
        got = counts.binomial_quantile(*given, drawn[1:])
        np.testing.assert_array_equal(got.numpy(), stats.binom.ppf(numbers[1:], size, p))


def test_draws_like_a_tensor_have_its_form(device):
    x = xgrad.zeros((2, 3), dtype="float64", device=device)
    for draw in (rand_like, randn_like):
        assert (draw(x).shape, draw(x).dtype, str(draw(x).device)) == ((2, 3), x.dtype, device)
        assert draw(xgrad.zeros(2, dtype="int64"), dtype="float32").dtype == xgrad.float32
    assert bits(rand_like(x, generator=Generator(1))) == bits(
        rand((2, 3), dtype="float64", generator=Generator(1))
    )
    assert randint_like(x, 2, 3).tolist() == [[2.0] * 3] * 2
    assert randint_like(x, 2, 3).dtype == xgrad.float64


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("xp.random.bernoulli(xp.asarray([0.5, 1.5]))", "ValueError: bernoulli: expected probs"),
        ("xp.random.bernoulli(xp.asarray([xp.nan]))", "ValueError: bernoulli: expected probs"),
        ("xp.random.bernoulli(xp.asarray([1]))", "TypeError: bernoulli: expected floating … int64"),
        ("xp.random.poisson(xp.asarray([-1.0]))", "ValueError: poisson: expected finite rates"),
        (
            "xp.random.poisson([1.0])",
            "TypeError: poisson: expected a tensor, … for rates, got list",
        ),
        ("xp.random.exponential(2, 0.0)", "ValueError: exponential: expected a rate above 0"),
        ("xp.random.exponential(2, 'a')", "TypeError: exponential: expected a number for rate"),
        ("xp.random.rand_like(xp.zeros(2, dtype=xp.int64))", "TypeError: rand: expected a dtype"),
        ("xp.random.randn_like(3, dim=1)", "TypeError: randn_like() got an unexpected keyword"),
    ],
)
def test_invalid_parameters_of_draws_are_refused(call, expected):
    check_error(call, expected)


def test_replays_of_draws_check_their_parameters():
    step = xgrad.capture(lambda p: bernoulli(p) + poisson(4 * p))
    xgrad.manual_seed(2)
    for p in (0.2, 0.7, 0.9):
        state = xgrad.random.get_state()
        got = step(xgrad.full(5, p))
        xgrad.random.set_state(state)
        assert bits(got) == bits(bernoulli(xgrad.full(5, p)) + poisson(4 * xgrad.full(5, p)))
    with pytest.raises(ValueError, match="bernoulli: expected probs from 0 to 1"):
        step(xgrad.full(5, 2.0))


def test_normal_numbers_are_those_of_box_and_muller():
    """The series of the library against the functions of NumPy."""
    drawn = philox.words(1, 2, 20_000)
    drawn[:6] = [0, 0, 2**64 - 1, 5, 2047, 2**63]  # the largest radius, radius 0, the least angle
    first, second = drawn.reshape(-1, 2).T
    radius = np.sqrt(-2 * np.log(((first >> 11) + 1) * 2.0**-53))
    angle = ((second >> 11) - 2.0**53 * (second >> 63)) * np.pi * 2.0**-54
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)])
    pairs = np.where(second & 1, pairs, pairs[::-1]) * np.where(second & 2, -1, 1)
    numbers = variates.normal(drawn)
    np.testing.assert_allclose(numbers.reshape(-1, 2).T, pairs, rtol=1e-14, atol=1e-18)
    assert abs(numbers[:2]).max() == pytest.approx(np.sqrt(2 * 53 * np.log(2)))
    assert numbers[2:4].tolist() == [0, 0]


def test_few_normal_numbers_have_the_bits_of_many():
    drawn = philox.words(3, 4, 6400)
    ends = np.array(
        [0, 1, 2, 3, 2047, 2048, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1], np.uint64
    )
    drawn[:121], drawn[121:242] = np.repeat(ends, 11), np.tile(ends, 11)
    drawn[:242] = drawn[:242].reshape(2, 121).T.ravel()  # all pairs of them
    drawn[300:600] >>= np.arange(300, dtype=np.uint64) % 64  # u near 0, which have large radii
    few = np.concatenate([variates.normal(drawn[i : i + 32]) for i in range(0, 6400, 32)])
    assert few.tobytes() == variates.normal(drawn).tobytes()


def test_uniform_numbers_at_their_ends():
    for width, digits, dtype in ((32, 24, np.float32), (64, 53, np.float64)):
        drawn = np.array([0, -1, 2 ** (width - 1) - 1, -(2 ** (width - 1))], f"int{width}")
        got = variates.uniform(np, drawn, dtype)
        assert got.dtype == dtype
        assert got.tolist() == [0, 1 - 2.0**-digits, 0.5 - 2.0**-digits, 0.5]


@pytest.mark.parametrize(
    "span", [1, 2, 10, 2**32 - 1, 2**32, 2**32 + 1, 2**63 + 12345, 2**64 - 1, 2**64]
)
def test_integers_are_the_high_part_of_a_product(span):
    drawn = np.concatenate(
        [philox.words(4, 5, 200), np.array([0, 0, 2**64 - 1, 2**64 - 1], np.uint64)]
    )
    low = min(-7, 2**63 - span)
    expected = [low + (((a << 64) + b) * span >> 128) for a, b in drawn.reshape(-1, 2).tolist()]
    assert variates.integers(low, low + span, drawn).tolist() == expected
    assert (expected[-2], expected[-1]) == (low, low + span - 1)


def test_integers_and_orders_are_equally_likely(stats):
    generator, n = Generator(1), 200_000
    for span in (2, 10, 1000):
        counts = np.bincount(randint(0, span, n, generator=generator).numpy(), minlength=span)
        assert stats.chisquare(counts).pvalue > 1e-4
    wide = randint(-(2**63), 2**63, n, generator=generator).numpy()
    assert stats.kstest(wide / 2.0**64, stats.uniform(-0.5, 1).cdf).pvalue > 1e-3
    orders = [tuple(randperm(4, generator=generator).tolist()) for _ in range(24 * 200)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 24 and stats.chisquare(counts).pvalue > 1e-4
    permutation = randperm(60_000, generator=generator).numpy()
    assert (np.sort(permutation) == np.arange(60_000)).all()
    assert abs(np.corrcoef(permutation, np.arange(60_000))[0, 1]) < 4 / 60_000**0.5


def test_draws_are_independent():
    n, generators = 100_000, [Generator(0), Generator(0), Generator(1)]
    generators[1].rand(1)
    # calls 0 and 1, and another seed
    series = [g.randn(n, dtype="float64").numpy() for g in generators]
    pairs = [*itertools.combinations(series, 2), *[(x[k:], x[:-k]) for x in series for k in (1, 2)]]
    for a, b in pairs:
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / n**0.5
        assert abs(np.corrcoef(a**2, b**2)[0, 1]) < 4 / n**0.5


def test_integers_at_the_ends_of_their_range():
    assert randint(0, 3, 9).dtype == randperm(3).dtype == xgrad.int64
    assert set(randint(-1, 2, 1000).tolist()) == {-1, 0, 1}
    assert randint(2**63 - 1, 2**63, ()).item() == 2**63 - 1
    assert randint(-(2**63), -(2**63) + 1, ()).item() == -(2**63)
    assert randperm(0).shape == (0,)


# Generators


def test_generator_of_manual_seed_is_the_one_in_use():
    generator = xgrad.manual_seed(5)
    assert generator.seed == 5
    assert repr(generator).endswith("(seed=5)")
    first = [rand(2), generator.rand(2), rand(2, generator=generator)]
    xgrad.manual_seed(5)
    assert list(map(bits, first)) == [bits(rand(2)) for _ in range(3)]
    assert copy.deepcopy(generator) is generator
    assert pickle.loads(pickle.dumps(generator)) is generator


def test_copy_of_a_generator_is_independent():
    generator = Generator(5)
    generator.rand(1)
    for other in (copy.copy(generator), pickle.loads(pickle.dumps(generator))):
        assert bits(other.randn(3)) == bits(copy.copy(generator).randn(3))


def test_threads_have_generators_of_their_own():
    barrier = threading.Barrier(3)

    def draw(seed: int) -> list[bytes]:
        xgrad.manual_seed(seed)
        return [bits(rand(3)) for _ in range(20) if barrier.wait(10) >= 0]

    with ThreadPoolExecutor(3) as pool:
        drawn = list(pool.map(draw, range(3)))
    for seed in range(3):
        xgrad.manual_seed(seed)
        assert drawn[seed] == [bits(rand(3)) for _ in range(20)]


def test_unseeded_context_has_a_seed_of_its_own():
    xgrad.manual_seed(0)
    draws = [contextvars.Context().run(lambda: bits(rand(8))) for _ in range(2)]
    assert len({*draws, bits(rand(8))}) == 3


def test_tasks_have_generators_of_their_own():
    async def draw(seed: int | None) -> list[bytes]:
        if seed is not None:
            xgrad.manual_seed(seed)
        parts = []
        for _ in range(5):
            await asyncio.sleep(0)
            parts.append(bits(rand(3)))
        return parts

    async def main() -> tuple[list[list[bytes]], bytes]:
        xgrad.manual_seed(9)
        return await asyncio.gather(draw(1), draw(2), draw(None)), bits(rand(3))

    (one, two, inherited), after = asyncio.run(main())
    for seed, expected in ((1, one), (2, two)):
        xgrad.manual_seed(seed)
        assert expected == [bits(rand(3)) for _ in range(5)]
    xgrad.manual_seed(9)
    assert after == bits(rand(3)), "draws of the tasks have no effect"
    assert after not in inherited


def test_tasks_after_one_seed_draw_different_numbers_and_the_same_again():
    async def draw(depth: int) -> list[bytes]:
        parts = []
        for _ in range(5):
            await asyncio.sleep(0)
            parts.append(bits(rand(3)))
        if depth:
            parts += await asyncio.gather(*[draw(0) for _ in range(2)])
            parts += [await asyncio.to_thread(lambda: bits(rand(3)))]
        return parts

    async def main() -> list[list[bytes]]:
        before = bits(rand(3))
        tasks = [asyncio.ensure_future(draw(1)) for _ in range(4)]
        return [[before, bits(rand(3))], *await asyncio.gather(*tasks), [bits(rand(3))]]

    def run(seed: int) -> list[bytes]:
        xgrad.manual_seed(seed)
        drawn = asyncio.run(main())
        parts = [part for group in drawn for part in group]
        return [x for part in parts for x in (part if isinstance(part, list) else [part])]

    first, again, other = run(3), run(3), run(4)
    assert first == again
    assert len({*first, *other}) == len(first) + len(other) == 2 * (3 + 4 * (5 + 10 + 1))


def test_context_that_moves_between_threads_keeps_its_stream():
    context = contextvars.copy_context()
    context.run(xgrad.manual_seed, 5)
    with ThreadPoolExecutor(2) as pool:
        drawn = [pool.submit(context.run, lambda: bits(rand(3))).result() for _ in range(4)]
    xgrad.manual_seed(5)
    assert drawn == [bits(rand(3)) for _ in range(4)]


def test_copies_of_an_unseeded_context_draw_different_numbers():
    def draw() -> list[bytes]:
        first = bits(rand(3))
        return [
            first,
            *[contextvars.copy_context().run(lambda: bits(rand(3))) for _ in range(3)],
            bits(rand(3)),
        ]

    assert len(set(contextvars.Context().run(draw))) == 5


def test_state_after_the_last_call_is_accepted():
    for generator in (Generator(5), xgrad.manual_seed(5)):
        generator.set_state({"seed": 5, "calls": 2**64 - 1})
        generator.rand(2)
        state = generator.get_state()
        drawn = [bits(generator.rand(2)) for _ in range(2)]
        generator.set_state(state)
        assert state == {"seed": 5, "calls": 0}
        assert [bits(generator.rand(2)) for _ in range(2)] == drawn


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: xgrad.manual_seed("7"),
            TypeError,
            "manual_seed: expected an int as the seed, got '7'",
        ),
        (lambda: xgrad.manual_seed(True), TypeError, "manual_seed: expected an int"),
        (
            lambda: xgrad.manual_seed(-1),
            ValueError,
            r"manual_seed: expected a seed from 0 to 2\*\*64 - 1, got -1",
        ),
        (lambda: Generator(2**64), ValueError, r"Generator: expected a seed from 0 to 2\*\*64 - 1"),
        (
            lambda: rand(2.0),
            TypeError,
            r"rand: expected an int or a tuple of ints as the shape, got 2\.0",
        ),
        (lambda: randn((2, "3")), TypeError, "randn: expected an int or a tuple of ints"),
        (
            lambda: rand((2, -3)),
            ValueError,
            r"rand: expected a shape without negative lengths, got \(2, -3\)",
        ),
        (
            lambda: rand(2, dtype=xgrad.int64),
            TypeError,
            "rand: expected a dtype of xgrad.float32 or xgrad.float64",
        ),
        (lambda: rand(2, dtype="float31"), TypeError, "rand: expected a dtype of .*, got float31"),
        (
            lambda: uniform(2, 1.0, 0.0),
            ValueError,
            "uniform: expected low <= high, .*, got 1.0 and 0.0",
        ),
        (
            lambda: uniform(2, 0.0, float("inf")),
            ValueError,
            "uniform: expected low <= high, both finite",
        ),
        (
            lambda: uniform(2, float("nan"), 0.0),
            ValueError,
            "uniform: expected low <= high, .*, got nan and 0.0",
        ),
        (
            lambda: uniform(2, -1e308, 1e308),
            ValueError,
            "uniform: expected low <= high, .* and their difference",
        ),
        (lambda: normal(2, 0.0, -1.0), ValueError, r"normal: expected std >= 0, got -1\.0"),
        (lambda: randint(0, 2.5, 2), TypeError, r"randint: expected an int for high, got 2\.5"),
        (lambda: randint(2, 2, 2), ValueError, "randint: expected low < high, .*, got 2 and 2"),
        (
            lambda: randint(0, 2**64, 2),
            ValueError,
            "randint: expected low < high, both in the range of int64",
        ),
        (
            lambda: randperm(-1),
            ValueError,
            "randperm: expected a number of integers n >= 0, got -1",
        ),
        (
            lambda: randperm(2.0),
            ValueError,
            "randperm: expected a number of integers n >= 0, got 2.0",
        ),
        (
            lambda: rand(2, generator=7),
            TypeError,
            r"rand: expected an xgrad.random.Generator, got int: make one",
        ),
        (lambda: rand(2, device="tpu"), xgrad.DeviceError, "unknown device 'tpu'"),
    ],
)
def test_invalid_draws_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_failed_draw_takes_no_numbers():
    xgrad.manual_seed(1)
    with pytest.raises(xgrad.DeviceError):
        rand(2, device="tpu")
    after = rand(2)
    xgrad.manual_seed(1)
    assert bits(after) == bits(rand(2))


# multinomial


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_draws_in_proportion_to_the_weights(replacement: bool, device: str) -> None:
    weights = xgrad.asarray([[1.0, 0.0, 2.0, 5.0]] * 4000, device=device)
    drawn = multinomial(weights, 3, replacement, generator=Generator(3)).cpu().numpy()
    assert drawn.shape == (4000, 3) and drawn.dtype == np.int64
    columns = drawn.T if replacement else drawn.T[:1]
    for column in columns:
        shares = np.bincount(column, minlength=4) / len(column)
        np.testing.assert_allclose(shares, [1 / 8, 0, 2 / 8, 5 / 8], atol=0.03)
    if not replacement:
        assert (np.sort(drawn, axis=1) == [0, 2, 3]).all()
        second = np.bincount(drawn[drawn[:, 0] == 3, 1], minlength=4) / (drawn[:, 0] == 3).sum()
        np.testing.assert_allclose(second, [1 / 3, 0, 2 / 3, 0], atol=0.05)


def test_multinomial_draws_from_its_row(device: str) -> None:
    chosen = np.random.default_rng(0).integers(0, 7, 300)
    weights = xgrad.asarray(np.eye(7, dtype=np.float32)[chosen] * 1e-30, device=device)
    for replacement in (True, False):
        drawn = multinomial(weights, 1, replacement).cpu().numpy()
        assert (drawn[:, 0] == chosen).all()


def test_multinomial_of_one_row_draws_possible_indices(device: str) -> None:
    weights = xgrad.asarray([1, 0, 3], device=device)
    assert multinomial(weights, 5, True).shape == (5,) and set(
        multinomial(weights, 5, True).tolist()
    ) <= {0, 2}
    assert multinomial(weights, 0).shape == (0,) and sorted(multinomial(weights, 2).tolist()) == [
        0,
        2,
    ]


@pytest.mark.parametrize("replacement", [True, False])
def test_captured_multinomial_draws_what_eager_calls_draw(replacement: bool) -> None:
    def draw(weights: xgrad.Tensor) -> xgrad.Tensor:
        return multinomial(weights, 4, replacement)

    step, draws = xgrad.capture(draw), []
    for fn in (step, draw):
        xgrad.manual_seed(5)
        draws.append([fn(some_weights() * k).tolist() for k in (1, 2, 3)])
    assert draws[0] == draws[1] and step.refusal is None


@pytest.mark.parametrize(
    ("weights", "count", "message"),
    [
        ([1.0, -1.0], 1, "expected finite weights of at least 0, got others"),
        ([1.0, np.nan], 1, "expected finite weights of at least 0, got others"),
        ([0.0, 0.0], 1, "expected 1 or more weights above 0 in each row, got fewer"),
        ([[1.0, 1.0], [0.0, 1.0]], 2, "expected 2 or more weights above 0 in each row, got fewer"),
        (
            [1.0],
            2,
            "expected num_samples from 0 to 1, as there are weights and no replacement, got 2",
        ),
        (
            [1.0],
            -1,
            "expected num_samples from 0 to 1, as there are weights and no replacement, got -1",
        ),
        ([[[1.0]]], 1, "expected weights of shape .n,. or .rows, n., got shape .1, 1, 1."),
    ],
)
def test_invalid_weights_of_multinomial_are_refused(
    weights: object, count: int, message: str
) -> None:
    with pytest.raises(ValueError, match=f"multinomial: {message}"):
        multinomial(xgrad.asarray(weights), count)


# State


@pytest.mark.parametrize("name", DRAWS)
def test_state_continues_on_any_device_in_any_generator(name, device):
    xgrad.manual_seed(3)
    rand(5)
    state = xgrad.random.get_state()
    expected = [bits(DRAWS[name](device="cpu")) for _ in range(2)]
    xgrad.random.set_state(state)
    assert [bits(DRAWS[name](device=device)) for _ in range(2)] == expected
    other = Generator()
    other.set_state(state)
    xgrad.random.set_state(other.get_state())
    assert state == {"seed": 3, "calls": 1} and bits(DRAWS[name](device=device)) == expected[0]


@pytest.mark.parametrize(
    "row",
    [
        (
            "set_state((3, 1)) -> TypeError: set_state: expected a mapping with 'seed' and 'calls',"
            " as of get_state, got …"
        ),
        (
            "set_state({'seed': 3}) -> TypeError: set_state: expected a mapping with 'seed' and"
            " 'calls'"
        ),
        (
            "set_state({'seed': 0.5, 'calls': 0}) -> TypeError: set_state: expected an int as the"
            " seed, got 0.5"
        ),
        (
            "set_state({'seed': -1, 'calls': 0}) -> ValueError: set_state: expected a seed from 0"
            " to 2**64 - 1, got -1"
        ),
        (
            "set_state({'seed': 1, 'calls': -1}) -> ValueError: set_state: expected a number of"
            " calls from 0"
        ),
    ],
)
def test_invalid_states_are_refused(row):
    before = xgrad.random.get_state()
    call, _, error = row.partition(" -> ")
    check_error(call, error, set_state=xgrad.random.set_state)
    assert xgrad.random.get_state() == before


def test_captured_step_does_not_read_or_set_states():
    for use in (xgrad.random.get_state, lambda: xgrad.random.set_state({"seed": 1, "calls": 0})):
        step = xgrad.capture(lambda x, use=use: (use(), x + 1)[1])
        with pytest.warns(
            CaptureWarning, match="the state of a generator is read or set in the step"
        ):
            assert step(xgrad.ones(1)).item() == 2
