"""That parameters and gradients lie side by side in buffers is to be noticed by nobody but the clock."""

import copy
import pickle
import random
import threading

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim
from xgrad.nn.functional import cross_entropy, mse_loss

SIZES = [5, 4, 3]


def model_and_optimizer(name="SGD", device="cpu", **options):
    xgrad.manual_seed(0)
    model = nn.MLP(SIZES, device=device)
    return model, getattr(optim, name)(model.parameters(), **({"lr": 0.1} | options))


def batch(device="cpu", seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(6, 5)).astype(np.float32), rng.integers(0, 3, 6)
    return xgrad.asarray(x, device=device), xgrad.asarray(y, device=device)


def backward(model, device="cpu", seed=0):
    x, y = batch(device, seed)
    cross_entropy(model(x), y).backward()


def train(model, optimizer, steps=1, device="cpu"):
    for seed in range(steps):
        optimizer.zero_grad()
        backward(model, device, seed)
        optimizer.step()


def values(model):
    return [p.detach().cpu().numpy().copy() for p in model.parameters()]


def memory(model):
    """Return where the parameters of a model on the CPU lie."""
    return [p._data.__array_interface__["data"][0] for p in model.parameters()]


def test_parameters_and_gradients_lie_in_one_buffer_each_and_stay_there():
    model, optimizer = model_and_optimizer()
    train(model, optimizer)
    first, buffers = memory(model), {id(p._data.base) for p in model.parameters()}
    train(model, optimizer, 3)
    assert memory(model) == first and len(buffers) == 1
    assert len({id(p._leaf.grad._data.base) for p in model.parameters()}) == 1


@pytest.mark.parametrize(
    "look",
    [
        lambda p: p.detach(),
        lambda p: p.data.detach(),
        lambda p: p.detach().cpu().numpy(),
        lambda p: p.detach()[1:, :],
        lambda p: p[0, 1],
        lambda p: np.asarray(p.detach().cpu())[::2],
        lambda p: memoryview(p.detach().cpu().numpy()),
    ],
)
def test_what_somebody_took_of_a_parameter_keeps_its_value(look, device):
    model, optimizer = model_and_optimizer(device=device)
    train(model, optimizer, 1, device)
    taken = look(model[0].weight)
    before = np.array(taken.detach().cpu() if isinstance(taken, xgrad.Tensor) else taken)
    weight = model[0].weight.detach().cpu().numpy().copy()
    train(model, optimizer, 3, device)
    assert not np.array_equal(weight, model[0].weight.detach().cpu().numpy())
    after = np.array(taken.detach().cpu() if isinstance(taken, xgrad.Tensor) else taken)
    np.testing.assert_array_equal(after, before)


VIEWS = [
    lambda p: p.data,
    lambda p: p.T,
    lambda p: p[0, :],
    lambda p: p.reshape(-1),
    lambda p: p.T.mT[1:, ...],
    lambda p: p.data[0, :].data,
]


@pytest.mark.parametrize("look", VIEWS)
def test_views_of_a_parameter_follow_it_without_a_copy(look, device):
    model, optimizer = model_and_optimizer(device=device)
    train(model, optimizer, 1, device)
    p = model[0].weight
    view, buffer = look(p), id(p._data.base) if device == "cpu" else None
    kept = p.data  # else nothing holds what .data[0, :] is a view of
    before = view.tolist()
    train(model, optimizer, 3, device)
    assert view.tolist() == look(p).tolist() != before and kept.tolist() == p.tolist()
    assert device != "cpu" or id(p._data.base) == buffer


def test_a_state_dict_is_a_snapshot():
    model, optimizer = model_and_optimizer()
    train(model, optimizer)
    best, expected = model.state_dict(), values(model)
    train(model, optimizer, 5)
    for kept, value in zip(best.values(), expected, strict=True):
        np.testing.assert_array_equal(kept.numpy(), value)
    model.load_state_dict(best)
    for now, value in zip(values(model), expected, strict=True):
        np.testing.assert_array_equal(now, value)
    reference, other = model_and_optimizer()
    reference.load_state_dict(dict(zip(best, expected, strict=True)))
    train(model, optimizer, 2)
    train(reference, other, 2)
    for now, value in zip(values(model), values(reference), strict=True):
        np.testing.assert_array_equal(now, value)


def test_a_graph_that_was_not_walked_keeps_the_values_it_saw_and_refuses_to_use_them():
    model, optimizer = model_and_optimizer()
    train(model, optimizer)
    x, y = batch()
    kept = cross_entropy(model(x), y)
    train(model, optimizer)
    with pytest.raises(RuntimeError, match="needs the value that its 'weight'"):
        kept.backward()


def test_a_gradient_that_somebody_looked_at_is_theirs(device):
    model, optimizer = model_and_optimizer(device=device)
    train(model, optimizer, 1, device)
    history, expected = [], []
    for seed in range(3):
        optimizer.zero_grad()
        backward(model, device, seed)
        history.append(model[0].weight.grad)
        expected.append(history[-1].cpu().numpy().copy())
        backward(model, device, seed + 1)  # adds to what was looked at
    for kept, value in zip(history, expected, strict=True):
        np.testing.assert_array_equal(kept.cpu().numpy(), value)
    assert len({value.tobytes() for value in expected}) == 3


def test_gradients_add_up_over_passes(device):
    model, optimizer = model_and_optimizer(device=device)
    train(model, optimizer, 1, device)
    optimizer.zero_grad()
    backward(model, device, 1)
    once = [p.grad.cpu().numpy().copy() for p in model.parameters()]
    optimizer.zero_grad()
    backward(model, device, 1)
    backward(model, device, 1)
    for p, g in zip(model.parameters(), once, strict=True):
        np.testing.assert_allclose(p.grad.cpu().numpy(), 2 * g, rtol=1e-6)


def test_zeroed_gradients_stay_and_are_zero():
    model, optimizer = model_and_optimizer()
    train(model, optimizer)
    optimizer.zero_grad(set_to_none=False)
    assert all(not np.any(p.grad.numpy()) for p in model.parameters())
    backward(model, seed=1)
    fresh, _ = model_and_optimizer()
    fresh.load_state_dict(model.state_dict())
    backward(fresh, seed=1)
    for p, q in zip(model.parameters(), fresh.parameters(), strict=True):
        np.testing.assert_array_equal(p.grad.numpy(), q.grad.numpy())


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_pieces_change_no_bit(name, monkeypatch):
    options = {"momentum": 0.9} if name == "SGD" else {"amsgrad": True}
    results = []
    for piece in (None, 7, 10**6):
        monkeypatch.setattr(xgrad.Device("cpu").backend, "tile_size", piece)
        model, optimizer = model_and_optimizer(name, weight_decay=0.01, **options)
        train(model, optimizer, 4)
        results.append(values(model) + [v.numpy() for s in optimizer.state_dict()["state"].values()
                                        for v in s.values() if isinstance(v, xgrad.Tensor)])  # fmt: skip
    for other in results[1:]:
        assert len(other) == len(results[0])
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("seed", range(6))
def test_as_pytorch_whatever_happens_between_steps(name, seed, torch):
    random.seed(seed)
    model, optimizer = model_and_optimizer(name, lr=0.05, weight_decay=0.01)
    params = [xgrad.Tensor(p.detach().numpy().astype(np.float64), requires_grad=True) for p in model.parameters()]
    theirs = [torch.tensor(p.detach().numpy(), requires_grad=True) for p in params]
    optimizer = getattr(optim, name)(params, lr=0.05, weight_decay=0.01)
    other = getattr(torch.optim, name)(theirs, lr=0.05, weight_decay=0.01)
    kept = []
    for turn in range(40):
        event = random.choice(
            ["one", "hand", "skip", "data", "look", "save", "pickle", "freeze", "all", "all", "twice"]
        )
        chosen = range(len(params)) if event != "one" else random.sample(range(len(params)), 2)
        for _ in range(2 if event == "twice" else 1):
            loss = sum(((params[i] * params[i]) * (i + turn % 3)).sum() for i in chosen)
            loss.backward()
            sum(((theirs[i] * theirs[i]) * (i + turn % 3)).sum() for i in chosen).backward()
        i = random.randrange(len(params))
        if event == "hand":
            params[i].grad, theirs[i].grad = xgrad.ones_like(params[i].detach()), torch.ones_like(theirs[i])
        elif event == "skip":
            params[i].grad = theirs[i].grad = None
        elif event == "data":
            params[i].data = params[i].data * 2
            theirs[i].data = theirs[i].data * 2
        elif event == "look":
            kept.append((params[i].detach(), params[i].detach().numpy().copy()))
            if params[i].grad is not None:
                kept.append((params[i].grad, params[i].grad.numpy().copy()))
        elif event == "save":
            optimizer.load_state_dict(optimizer.state_dict())
        elif event == "pickle":
            optimizer, params = pickle.loads(pickle.dumps((optimizer, params)))  # without gradients
            for p, t in zip(params, theirs, strict=True):
                p.grad = None if t.grad is None else xgrad.asarray(t.grad.numpy().copy())
        elif event == "freeze":
            params[i].requires_grad_(False).requires_grad_(True)
        optimizer.step()
        other.step()
        if random.random() < 0.8:
            optimizer.zero_grad()
            other.zero_grad()
        for p, t in zip(params, theirs, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), t.detach().numpy(), rtol=1e-9, atol=1e-12)
    for tensor, value in kept:
        np.testing.assert_array_equal(tensor.numpy(), value)


def test_parameters_follow_to_another_dtype():
    model, optimizer = model_and_optimizer("Adam")
    train(model, optimizer)
    model.to(xgrad.float64)
    x, y = batch()
    optimizer.zero_grad()
    cross_entropy(model(x.astype(xgrad.float64)), y).backward()
    assert {p.grad.dtype for p in model.parameters()} == {xgrad.float64}
    optimizer.step()
    assert {p.dtype for p in model.parameters()} == {xgrad.float64}


def test_two_optimizers_may_take_turns():
    model, one = model_and_optimizer()
    two = optim.SGD(model.parameters(), lr=0.1)
    reference, alone = model_and_optimizer()
    for turn in range(4):
        train(model, (one, two)[turn % 2])
        train(reference, alone)
    for a, b in zip(values(model), values(reference), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_copy_of_an_optimizer_goes_its_own_way():
    model, optimizer = model_and_optimizer("Adam")
    train(model, optimizer, 2)
    twin, other = copy.deepcopy((model, optimizer))
    before = values(model)
    train(twin, other, 2)
    for a, b in zip(values(model), before, strict=True):
        np.testing.assert_array_equal(a, b)
    train(model, optimizer, 2)
    for a, b in zip(values(model), values(twin), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_remembered_can_be_looked_at_and_not_replaced():
    model, optimizer = model_and_optimizer("Adam")
    train(model, optimizer)
    state = optimizer.state[model[0].weight]
    assert state["step"] == 1 and state["exp_avg"].shape == model[0].weight.shape
    with pytest.raises(TypeError):
        state["step"] = 5


def test_a_rule_that_needs_whole_parameters_gets_them():
    class Normalized(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def update(self, xp, p, g, state, options):
            state["seen"] = xp.asarray(g, copy=True)
            return p - options["lr"] * g / xp.sqrt(xp.sum(g * g))

    xgrad.manual_seed(0)
    model = nn.MLP(SIZES)
    optimizer = Normalized(model.parameters(), 0.1)
    backward(model)
    expected = [p.detach().numpy() - 0.1 * (g := p.grad.numpy()) / np.linalg.norm(g) for p in model.parameters()]
    optimizer.step()
    for a, b in zip(values(model), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert optimizer.state[model[0].weight]["seen"].shape == (4, 5)


# Rules that write where the gradient is to be


def test_a_weight_that_is_used_twice_or_has_a_hook(device):
    def gradient(with_optimizer, hook):
        xgrad.manual_seed(0)
        layer = nn.Linear(4, 4, device=device)
        optimizer = optim.SGD(layer.parameters(), lr=0.1)
        x = xgrad.asarray(np.arange(8, dtype=np.float32).reshape(2, 4), device=device)
        if with_optimizer:
            (0 * layer(x)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        if hook:
            layer.weight.register_hook(lambda g: 2 * g)
        (layer(layer(x)) + x @ layer.weight).sum().backward()
        return layer.weight.grad.cpu().numpy()

    for hook in (False, True):
        np.testing.assert_allclose(gradient(True, hook), gradient(False, hook), rtol=1e-6)


def test_gradients_on_request_leave_the_buffer_alone():
    model, optimizer = model_and_optimizer()
    train(model, optimizer)
    optimizer.zero_grad()
    backward(model)
    before = [p._leaf.grad.numpy().copy() for p in model.parameters()]
    x, y = batch(seed=3)
    xgrad.autograd.grad(cross_entropy(model(x), y), list(model.parameters()))
    for p, value in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p._leaf.grad.numpy(), value)


def test_a_pass_that_fails_leaves_the_place_free():
    model, optimizer = model_and_optimizer()
    train(model, optimizer)
    optimizer.zero_grad()

    class Fails(xgrad.Function):
        @staticmethod
        def forward(xp, x):
            return x * 1

        @staticmethod
        def backward(xp, g):
            raise ArithmeticError("no")

    x, y = batch()
    hidden = Fails()(model[0](x))
    with pytest.raises(ArithmeticError):
        cross_entropy(model[2](hidden), y).backward()
    assert all(p.grad is None for p in model.parameters())
    assert not any(p._leaf.slot.reserved for p in model.parameters())


def test_threads_that_share_parameters_add_up():
    model, optimizer = model_and_optimizer()
    train(model, optimizer)
    for _ in range(20):
        optimizer.zero_grad()
        threads = [threading.Thread(target=backward, args=(model, "cpu", seed)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        together = [p.grad.numpy().copy() for p in model.parameters()]
        optimizer.zero_grad()
        for seed in range(4):
            backward(model, "cpu", seed)
        for p, g in zip(model.parameters(), together, strict=True):
            np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-4, atol=1e-6)


def test_clipping_one_buffer_is_clipping_many():
    clipped = []
    for look in (False, True):
        model, optimizer = model_and_optimizer()
        train(model, optimizer)
        optimizer.zero_grad()
        backward(model)
        if look:
            assert model[0].weight.grad is not None
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        clipped.append([norm.item(), *(p.grad.numpy() for p in model.parameters())])
    assert clipped[0][0] > 0.05
    for a, b in zip(*clipped, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_odd_parameters(device):
    params = [
        xgrad.Tensor(2.0, device=device, requires_grad=True),
        xgrad.zeros((0, 3), device=device, requires_grad=True),
        xgrad.ones((2, 1, 3), device=device, requires_grad=True),
        xgrad.ones((3, 1), device=device, requires_grad=True),
    ]
    optimizer = optim.Adam(params, lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        sum(mse_loss(p, xgrad.zeros_like(p), reduction="sum") for p in params).backward()
        optimizer.step()
    assert [p.shape for p in params] == [(), (0, 3), (2, 1, 3), (3, 1)]
    assert params[0].item() == pytest.approx(1.8, abs=1e-3)


def test_a_hook_may_keep_the_gradients_that_it_is_given(device):
    p = xgrad.Tensor([[1.0]], device=device, requires_grad=True)
    x = xgrad.asarray([[5.0]], device=device)
    optimizer = optim.SGD([p], lr=0.0)
    kept = []
    p.register_hook(kept.append)
    for turn in range(4):
        optimizer.zero_grad()
        (nn.functional.linear(x, p) * (turn + 1)).sum().backward()
        optimizer.step()
    assert [g.item() for g in kept] == [5, 10, 15, 20]


# What users do to groups and state


def test_groups_are_laid_out_once(monkeypatch):
    first, second = (xgrad.Tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    optimizer = optim.Adam([{"params": [first]}, {"params": [second]}])
    calls, lay = [], optim.Optimizer._lay
    monkeypatch.setattr(optim.Optimizer, "_lay", lambda self, group: calls.append(group) or lay(self, group))
    for _ in range(3):
        (first * second).sum().backward()
        optimizer.step()
    assert calls == optimizer.param_groups


def test_groups_may_be_edited_between_steps():
    a, b, c = (xgrad.ones(2, requires_grad=True) for _ in range(3))
    optimizer = optim.Adam([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)

    def step():
        optimizer.zero_grad()
        c.grad = None
        (a.sum() + b.sum() + c.sum()).backward()
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


def test_values_that_went_to_another_dtype_and_back():
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


@pytest.mark.parametrize("size", [3, 200_000])
def test_a_rule_that_returns_what_is_no_parameter_is_refused(size):
    class Bad(optim.Optimizer):
        elementwise = True

        def __init__(self, params, result):
            super().__init__(params, {"result": result})

        def update(self, xp, p, g, state, options):
            return options["result"](p)

    for result, got in ((lambda p: None, "None"), (lambda p: p.sum(), r"shape \(\)"), (lambda p: p * 1.0, None),
                        (lambda p: p.astype("f8"), "float64")):  # fmt: skip
        w = xgrad.ones(size, requires_grad=True)
        optimizer = Bad([w], result)
        w.sum().backward()
        if got is None:
            optimizer.step()
        else:
            with pytest.raises(TypeError, match=rf"Bad\.update: expected an array of shape .*, float32, got .*{got}"):
                optimizer.step()
        assert np.all(w.detach().numpy() == 1)


@pytest.mark.parametrize("size", [3, 200_000])
def test_a_rule_may_remember_what_it_was_given_and_change_its_mind(size):
    class Difference(optim.Optimizer):
        elementwise = True

        def __init__(self, params):
            super().__init__(params, {})

        def update(self, xp, p, g, state, options):
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
    optimizer = Difference([w])
    for factor in (1.0, 3.0, 7.0, 8.0):
        optimizer.zero_grad()
        (factor * w).sum().backward()
        optimizer.step()
    assert set(w.tolist()) == {4.0 + 1.0}
    state = optimizer.state[w]
    assert state["turns"] == [1] * 4 and "once" not in state and state["before"].shape == (size,)


def test_a_rule_for_whole_parameters_may_remember_other_shapes():
    class Rows(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def update(self, xp, p, g, state, options):
            state["rows"] = state.get("rows", 0) + xp.sum(g, axis=tuple(range(1, len(g.shape))))
            return p - 0.1 * g

    model = nn.MLP(SIZES)
    optimizer = Rows(model.parameters())
    train(model, optimizer, 2)
    model[0].weight.grad = None
    optimizer.step()
    assert optimizer.state[model[0].weight]["rows"].shape == (4,)


def test_weights_that_are_written_to_between_steps():
    model, optimizer = model_and_optimizer()
    reference, other = model_and_optimizer()
    for seed in range(4):
        for net, opt in ((model, optimizer), (reference, other)):
            opt.zero_grad()
            backward(net, seed=seed)
            opt.step()
        kept = [p.detach() for p in model.parameters()]
        expected = values(model)
        with xgrad.no_grad():
            for p in model.parameters():
                p *= 0.5
        reference.load_state_dict({name: p.detach() * 0.5 for name, p in reference.named_parameters()})
        for tensor, value in zip(kept, expected, strict=True):
            np.testing.assert_array_equal(tensor.numpy(), value)
    for a, b in zip(values(model), values(reference), strict=True):
        np.testing.assert_array_equal(a, b)


def test_clipping_counts_a_tensor_that_is_given_twice_as_before():
    w = xgrad.ones(4, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.0)
    norms = []
    for _ in range(2):
        optimizer.zero_grad()
        w.sum().backward()
        norms.append(nn.utils.clip_grad_norm_([w, w], 100.0).item())
        optimizer.step()
    assert norms[0] == norms[1] == pytest.approx(8**0.5)
