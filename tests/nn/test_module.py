"""Modules: registration of parameters, buffers and submodules, and operations on all of them.

Representations and states with shared tensors are compared with PyTorch.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import xgrad
from xgrad import nn


class Norm(nn.Module):
    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        self.scale = nn.Parameter(xgrad.ones(3, device=device))
        self.register_buffer("mean", xgrad.zeros(3, device=device))
        self.register_buffer("count", xgrad.asarray(0, device=device))
        self.register_buffer("absent", None)

    def forward(self, x: xgrad.Tensor) -> xgrad.Tensor:
        if self.training:
            self.mean = 0.5 * self.mean + 0.5 * x.detach().mean(axis=0)
            self.count = self.count + 1
        return (x - self.mean) * self.scale


class Net(nn.Module):
    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3, device=device), Norm(device))
        self.head = nn.Linear(3, 2, bias=False, device=device)
        self.offset = nn.Parameter(xgrad.zeros(2, device=device))
        self.plain = xgrad.ones(2)

    def forward(self, x: xgrad.Tensor) -> xgrad.Tensor:
        return self.head(self.body(x)) + self.offset


PARAMETERS = ["offset", "body.0.weight", "body.0.bias", "body.1.scale", "head.weight"]
BUFFERS = ["body.1.mean", "body.1.count"]
STATE = [*PARAMETERS[:4], *BUFFERS, "head.weight"]


def values(module: nn.Module) -> dict[str, list]:
    return {name: x.tolist() for name, x in module.state_dict().items()}


def test_parameters_buffers_and_modules_are_found_in_order():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == PARAMETERS
    assert all(a is b for a, (_, b) in zip(net.parameters(), net.named_parameters(), strict=True))
    assert [name for name, _ in net.named_buffers()] == BUFFERS
    assert [x.shape for x in net.buffers()] == [(3,), ()]
    assert [name for name, _ in net.named_modules()] == ["", "body", "body.0", "body.1", "head"]
    assert [type(m).__name__ for m in net.modules()] == [
        "Net",
        "Sequential",
        "Linear",
        "Norm",
        "Linear",
    ]
    assert [name for name, _ in net.named_children()] == ["body", "head"]
    assert list(net.children()) == [net.body, net.head]
    assert list(net.state_dict()) == STATE


def test_shared_parameters_and_modules_appear_once():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.b.weight = self.a.weight
            self.again = self.a
            self.a.register_buffer("seen", xgrad.zeros(1))
            self.b.register_buffer("seen", self.a.seen)

    tied = Tied()
    assert [name for name, _ in tied.named_parameters()] == ["a.weight", "a.bias", "b.bias"]
    assert [name for name, _ in tied.named_buffers()] == ["a.seen"]
    assert [name for name, _ in tied.named_modules()] == ["", "a", "b"]
    assert list(tied.children()) == [tied.a, tied.b]
    assert list(tied.state_dict()) == ["a.weight", "a.bias", "a.seen", "b.bias"]
    twin = Tied()
    twin.load_state_dict(tied.state_dict())
    assert twin.b.weight is twin.a.weight
    assert values(twin) == values(tied)
    assert (clone := copy.deepcopy(tied)).b.weight is clone.a.weight


def test_cycles_of_modules_end():
    net = Net()
    net.head.register_buffer("x", xgrad.ones(1))
    object.__setattr__(net.head, "parent", net)
    assert len(list(net.modules())) == 5
    assert list(net.to("cpu", xgrad.float64).state_dict())[-1] == "head.x"


def test_replaced_and_deleted_attributes_change_the_state():
    net = Net()
    net.head = nn.Identity()
    net.offset = nn.Parameter([1.0])
    net.body[1].mean = xgrad.ones(3)
    del net.body[1].count
    assert list(net.state_dict()) == ["offset", *PARAMETERS[1:4], "body.1.mean"]
    net.offset = None
    assert "offset" not in net.state_dict()
    net.offset = nn.Parameter([1.0])
    net.offset.data = xgrad.asarray([2.0])
    assert net.state_dict()["offset"].tolist() == [2]


def test_training_mode_is_set_for_all_modules():
    net = Net()
    assert net.training
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    assert net.train() is net
    assert all(m.training for m in net.modules())
    net.train(False)
    net(xgrad.ones((4, 3)))
    assert net.body[1].count.item() == 0
    net.train()(xgrad.ones((4, 3)))
    assert net.body[1].count.item() == 1


def test_gradients_are_cleared_and_required_for_all_parameters(device):
    net = Net(device)
    net(xgrad.ones((4, 3), device=device)).sum().backward()
    assert all(p.grad is not None and str(p.grad.device) == device for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert net.requires_grad_(False) is net
    assert not net(xgrad.ones((4, 3), device=device)).requires_grad
    net.zero_grad()
    assert all(p.requires_grad for p in net.requires_grad_().parameters())


def test_apply_calls_inner_modules_first():
    seen = []
    net = Net()
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Linear", "Norm", "Sequential", "Linear", "Net"]
    net.apply(
        lambda module: nn.init.zeros_(module.weight) if isinstance(module, nn.Linear) else None
    )
    assert not np.any(net.head.weight.tolist())


def test_state_dict_is_a_snapshot(device):
    net = Net(device)
    before = net.state_dict()
    kept = {name: x.tolist() for name, x in before.items()}
    assert not any(x.requires_grad or isinstance(x, nn.Parameter) for x in before.values())
    optimizers = [xgrad.optim.SGD(net.parameters(), lr=0.1), xgrad.optim.Adam(net.parameters())]
    for optimizer in optimizers:
        net(xgrad.ones((4, 3), device=device)).sum().backward()
        optimizer.step()
    with xgrad.no_grad():
        net.offset[0] = 7.0
    assert kept == {name: x.tolist() for name, x in before.items()}
    assert kept != values(net)
    assert net.load_state_dict(before) == ([], [])
    assert kept == values(net)


def test_state_survives_a_file(device, tmp_path):
    net, other = Net(device), Net()
    net(xgrad.ones((4, 3), device=device))
    xgrad.save(net.state_dict(), tmp_path / "net")
    parameters = list(other.parameters())
    other.load_state_dict(xgrad.load(tmp_path / "net", device=device))
    assert values(other) == values(net)
    assert all(a is b for a, b in zip(parameters, other.parameters(), strict=True))
    assert {str(x.device) for x in other.state_dict().values()} == {"cpu"}


def test_loaded_values_take_dtype_and_device(device):
    net = nn.Linear(2, 2, device=device)
    state = {"weight": np.ones((2, 2)), "bias": xgrad.asarray([1, 2])}
    net.load_state_dict(state)
    state["weight"][:] = 7
    assert net.weight.tolist() == [[1, 1], [1, 1]]
    assert net.bias.tolist() == [1, 2]
    assert net.weight.dtype == net.bias.dtype == xgrad.float32
    assert str(net.weight.device) == str(net.bias.device) == device
    assert net.weight.requires_grad
    assert net.weight.is_leaf


def test_state_that_does_not_match_is_refused_and_changes_nothing():
    net = Net()
    before = values(net)
    state = {name: xgrad.asarray(np.full(x.shape, 9.0)) for name, x in net.state_dict().items()}
    state["haed.weight"] = state.pop("head.weight")
    state["body.0.weight"] = xgrad.ones((3, 4))
    state["offset"] = xgrad.ones(2, dtype=xgrad.complex64)
    del state["body.1.scale"]
    state["body.1.count"] = xgrad.asarray(3)
    with pytest.raises(ValueError, match="load_state_dict") as caught:
        net.load_state_dict(state)
    assert str(caught.value).splitlines() == [
        "Net.load_state_dict: nothing was loaded, because of",
        "  'body.1.scale': missing",
        "  'head.weight': missing",
        "  'haed.weight': unexpected, the nearest is 'head.weight'",
        "  'offset': expected float32, got complex64",
        "  'body.0.weight': expected shape (3, 3), got (3, 4)",
    ]
    with pytest.raises(ValueError, match=r"expected shape \(3, 3\), got \(3, 4\)"):
        net.load_state_dict(state, strict=False)
    with pytest.raises(
        TypeError, match=r"Net.load_state_dict: expected a tensor for 'offset': .*str"
    ):
        net.load_state_dict({**net.state_dict(), "offset": "x"})
    with pytest.raises(
        TypeError, match=r"expected a mapping of names to tensors, got str: .*xgrad\.load"
    ):
        net.load_state_dict("file")
    assert values(net) == before


def test_partial_state_is_loaded_unless_strict():
    net = Net()
    result = net.load_state_dict({"offset": xgrad.ones(2), "more": xgrad.ones(1)}, strict=False)
    assert result.unexpected_keys == ["more"]
    assert result.missing_keys == [name for name in STATE if name != "offset"]
    assert net.offset.tolist() == [1, 1]


def test_state_of_pytorch_with_each_name_of_a_shared_tensor_is_loaded(torch):
    def tied(library):
        class Tied(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = library.nn.Linear(2, 2), library.nn.Linear(2, 2, bias=False)
                self.b.weight = self.a.weight
                self.again = self.a

        return Tied()

    net, reference = tied(xgrad), tied(torch)
    state = {name: value.detach().numpy() for name, value in reference.state_dict().items()}
    assert set(state) == {"a.weight", "a.bias", "b.weight", "again.weight", "again.bias"}
    assert net.load_state_dict(state) == ([], [])
    assert net.b.weight is net.a.weight and net.a.weight.tolist() == state["a.weight"].tolist()
    net.load_state_dict({"b.weight": np.ones((2, 2)), "again.bias": np.ones(2)})
    assert values(net) == {"a.weight": [[1, 1], [1, 1]], "a.bias": [1, 1]}


def test_buffers_that_are_not_persistent_are_not_in_the_state():
    net = Net()
    net.body[0].register_buffer("mask", xgrad.ones(3), persistent=False)
    assert list(net.state_dict()) == STATE
    assert [name for name, _ in net.named_buffers()] == ["body.0.mask", *BUFFERS]
    assert net.to(xgrad.float64).body[0].mask.dtype == xgrad.float64
    with pytest.raises(ValueError, match=r"'body\.0\.mask': unexpected"):
        net.load_state_dict({**net.state_dict(), "body.0.mask": xgrad.ones(3)})
    twin = copy.deepcopy(net)
    twin.body[0].register_buffer("mask", xgrad.ones(3))
    assert "body.0.mask" in twin.state_dict() and "body.0.mask" not in net.state_dict()


def test_attribute_set_where_a_buffer_was_deleted_is_none():
    module = nn.Module()
    module.register_buffer("x", xgrad.zeros(1), persistent=False)
    del module.x
    module.x = xgrad.ones(1)
    assert list(module.buffers()) == []
    module.x = nn.Parameter([2.0])
    assert list(module.state_dict()) == ["x"]


def test_parameters_and_modules_are_registered_by_name():
    net = nn.Module()
    net.register_parameter("p", p := nn.Parameter(1.0))
    net.add_module("m", m := nn.Linear(2, 2))
    net.register_parameter("none", None)
    assert net.p is p and net.m is m and net.none is None
    assert [name for name, _ in net.named_parameters()] == ["p", "m.weight", "m.bias"]
    net.register_parameter("p", None)
    net.add_module("m", None)
    assert not list(net.parameters())


def test_submodules_are_found_by_path():
    net = Net()
    assert all(net.get_submodule(name) is module for name, module in net.named_modules())
    for path in ("nothing", "body.2", "offset", "body..0", "body.1.mean"):
        message = (
            "Net: expected the path of a module of ['', 'body', 'body.0', 'body.1', 'head'], got"
            f" '{path}'"
        )
        with pytest.raises(AttributeError) as caught:
            net.get_submodule(path)
        assert str(caught.value) == message


def test_dtypes_are_converted_by_name():
    net = Net()
    for name, dtype in (
        ("double", xgrad.float64),
        ("half", xgrad.float16),
        ("float", xgrad.float32),
    ):
        assert getattr(net, name)() is net
        assert {p.dtype for p in net.parameters()} == {dtype}
        assert [x.dtype for x in net.buffers()] == [dtype, xgrad.int64]


def test_to_keeps_parameters_and_moves_gradients(device):
    net = Net()
    net(xgrad.ones((4, 3))).sum().backward()
    before, parameters, buffers = values(net), list(net.parameters()), list(net.buffers())
    gradients = [p.grad.tolist() for p in parameters]
    assert net.to(device) is net
    assert all(
        a is b
        for a, b in zip(parameters + buffers, [*net.parameters(), *net.buffers()], strict=True)
    )
    assert {str(x.device) for x in [*parameters, *buffers, *(p.grad for p in parameters)]} == {
        device
    }
    assert [p.grad.tolist() for p in parameters] == gradients
    assert values(net) == before
    assert all(p.requires_grad and p.is_leaf for p in parameters)

    net.to(dtype=xgrad.float64)
    assert {x.dtype for p in parameters for x in (p, p.grad)} == {xgrad.float64}
    assert [x.dtype for x in net.buffers()] == [xgrad.float64, xgrad.int64]
    assert [p.grad.tolist() for p in parameters] == gradients
    net(xgrad.ones((4, 3), device=device, dtype=xgrad.float64)).sum().backward()
    assert parameters[0].grad.tolist() == [2 * g for g in gradients[0]]

    net.to("cpu", xgrad.float32)
    assert {(str(x.device), x.dtype) for x in parameters} == {("cpu", xgrad.float32)}
    assert all(p.grad is None for p in nn.Linear(2, 2).to("cpu", xgrad.float64).parameters())


def test_to_the_same_device_and_dtype_changes_nothing():
    net = Net()
    loss = net(xgrad.ones((4, 3))).sum()
    net.to("cpu", xgrad.float32)
    loss.backward()


def test_to_unknown_device_or_integer_dtype_is_refused():
    net = Net()
    with pytest.raises(xgrad.DeviceError, match="unknown device 'tpu'"):
        net.to("tpu")
    with pytest.raises(TypeError, match=r"Net.to: expected a floating dtype, got int32"):
        net.to(dtype=xgrad.int32)


@pytest.mark.parametrize(
    "twin", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"]
)
def test_copies_are_independent(twin, device):
    net = Net(device)
    net(xgrad.ones((4, 3), device=device)).sum().backward()
    net.eval()
    other = twin(net)
    assert values(other) == values(net)
    assert [type(x) for x in other.parameters()] == [nn.Parameter] * len(PARAMETERS)
    assert {str(x.device) for x in other.state_dict().values()} == {device}
    assert not other.training
    before = values(net)
    nn.init.zeros_(other.offset)
    other.train()(xgrad.ones((4, 3), device=device)).sum().backward()
    xgrad.optim.SGD(other.parameters(), lr=1.0).step()
    assert values(net) == before
    assert values(other) != before


def test_repr_shows_modules_and_extra_repr():
    assert (
        repr(Net()) == "Net(\n"
        "  (body): Sequential(\n"
        "    (0): Linear(in_features=3, out_features=3, bias=True)\n"
        "    (1): Norm()\n"
        "  )\n"
        "  (head): Linear(in_features=3, out_features=2, bias=False)\n"
        ")"
    )

    class Wordy(nn.Module):
        def extra_repr(self) -> str:
            return "one\ntwo"

    assert repr(Wordy()) == "Wordy(\n  one\n  two\n)"


def test_repr_matches_pytorch(torch):
    net, reference = (
        m.Sequential(m.Linear(2, 3), m.Sequential(m.ReLU(), m.Identity()), m.Tanh())
        for m in (nn, torch.nn)
    )
    assert repr(net) == repr(reference)


def test_attribute_before_init_is_refused():
    class Early(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter([1.0])

    with pytest.raises(
        AttributeError,
        match=r"Early: expected super\(\).__init__\(\) before .* got 'weight': call it",
    ):
        Early()


def test_invalid_attributes_and_buffers_are_refused():
    net = Net()
    with pytest.raises(
        TypeError,
        match=r"Net.offset: expected a Parameter or None for a parameter, got Tensor: .*\.data",
    ):
        net.offset = net.offset * 2
    with pytest.raises(
        TypeError, match=r"Norm.mean: expected a Tensor or None for a buffer, got list"
    ):
        net.body[1].mean = [1.0]
    for name in ("scale", "forward", "a.b", ""):
        with pytest.raises(
            ValueError, match="register_buffer: expected a name that is free and has no dot, got"
        ):
            net.body[1].register_buffer(name, xgrad.ones(1))
    for register in (net.register_parameter, net.add_module):
        with pytest.raises(
            ValueError,
            match=f"{register.__name__}: expected a name that is free and has no dot, got",
        ):
            register("plain", None)
        with pytest.raises(
            TypeError,
            match=f"{register.__name__}: expected a (Parameter|Module) or None, got Tensor",
        ):
            register("y", xgrad.ones(1))
    with pytest.raises(TypeError, match="expected a Tensor or None"):
        net.register_buffer("x", 1.0)
    net.register_buffer("x", xgrad.ones(1))
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        _ = net.nothing
    with pytest.raises(
        NotImplementedError, match="Module: expected a method forward, found none: define it"
    ):
        nn.Module()(1)


def test_parameter_is_a_leaf_whatever_it_is_made_of():
    source = xgrad.ones(2, requires_grad=True)
    p = nn.Parameter(source * 2)
    assert p.is_leaf
    assert p.requires_grad
    assert nn.Parameter(p, dtype=xgrad.float64, requires_grad=False).dtype == xgrad.float64
    assert not nn.Parameter([1, 2], requires_grad=False).requires_grad
    assert type(p * 2) is xgrad.Tensor
    with pytest.raises(TypeError, match="requires_grad: expected a floating"):
        nn.Parameter([1, 2])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: [nn.Linear(2, 2)], r"modules in a list, .*: use nn\.ModuleList"),
        (lambda: (nn.ReLU(), [nn.Linear(2, 2)]), "modules in a tuple"),
        (lambda: {"a": nn.Linear(2, 2)}, "modules in a dict"),
        (lambda: {"a": nn.Parameter(1.0)}, "parameters in a dict, .*: use an attribute for each"),
    ],
)
def test_unregistered_modules_in_a_container_warn(make, text):
    module = nn.Module()
    module.layers = make()
    net = nn.Sequential(module)
    for collect in (
        lambda: list(net.parameters()),
        net.state_dict,
        lambda: net.to(xgrad.float32),
        net.zero_grad,
    ):
        with pytest.warns(
            UserWarning, match=rf"Module\.layers: expected .* as attributes, got {text}"
        ) as caught:
            collect()
        assert caught[0].filename == __file__


def test_module_appended_to_an_attribute_warns():
    module = nn.Module()
    module.layers = []
    module.layers.append(nn.Linear(2, 2))
    with pytest.warns(UserWarning, match=r"Module\.layers: .*use nn\.ModuleList"):
        list(module.parameters())


def test_containers_of_registered_modules_do_not_warn():
    net = Net()
    net.both = (net.head, net.body)
    net.tied = {"w": net.head.weight}
    net.numbers = [1, 2.0]
    net.empty = []
    net.deep = [net.body[0]]
    net.layers = [nn.Linear(2, 2), nn.ReLU()]
    net.chain = nn.Sequential(*net.layers)
    net.to(xgrad.float32).state_dict()
