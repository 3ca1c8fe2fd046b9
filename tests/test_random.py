"""Random numbers: reproducible, the same on every device, and nobody else's business."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import pickle
import threading

import numpy as np
import pytest

import xgrad
from xgrad.random import Generator, normal, rand, randint, randn, randperm, uniform

DRAWS = {
    "rand": lambda **options: rand((3, 4), **options),
    "randn": lambda **options: randn((3, 4), **options),
    "uniform": lambda **options: uniform((3, 4), -2.0, 3.0, **options),
    "normal": lambda **options: normal((3, 4), -2.0, 3.0, **options),
    "randint": lambda **options: randint(-5, 5, (3, 4), **options),
    "randperm": lambda **options: randperm(12, **options),
}
FLOATING = ("rand", "randn", "uniform", "normal")


def bits(x: xgrad.Tensor) -> bytes:
    return x.detach().cpu().numpy().tobytes()


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_bits_on_every_device(name, device):
    results = []
    for place in ("cpu", device):
        xgrad.manual_seed(3)
        results += [DRAWS[name](device=place), DRAWS[name](generator=Generator(3), device=place)]
    assert {str(x.device) for x in results[2:]} == {device}
    assert len(set(map(bits, results))) == 1


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_and_calls_differ(name):
    generator = Generator(3)
    draws = [DRAWS[name](generator=g) for g in (generator, generator, Generator(4), Generator(2**64 - 1))]
    assert len(set(map(bits, draws))) == 4
    assert Generator().seed != Generator().seed


@pytest.mark.parametrize("name", FLOATING)
@pytest.mark.parametrize("dtype", [None, xgrad.float32, xgrad.float64, "float64"])
def test_dtypes_and_gradients(name, dtype, device):
    x = DRAWS[name](dtype=dtype, device=device, requires_grad=True)
    assert x.dtype == (dtype or xgrad.float32)
    assert x.requires_grad
    assert x.is_leaf
    assert type(x._data) is xgrad.Device(device).array_type
    assert not DRAWS[name]().requires_grad


def test_float32_is_drawn_as_such():
    x = rand(1000, generator=Generator(0)).numpy() * 2**24
    assert (x == np.floor(x)).all()
    wide = rand(1000, dtype=xgrad.float64, generator=Generator(0)).numpy() * 2**24
    assert (wide != np.floor(wide)).any()


def test_default_device():
    with xgrad.default_device("strict:1"):
        assert str(rand(2).device) == "strict:1"
        assert str(randperm(2, device="cpu").device) == "cpu"


@pytest.mark.parametrize("shape", [(), 0, 3, (0, 2), [2, 3], (np.int64(2), 1)])
def test_shapes(shape):
    expected = np.empty(shape).shape
    for draw in (rand, randn, uniform, normal):
        assert draw(shape).shape == expected
    assert randint(0, 9, shape).shape == expected


def test_distributions():
    generator, n = Generator(1), 200_000
    for dtype in (xgrad.float32, xgrad.float64):
        u = rand(n, dtype=dtype, generator=generator).numpy()
        assert 0 <= u.min() < u.max() < 1
        assert abs(u.mean() - 1 / 2) < 5e-3
        assert abs(u.var() - 1 / 12) < 5e-3
        z = normal(n, 2.0, 3.0, dtype=dtype, generator=generator).numpy()
        assert abs(z.mean() - 2) < 5e-2
        assert abs(z.std() - 3) < 5e-2
        assert abs(((z - 2) ** 3).mean()) < 1
    counts = np.bincount(randint(0, 10, n, generator=generator).numpy(), minlength=10)
    assert (abs(counts - n / 10) < 5 * (n / 10) ** 0.5).all()
    firsts = np.bincount([randperm(4, generator=generator).tolist()[0] for _ in range(2000)])
    assert (abs(firsts - 500) < 100).all()


def test_integers():
    assert randint(0, 3, 9).dtype == randperm(3).dtype == xgrad.int64
    assert set(randint(-1, 2, 1000).tolist()) == {-1, 0, 1}
    assert randint(2**63 - 1, 2**63, ()).item() == 2**63 - 1
    assert randint(-(2**63), -(2**63) + 1, ()).item() == -(2**63)
    assert sorted(randperm(100).tolist()) == list(range(100))
    assert randperm(0).shape == (0,)


def test_the_generator_of_manual_seed_is_the_one_in_use():
    generator = xgrad.manual_seed(5)
    assert generator.seed == 5
    assert repr(generator).endswith("(seed=5)")
    first = [rand(2), generator.rand(2), rand(2, generator=generator)]
    xgrad.manual_seed(5)
    assert list(map(bits, first)) == [bits(rand(2)) for _ in range(3)]
    assert copy.deepcopy(generator) is generator
    assert pickle.loads(pickle.dumps(generator)) is generator


def test_a_copy_of_a_generator_goes_its_own_way():
    generator = Generator(5)
    generator.rand(1)
    for other in (copy.copy(generator), pickle.loads(pickle.dumps(generator))):
        assert bits(other.randn(3)) == bits(copy.copy(generator).randn(3))


def test_threads_do_not_disturb_each_other():
    seen = {}
    barrier = threading.Barrier(3)

    def draw(seed: int) -> None:
        xgrad.manual_seed(seed)
        parts = []
        for _ in range(20):
            barrier.wait(10)
            parts.append(bits(rand(3)))
        seen[seed] = parts

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(3):
        xgrad.manual_seed(seed)
        assert seen[seed] == [bits(rand(3)) for _ in range(20)]


def test_an_unseeded_thread_has_a_seed_of_its_own():
    seen = []

    def draw() -> None:
        seen.append(bits(rand(8)))

    xgrad.manual_seed(0)
    for _ in range(2):
        contextvars.Context().run(draw)
    assert bits(rand(8)) not in seen
    assert seen[0] != seen[1]


def test_tasks_do_not_disturb_each_other():
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
    for seed, expected in ((1, one), (2, two), (9, inherited)):
        xgrad.manual_seed(seed)
        assert expected == [bits(rand(3)) for _ in range(5)]
    assert after == inherited[0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: xgrad.manual_seed("7"), TypeError, "manual_seed: expected an int as the seed, got '7'"),
        (lambda: xgrad.manual_seed(True), TypeError, "manual_seed: expected an int"),
        (lambda: xgrad.manual_seed(-1), ValueError, r"manual_seed: expected a seed from 0 to 2\*\*64 - 1, got -1"),
        (lambda: Generator(2**64), ValueError, r"Generator: expected a seed from 0 to 2\*\*64 - 1"),
        (lambda: rand(2.0), TypeError, r"rand: expected an int or a tuple of ints as the shape, got 2\.0"),
        (lambda: randn((2, "3")), TypeError, "randn: expected an int or a tuple of ints"),
        (lambda: rand((2, -3)), ValueError, r"rand: expected a shape without negative lengths, got \(2, -3\)"),
        (lambda: rand(2, dtype=xgrad.int64), TypeError, "rand: expected a dtype of xgrad.float32 or xgrad.float64"),
        (lambda: rand(2, dtype="float31"), TypeError, "rand: expected a dtype of .*, got float31"),
        (lambda: uniform(2, 1.0, 0.0), ValueError, "uniform: expected low <= high, .*, got 1.0 and 0.0"),
        (lambda: uniform(2, 0.0, float("inf")), ValueError, "uniform: expected low <= high, both finite"),
        (lambda: normal(2, 0.0, -1.0), ValueError, r"normal: expected std >= 0, got -1\.0"),
        (lambda: randint(0, 2.5, 2), TypeError, r"randint: expected an int for high, got 2\.5"),
        (lambda: randint(2, 2, 2), ValueError, "randint: expected low < high, .*, got 2 and 2"),
        (lambda: randint(0, 2**64, 2), ValueError, "randint: expected low < high, both in the range of int64"),
        (lambda: randperm(-1), ValueError, "randperm: expected a number of integers n >= 0, got -1"),
        (lambda: randperm(2.0), ValueError, "randperm: expected a number of integers n >= 0, got 2.0"),
        (lambda: rand(2, generator=7), TypeError, r"rand: expected an xgrad.random.Generator, got int: make one"),
        (lambda: rand(2, device="tpu"), xgrad.DeviceError, "unknown device 'tpu'"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_draw_that_fails_takes_no_numbers():
    xgrad.manual_seed(1)
    with pytest.raises(xgrad.DeviceError):
        rand(2, device="tpu")
    after = rand(2)
    xgrad.manual_seed(1)
    assert bits(after) == bits(rand(2))
