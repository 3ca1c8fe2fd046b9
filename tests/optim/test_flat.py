"""Parameters and gradients packed in buffers, which updates and writes change in place.

Views, writes and random events between steps are compared with PyTorch, updates with unpacked
parameters.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import run_threads
from xgrad import Tensor, nn, optim
from xgrad.nn.functional import cross_entropy, mse_loss
from xgrad.optim.buffers import BufferLayout

SIZES = [5, 4, 3]
Model = Any


def model_and_optimizer(
    name: str = "SGD", device: str = "cpu", **options: Any
) -> tuple[Model, Any]:
    xgrad.manual_seed(0)
    model = nn.MLP(SIZES, device=device)
    return model, getattr(optim, name)(model.parameters(), **({"lr": 0.1} | options))


def loss_of(model: Model, seed: int = 0) -> Tensor:
    rng, device = np.random.default_rng(seed), model[0].weight.device
    x, y = rng.normal(size=(6, 5)).astype(np.float32), rng.integers(0, 3, 6)
    return cross_entropy(model(xgrad.asarray(x, device=device)), xgrad.asarray(y, device=device))


def train(model: Model, optimizer: Any, steps: int = 1) -> None:
    for seed in range(steps):
        optimizer.zero_grad()
        loss_of(model, seed).backward()
        optimizer.step()


def trained(*args: Any, **options: Any) -> tuple[Model, Any]:
    """Return a model whose parameters are packed, without gradients, and its optimizer."""
    model, optimizer = model_and_optimizer(*args, **options)
    train(model, optimizer)
    optimizer.zero_grad()
    return model, optimizer


def values(model: Model) -> list[np.ndarray]:
    return [p.detach().cpu().numpy().copy() for p in model.parameters()]


def gradients(model: Model) -> list[np.ndarray]:
    return [
        p._leaf.grad.cpu().numpy().copy() for p in model.parameters()
    ]  # which does not count as seen by a user


def assert_equal(one: list[Any], other: list[Any], **tolerance: float) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, **({"rtol": 0} | tolerance))


def test_parameters_and_gradients_stay_in_one_buffer_each() -> None:
    model, optimizer = trained()
    addresses = [p._data.ctypes.data for p in model.parameters()]
    train(model, optimizer, 3)
    assert [p._data.ctypes.data for p in model.parameters()] == addresses
    assert len({id(p._data.base) for p in model.parameters()}) == 1
    assert len({id(p._leaf.grad._data.base) for p in model.parameters()}) == 1


VIEWS: list[Callable[[Any], Any]] = [
    lambda p: p.data,
    lambda p: p.T,
    lambda p: p[0, :],
    lambda p: p.reshape(-1),
    lambda p: p.T.mT[1:, ...],
    lambda p: p.data[0, :].data,
]


@pytest.mark.parametrize("view_of", VIEWS)
def test_views_of_a_parameter_follow_it_without_a_copy(
    view_of: Callable[[Any], Any], device: str
) -> None:
    model, optimizer = trained(device=device)
    p = model[0].weight
    view, buffer = view_of(p), id(p._data.base) if device == "cpu" else None
    data = p.data  # else nothing holds the base of .data[0, :]
    before = view.tolist()
    train(model, optimizer, 3)
    assert view.tolist() == view_of(p).tolist() != before and data.tolist() == p.tolist()
    assert device != "cpu" or id(p._data.base) == buffer


SHARED: dict[str, Callable[[Any], Any]] = {
    "detached": lambda p: p.detach(),
    "data": lambda p: p.data,
    "detached data": lambda p: p.data.detach(),
    "part": lambda p: p.detach()[1:, :],
    "flat": lambda p: p.detach().reshape(-1),
    "transposed": lambda p: p.T.detach(),
    "flat part": lambda p: p.detach()[1:, :].reshape(-1),
    "flat part of columns": lambda p: p.detach()[:, 1:].reshape(-1),  # a copy, as in PyTorch
    "twice transposed": lambda p: p.detach().T.T.reshape((2, -1)),
    "NumPy": lambda p: p.detach().numpy(),
    "part of NumPy": lambda p: np.asarray(p.detach())[::2],
    "memoryview": lambda p: memoryview(p.detach().numpy()),
}


@pytest.mark.parametrize("when", ["before the first step", "between steps"])
@pytest.mark.parametrize("look", SHARED.values(), ids=SHARED)
def test_what_shares_memory_with_a_parameter_follows_it_as_in_pytorch(
    look: Callable[[Any], Any], when: str, device: str, torch: Any
) -> None:
    model, optimizer = (
        trained(device=device) if when == "between steps" else model_and_optimizer(device=device)
    )
    p = model[0].weight
    if device != "cpu" and look in NUMPY:
        pytest.skip("NumPy shares the memory of the CPU only")
    other = torch.tensor(p.tolist(), requires_grad=True)  # in row order, in which the buffer is not
    taken, expected = look(p), look(other)
    for seed in range(3):
        optimizer.zero_grad()
        loss_of(model, seed).backward()
        other.grad = torch.tensor(p.grad.cpu().numpy())
        optimizer.step()
        torch.optim.SGD([other], lr=0.1).step()
        np.testing.assert_allclose(np.array(taken.tolist()), np.array(expected.tolist()), rtol=1e-5)


NUMPY = [SHARED[name] for name in ("NumPy", "part of NumPy", "memoryview")]

VALUES: dict[str, Callable[[Any], Any]] = {
    "element": lambda p: p[0, 1],
    "detached element": lambda p: p.detach()[0, 1],
    "unstacked elements": lambda p: xgrad.stack(xgrad.unstack(p.detach()[0, :])),
    "clone": lambda p: p.detach().clone(),
    "rows": lambda p: xgrad.take(p.detach(), xgrad.asarray([0, 1], device=p.device), axis=0),
    "copy": lambda p: xgrad.asarray(p.detach(), copy=True),
    "parameter": lambda p: nn.Parameter(p),
    "tensor": lambda p: Tensor(p.detach()),
    "deep copy": copy.deepcopy,
    "pickled": lambda p: pickle.loads(pickle.dumps(p)),
    "positive": lambda p: +p.detach(),
}


@pytest.mark.parametrize("when", ["before the first step", "between steps"])
@pytest.mark.parametrize("take", VALUES.values(), ids=VALUES)
def test_values_taken_from_a_parameter_are_not_updated(
    take: Callable[[Any], Any], when: str, device: str
) -> None:
    model, optimizer = (
        trained(device=device) if when == "between steps" else model_and_optimizer(device=device)
    )
    taken, weight = take(model[0].weight), values(model)[0]
    expected = np.array(taken.tolist())
    train(model, optimizer, 3)
    np.testing.assert_array_equal(taken.tolist(), expected)
    assert not np.array_equal(values(model)[0], weight)


def test_write_to_a_detached_parameter_changes_it_as_in_pytorch(device: str, torch: Any) -> None:
    model, optimizer = trained(device=device)
    p = model[0].weight
    q = torch.tensor(p.tolist(), requires_grad=True)
    for x in (p, q):
        held, flat = x.detach(), x.detach().reshape(-1)
        held[0, :] = 2.0
        flat[7] += 5.0
        x.data[1, :] *= 3.0
        assert x.detach()[0, :].tolist() == [2.0] * 5
    assert p.tolist() == q.tolist()
    train(model, optimizer)
    assert p.tolist() != q.tolist()


def test_array_of_numpy_follows_writes_to_a_packed_parameter() -> None:
    model, optimizer = trained()
    p = model[0].weight
    array = p.detach().numpy()
    with xgrad.no_grad():
        p *= 2.0
        p[0] = 1.0
    np.testing.assert_array_equal(array, p.detach().numpy())
    p.data = xgrad.ones((4, 5))
    assert array.tolist() == [[1.0] * 5] * 4
    model.load_state_dict(nn.MLP(SIZES).state_dict())
    np.testing.assert_array_equal(array, p.detach().numpy())
    optimizer.load_state_dict(optimizer.state_dict())
    train(model, optimizer)
    np.testing.assert_array_equal(array, p.detach().numpy())


def test_detached_parameter_is_separate_after_its_module_has_moved_as_in_pytorch(
    torch: Any,
) -> None:
    for library, device in ((xgrad, "float64"), (torch, torch.float64)):
        layer: Any = library.nn.Linear(2, 2)
        optimizer: Any = library.optim.SGD(layer.parameters(), lr=0.5)
        held = layer.weight.detach()
        before = held.tolist()
        layer.to(dtype=device)
        moved = layer.weight.detach()
        for _ in range(2):
            optimizer.zero_grad()
            layer.weight.sum().backward()
            optimizer.step()
        assert held.tolist() == before
        assert moved.tolist() == layer.weight.tolist() == [[x - 1.0 for x in row] for row in before]


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_frozen_parameter_stays_and_others_share_memory(frozen: str, device: str) -> None:
    layer: Any = nn.Linear(3, 3, device=device)
    getattr(layer, frozen).requires_grad_(False)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    held = {name: p.detach() for name, p in layer.named_parameters()}
    before = {name: p.tolist() for name, p in layer.named_parameters()}
    for _ in range(2):
        optimizer.zero_grad()
        layer(xgrad.ones((2, 3), device=device)).sum().backward()
        optimizer.step()
    for name, p in layer.named_parameters():
        assert held[name].tolist() == p.tolist()
        assert (p.tolist() == before[name]) is (name == frozen)


def test_parameters_without_gradients_move_and_what_was_detached_follows(device: str) -> None:
    params = [xgrad.ones(3, device=device, requires_grad=True) for _ in range(3)]
    optimizer = optim.Adam(params, lr=0.5)
    held = [(p.detach(), p.data[1:]) for p in params]
    for chosen in ([0], [0, 1], [2], [0, 1, 2]):
        optimizer.zero_grad()
        sum((params[i] * params[i]).sum() for i in chosen).backward()  # type: ignore[union-attr]
        optimizer.step()
        for p, (whole, part) in zip(params, held, strict=True):
            assert whole.tolist() == p.tolist() and part.tolist() == p.tolist()[1:]
        assert len({x for p in params for x in p.tolist()}) > 1 or chosen == [0, 1, 2]


def test_two_optimizers_of_the_same_parameters_share_their_memory() -> None:
    model, one = trained()
    array = model[0].weight.detach().numpy()
    two = optim.Adam(model.parameters(), lr=0.1)
    for turn in range(4):
        train(model, (one, two)[turn % 2])
        np.testing.assert_array_equal(array, model[0].weight.detach().numpy())


def test_former_optimizer_that_is_gone_leaves_parameters_to_writes() -> None:
    p = xgrad.ones(3, requires_grad=True)
    optim.SGD([p], lr=0.1)
    p.sum().backward()
    with xgrad.no_grad():
        p -= p.grad
    assert p.tolist() == [0, 0, 0] and p.grad.tolist() == [1, 1, 1]


COPIED: dict[str, Callable[[Any, Any], Any]] = {
    "module": lambda model, optimizer: model.state_dict(),
    "optimizer": lambda model, optimizer: optimizer.state_dict()["state"],
}


@pytest.mark.parametrize("state_of", COPIED.values(), ids=COPIED)
def test_state_dict_is_a_copy_that_updates_do_not_change(
    state_of: Callable[[Any, Any], Any], device: str
) -> None:
    model, optimizer = trained("Adam", device=device)

    def listed(state: Any) -> list[Any]:
        parts = [
            x
            for part in state.values()
            for x in (part.values() if isinstance(part, dict) else [part])
        ]
        return [x.tolist() if isinstance(x, Tensor) else x for x in parts]

    state = state_of(model, optimizer)
    before = listed(state)
    train(model, optimizer, 2)
    assert listed(state) == before != listed(state_of(model, optimizer))


DERIVED: dict[str, Callable[[Any], Any]] = {
    "detached": lambda p: p.detach(),
    "transposed": lambda p: p.T,
    "detached view": lambda p: p.T.detach().T,
    "part of data": lambda p: p.data[:, ...],
    "real": lambda p: xgrad.real(p.detach()),
}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("derive", DERIVED.values(), ids=DERIVED)
@pytest.mark.parametrize("change", ["step", "write"])
def test_graph_with_values_in_the_memory_of_an_updated_parameter_is_refused(
    derive: Callable[[Any], Any], kept: bool, change: str, device: str
) -> None:
    model, optimizer = trained(device=device)
    p = model[0].weight
    x = xgrad.ones(
        p.shape if derive is not DERIVED["transposed"] else p.shape[::-1],
        device=device,
        requires_grad=True,
    )
    value = derive(p)
    y = (x * value).sum()
    if not kept:
        del value
    if change == "step":
        train(model, optimizer)
    else:
        p.data *= 2.0
    with pytest.raises(RuntimeError, match="multiply needs the value that its 'x2'"):
        y.backward()


@pytest.mark.parametrize("packed", [False, True])
def test_backward_through_a_graph_from_before_a_step_is_refused(packed: bool) -> None:
    model, optimizer = trained() if packed else model_and_optimizer()
    former = loss_of(model)
    train(model, optimizer)
    with pytest.raises(RuntimeError, match="needs the value that its 'weight'"):
        former.backward()


def test_gradients_that_were_read_keep_their_values(device: str) -> None:
    model, optimizer = trained(device=device)
    read, expected = [], []
    for seed in range(3):
        optimizer.zero_grad()
        loss_of(model, seed).backward()
        read.append(model[0].weight.grad)
        expected.append(read[-1].cpu().numpy().copy())
        loss_of(model, seed + 1).backward()  # adds to it
    assert_equal([g.cpu().numpy() for g in read], expected)
    assert len({value.tobytes() for value in expected}) == 3


@pytest.mark.parametrize("zeros", [False, True])
def test_gradients_of_several_passes_are_summed(zeros: bool, device: str) -> None:
    model, optimizer = trained(device=device)
    loss_of(model, 1).backward()
    once = [p.grad.cpu().numpy().copy() for p in model.parameters()]
    optimizer.zero_grad(set_to_none=not zeros)
    assert all(
        not np.any(p.grad.cpu().numpy()) if zeros else p.grad is None for p in model.parameters()
    )
    for _ in range(2):
        loss_of(model, 1).backward()
    assert_equal(gradients(model), [2 * g for g in once], rtol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_tiles_of_any_size_give_identical_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"momentum": 0.9} if name == "SGD" else {"amsgrad": True}
    results = []
    for size in (None, 7, 10**6):
        monkeypatch.setattr(xgrad.Device("cpu").backend, "tile_size", size)
        model, optimizer = model_and_optimizer(name, weight_decay=0.01, **options)
        train(model, optimizer, 4)
        state = [x for parts in optimizer.state_dict()["state"].values() for x in parts.values()]
        results.append(values(model) + [x.numpy() for x in state if isinstance(x, Tensor)])
    assert_equal(results[0], results[1])
    assert_equal(results[0], results[2])


EVENTS = ["one", "hand", "skip", "data", "look", "save", "pickle", "freeze", "all", "all", "twice"]


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("seed", range(6))
def test_random_events_between_steps_give_the_values_of_pytorch(
    name: str, seed: int, torch: Any
) -> None:
    random.seed(seed)
    model, _ = model_and_optimizer()
    params = [xgrad.Tensor(value.astype(np.float64), requires_grad=True) for value in values(model)]
    others = [torch.tensor(p.detach().numpy(), requires_grad=True) for p in params]
    optimizer: Any = getattr(optim, name)(params, lr=0.05, weight_decay=0.01)
    reference = getattr(torch.optim, name)(others, lr=0.05, weight_decay=0.01)
    held: list[Any] = []
    seen: list[Any] = []
    for turn in range(40):
        event = random.choice(EVENTS)
        chosen = range(len(params)) if event != "one" else random.sample(range(len(params)), 2)
        for tensors in [params, others] * (2 if event == "twice" else 1):
            sum(((tensors[i] * tensors[i]) * (i + turn % 3)).sum() for i in chosen).backward()
        i = random.randrange(len(params))
        p, q = params[i], others[i]
        if event == "hand":
            p.grad, q.grad = xgrad.ones_like(p.detach()), torch.ones_like(q)
        elif event == "skip":
            p.grad = q.grad = None
        elif event == "data":
            p.data *= 2
            q.data *= 2
        elif event == "look":
            held.append((p.detach(), q.detach()))
            seen += [(p.grad, p.grad.numpy().copy())] if p.grad is not None else []
        elif event == "save":
            optimizer.load_state_dict(optimizer.state_dict())
        elif event == "pickle":
            optimizer, params = pickle.loads(pickle.dumps((optimizer, params)))  # without gradients
            held.clear()
            for p, q in zip(params, others, strict=True):
                p.grad = None if q.grad is None else xgrad.asarray(q.grad.numpy().copy())
        elif event == "freeze":
            p.requires_grad_(False).requires_grad_(True)
        optimizer.step()
        reference.step()
        if random.random() < 0.8:
            optimizer.zero_grad()
            reference.zero_grad()
        assert_equal(
            [p.detach().numpy() for p in params],
            [q.detach().numpy() for q in others],
            rtol=1e-9,
            atol=1e-12,
        )
        assert_equal(
            [x.numpy() for x, _ in held], [y.numpy() for _, y in held], rtol=1e-9, atol=1e-12
        )
    assert_equal([tensor.numpy() for tensor, _ in seen], [value for _, value in seen])


def test_two_optimizers_of_the_same_parameters_may_alternate() -> None:
    model, one = model_and_optimizer()
    two = optim.SGD(model.parameters(), lr=0.1)
    reference, alone = model_and_optimizer()
    for turn in range(4):
        train(model, (one, two)[turn % 2])
        train(reference, alone)
    assert_equal(values(model), values(reference))


def test_state_is_read_only() -> None:
    model, optimizer = trained("Adam")
    state = optimizer.state[model[0].weight]
    assert state["step"] == 1 and state["exp_avg"].shape == model[0].weight.shape
    with pytest.raises(TypeError):
        state["step"] = 5


# Rules that write to the gradient buffer


@pytest.mark.parametrize("hook", [False, True])
def test_weight_used_twice_has_the_gradient_of_an_unpacked_one(hook: bool, device: str) -> None:
    def gradient(packed: bool) -> np.ndarray:
        xgrad.manual_seed(0)
        layer = nn.Linear(4, 4, device=device)
        optimizer = optim.SGD(layer.parameters(), lr=0.1)
        x = xgrad.asarray(np.arange(8, dtype=np.float32).reshape(2, 4), device=device)
        if packed:
            (0 * layer(x)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        if hook:
            layer.weight.register_hook(lambda g: 2 * g)
        (layer(layer(x)) + x @ layer.weight).sum().backward()
        return gradients(layer)[0]

    np.testing.assert_allclose(gradient(True), gradient(False), rtol=1e-6)


def test_hook_may_keep_the_gradients_that_it_receives(device: str) -> None:
    p = xgrad.Tensor([[1.0]], device=device, requires_grad=True)
    x = xgrad.asarray([[5.0]], device=device)
    optimizer = optim.SGD([p], lr=0.0)
    received: list[Any] = []
    p.register_hook(received.append)
    for turn in range(4):
        optimizer.zero_grad()
        (nn.functional.linear(x, p) * (turn + 1)).sum().backward()
        optimizer.step()
    assert [g.item() for g in received] == [5, 10, 15, 20]


def test_gradients_on_request_leave_the_buffer_as_it_is() -> None:
    model, _ = trained()
    loss_of(model).backward()
    before = gradients(model)
    xgrad.autograd.grad(loss_of(model, 3), list(model.parameters()))
    assert_equal(gradients(model), before)


def test_failed_backward_pass_leaves_no_gradient_and_no_reservation() -> None:
    class Fails(xgrad.Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(xp: Any, g: Any) -> Any:
            raise ArithmeticError("no")

    model, _ = trained()
    with pytest.raises(ArithmeticError):
        model[2](Fails()(model[0](xgrad.ones((6, 5))))).sum().backward()
    assert all(p.grad is None for p in model.parameters())
    assert not any(p._leaf.receiver.reserved for p in model.parameters())


def test_gradients_of_several_threads_are_summed() -> None:
    model, optimizer = trained()
    for _ in range(20):
        optimizer.zero_grad()
        run_threads(lambda seed: loss_of(model, seed).backward(), range(4))
        together = gradients(model)
        optimizer.zero_grad()
        for seed in range(4):
            loss_of(model, seed).backward()
        assert_equal(gradients(model), together, rtol=1e-4, atol=1e-6)


def test_clipping_a_buffer_equals_clipping_each_gradient() -> None:
    clipped = []
    for read in (False, True):
        model, _ = trained()
        loss_of(model).backward()
        if read:
            assert model[0].weight.grad is not None
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        assert norm.item() > 0.05
        clipped.append([norm.item(), *gradients(model)])
    assert_equal(*clipped, rtol=1e-6)


def test_clipping_counts_a_repeated_tensor_twice_whether_packed_or_not() -> None:
    w = xgrad.ones(4, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.0)
    for _ in range(2):
        optimizer.zero_grad()
        w.sum().backward()
        assert nn.utils.clip_grad_norm_([w, w], 100.0).item() == pytest.approx(8**0.5)
        optimizer.step()


def test_parameters_of_any_shape_are_packed(device: str) -> None:
    shapes: list[tuple[int, ...]] = [(), (0, 3), (2, 1, 3), (3, 1)]
    params = [xgrad.full(shape, 2.0, device=device, requires_grad=True) for shape in shapes]
    optimizer = optim.Adam(params, lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        sum(mse_loss(p, xgrad.zeros_like(p), reduction="sum") for p in params).backward()
        optimizer.step()
    for p, shape in zip(params, shapes, strict=True):
        assert p.shape == shape
        np.testing.assert_allclose(p.detach().cpu().numpy(), np.full(shape, 1.8), atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arrays_with_rows_of_16_bytes_begin_at_multiples_of_16_bytes(dtype: str) -> None:
    shapes = [
        (10,),
        (5, 3),
        (8, 3),
        (3,),
        (4, 7),
        (),
        (0, 3),
        (2, 5),
        (16, 2, 3, 3),
        (6,),
        (24, 9),
        (12, 5),
    ]
    layout = BufferLayout(shapes, xgrad.Device("cpu").placements[np.dtype(dtype)])
    buffer, sizes = layout.empty(), [int(np.prod(shape)) for shape in shapes]
    views = layout.views(buffer)
    for i, view in enumerate(views):
        view[...] = i
    assert np.bincount(buffer.astype(int)).tolist() == sizes  # no gaps, and nothing twice
    for view, shape in zip(views, shapes, strict=True):
        row = shape[0] if len(shape) == 2 else view.size
        assert row * view.itemsize % 16 or (view.ctypes.data - buffer.ctypes.data) % 16 == 0


# Changes of groups, values and state between steps


def test_groups_are_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (xgrad.Tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    packed, pack = [], optim.Optimizer._pack
    monkeypatch.setattr(
        optim.Optimizer, "_pack", lambda self, group: packed.append(group) or pack(self, group)
    )
    optimizer = optim.Adam([{"params": [first]}, {"params": [second]}])
    for _ in range(3):
        (first * second).sum().backward()
        optimizer.step()
    assert packed == optimizer.param_groups


def test_edited_groups_keep_the_state_of_parameters() -> None:
    a, b, c = (xgrad.ones(2, requires_grad=True) for _ in range(3))
    optimizer = optim.Adam([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)

    def step() -> list[float]:
        for p in (a, b, c):
            p.grad = xgrad.ones(2)
        optimizer.step()
        return [round(p.detach()[0].item(), 4) for p in (a, b, c)]

    assert step() == [0.9, 0.5, 1.0]
    optimizer.param_groups[0]["params"].append(c)
    assert step() == [0.8, 0.0, 0.9]
    optimizer.param_groups[0]["params"] = [c]
    assert step() == [0.8, -0.5, 0.8]
    del optimizer.param_groups[0]
    assert step() == [0.8, -1.0, 0.8]
    assert optimizer.state[b]["step"] == 4 and optimizer.state[c]["step"] == 2
    optimizer.param_groups.append({**optimizer.defaults, "params": [a]})
    assert step() == [0.7, -1.5, 0.8]
    assert optimizer.state[a]["step"] == 3


def test_parameter_may_change_its_dtype_and_change_it_back() -> None:
    w = xgrad.ones((2, 2), requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5)
    for turn in range(2):
        optimizer.zero_grad()
        w.sum().backward()
        if turn:
            saved = w.detach()
            w.data = saved.astype(xgrad.float64)
            w.data = saved
        optimizer.step()
    assert w.tolist() == [[0, 0], [0, 0]]


def halve_data(p: Any) -> None:
    p.data = p.data * 0.5


def halve_in_place(p: Any) -> None:
    with xgrad.no_grad():
        p *= 0.5


def assign_row(p: Any) -> None:
    with xgrad.no_grad():
        p[0] = 0.5


@pytest.mark.parametrize("assign", [halve_data, halve_in_place, assign_row])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_parameter_assigned_before_an_update_is_updated_in_its_buffer(
    name: str, assign: Callable[[Any], None]
) -> None:
    results = []
    for kind in ("eager", "captured", "unpacked"):
        model, optimizer = trained(name)

        def step(x: Tensor, model: Any = model, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            model(x).sum().backward()
            assign(model[0].weight)
            optimizer.step()

        call: Any = xgrad.capture(step) if kind == "captured" else step
        buffer = id(model[0].weight._data.base)
        for seed in range(5):
            if kind == "unpacked":
                optimizer.load_state_dict(optimizer.state_dict())
            call(xgrad.asarray(np.random.default_rng(seed).normal(size=(6, 5)).astype(np.float32)))
        assert kind == "unpacked" or id(model[0].weight._data.base) == buffer
        assert kind != "captured" or call.recordings == 2  # without and with gradients before
        results.append(values(model))
    assert_equal(results[0], results[1])
    assert_equal(results[0], results[2])


@pytest.mark.parametrize("other", [False, True])
def test_detached_parameter_follows_an_assigned_value_which_stays_as_it_is(other: bool) -> None:
    model, optimizer = trained()
    loss_of(model).backward()
    p = model[0].weight
    held = p.detach()
    value = model[2].weight.detach()[:1, :].mT * xgrad.ones((4, 5)) if other else p.data * 0.5
    expected = value.numpy().copy()
    p.data = value
    np.testing.assert_array_equal(held.numpy(), expected)
    optimizer.step()
    np.testing.assert_array_equal(held.numpy(), p.detach().numpy())
    np.testing.assert_array_equal(value.numpy(), expected)


# Update rules of users


def custom(update: Callable[..., Any], elementwise: bool) -> type[Any]:
    """Return a class of optimizers with a rule, given ``(xp, p, g, state)``."""

    class Custom(optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})

        def update(self, xp: Any, p: Any, g: Any, state: Any, options: Any) -> Any:
            return update(xp, p, g, state)

    Custom.elementwise = elementwise
    return Custom


def test_rule_for_whole_parameters_may_keep_state_of_another_shape() -> None:
    def normalized(xp: Any, p: Any, g: Any, state: Any) -> Any:
        state["rows"] = state.get("rows", 0) + xp.sum(g, axis=tuple(range(1, len(g.shape))))
        return p - 0.1 * g / xp.sqrt(xp.sum(g * g))

    xgrad.manual_seed(0)
    model = nn.MLP(SIZES)
    optimizer = custom(normalized, False)(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        loss_of(model).backward()
        expected = [
            p - 0.1 * g / np.linalg.norm(g)
            for p, g in zip(values(model), gradients(model), strict=True)
        ]
        optimizer.step()
        assert_equal(values(model), expected, rtol=1e-6)
    model[0].weight.grad = None
    optimizer.step()
    assert optimizer.state[model[0].weight]["rows"].shape == (4,)


@pytest.mark.parametrize("size", [3, 200_000])
@pytest.mark.parametrize(
    ("result", "got"),
    [
        (lambda p: None, "None"),
        (lambda p: p.sum(), r"shape \(\)"),
        (lambda p: p.astype("f8"), "float64"),
    ],
)
def test_rule_that_returns_no_parameter_is_refused(
    result: Callable[[Any], Any], got: str, size: int
) -> None:
    w = xgrad.ones(size, requires_grad=True)
    w.sum().backward()
    with pytest.raises(
        TypeError, match=rf"Custom\.update: expected an array of shape .*, float32, got .*{got}"
    ):
        custom(lambda xp, p, g, state: result(p), True)([w]).step()
    assert np.all(w.detach().numpy() == 1)


@pytest.mark.parametrize("size", [3, 200_000])
def test_rule_may_keep_its_arguments_and_replace_and_delete_state(size: int) -> None:
    def rule(xp: Any, p: Any, g: Any, state: Any) -> Any:
        new = p + (g - state["before"]) if isinstance(state.get("before", 0), np.ndarray) else p + 0
        turns = state.get("turns", [])
        state["before"] = g if turns else 0.0
        state["turns"] = [*turns, 1]
        if "once" in state:
            del state["once"]
        elif not turns:
            state["once"] = p
        return new

    w = xgrad.zeros(size, requires_grad=True)
    optimizer = custom(rule, True)([w])
    for factor in (1.0, 3.0, 7.0, 8.0):
        optimizer.zero_grad()
        (factor * w).sum().backward()
        optimizer.step()
    assert set(w.tolist()) == {4.0 + 1.0}
    state = optimizer.state[w]
    assert state["turns"] == [1] * 4 and "once" not in state and state["before"].shape == (size,)
