"""Weight norm, spectral norm and other parametrizations, compared with PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host
from xgrad import nn, optim
from xgrad.nn.utils import parametrizations, parametrize

LAYERS: list[tuple[str, tuple[Any, ...], tuple[int, ...], str]] = [
    ("Linear", (3, 2), (5, 3), "weight"),
    ("Conv2d", (2, 3, 3), (2, 2, 5, 5), "weight"),
    ("ConvTranspose1d", (2, 3, 3), (2, 2, 5), "weight"),
    ("LSTM", (3, 4), (5, 2, 3), "weight_hh_l0"),
]


def utils_of(library: Any, form: str) -> Any:
    """Return the module that has `weight_norm` and `spectral_norm`, in the old or new form."""
    return library.nn.utils.parametrizations if form == "new" else library.nn.utils


def twins(torch: Any, function: str, form: str, layer: Any, **options: Any) -> list[Any]:
    """Return normalized layers of both libraries with equal state."""
    name, args, _, weight = layer
    made = [
        getattr(utils_of(library, form), function)(
            getattr(library.nn, name)(*args).double(), weight, **options
        )
        for library in (xgrad, torch)
    ]
    assert list(made[0].state_dict()) == list(made[1].state_dict())
    made[1].load_state_dict({k: torch.tensor(v.numpy()) for k, v in made[0].state_dict().items()})
    return made


def gradients(library: Any, module: Any, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return an output, first gradients, and second gradients of all parameters."""
    leaf = library.asarray(x).requires_grad_() if library is xgrad else library.tensor(x)
    leaf.requires_grad_()
    out = module(leaf)
    out = out[0] if isinstance(out, tuple) else out
    named = dict(module.named_parameters())
    firsts = library.autograd.grad((out**3).sum(), [leaf, *named.values()], create_graph=True)
    for p in named.values():
        p.grad = None
    sum((g**2).sum() for g in firsts).backward()
    results = {"out": out, "x": leaf.grad} | {f"second {k}": p.grad for k, p in named.items()}
    results |= {f"first {k}": g for k, g in zip(("x", *named), firsts, strict=True)}
    return {k: v.detach().numpy() for k, v in results.items() if v is not None}


def check_equal(ours: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> None:
    for name, y in others.items():
        scale = max(1.0, float(np.abs(y).max()))
        np.testing.assert_allclose(ours[name], y, 1e-10, 1e-10 * scale, err_msg=name)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated:FutureWarning")  # of PyTorch
@pytest.mark.parametrize("form", ["new", "old"])
@pytest.mark.parametrize("layer", LAYERS, ids=[layer[0] for layer in LAYERS])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_matches_pytorch(form, layer, dim, torch):
    module, other = twins(torch, "weight_norm", form, layer, dim=dim)
    x = np.random.default_rng(0).normal(size=layer[2])
    expected = gradients(torch, other, x)
    # The second derivative of PyTorch's kernel for the first and the last axis is wrong: its own
    # gradgradcheck fails.
    seconds = {name for name in expected if name == "x" or name.startswith("second")}
    others = {k: v for k, v in expected.items() if k not in seconds}
    check_equal(gradients(xgrad, module, x), expected if dim is None else others)


@pytest.mark.parametrize("form", ["new", "old"])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_second_gradients_of_weight_norm_match_finite_differences(form, dim):
    layer = utils_of(xgrad, form).weight_norm(nn.Linear(3, 2).double(), dim=dim)
    names, leaves = zip(*layer.named_parameters(), strict=True)
    x = xgrad.asarray(np.random.default_rng(0).normal(size=(2, 3)))

    def output(*values):
        return nn.utils.functional_call(layer, dict(zip(names, values, strict=True)), x) ** 3

    leaves = [p.detach().requires_grad_() for p in leaves]
    assert xgrad.testing.gradcheck(output, leaves) and xgrad.testing.gradgradcheck(output, leaves)


@pytest.mark.parametrize("form", ["new", "old"])
@pytest.mark.parametrize("layer", LAYERS, ids=[layer[0] for layer in LAYERS])
@pytest.mark.parametrize("iterations", [1, 3])
def test_spectral_norm_matches_pytorch_in_training_and_evaluation(form, layer, iterations, torch):
    if form == "new" and layer[0] == "LSTM":
        pytest.skip("PyTorch's LSTM reads its weights several times in a call")
    options = {"n_power_iterations": iterations}
    module, other = twins(torch, "spectral_norm", form, layer, **options)
    x = np.random.default_rng(0).normal(size=layer[2])
    for training in (True, True, False, True):
        module.train(training), other.train(training)
        check_equal(gradients(xgrad, module, x), gradients(torch, other, x))
        state = {name: v.numpy() for name, v in other.state_dict().items()}
        check_equal({name: host(v) for name, v in module.state_dict().items()}, state)


@pytest.mark.parametrize("form", ["new", "old"])
def test_backward_through_two_calls_with_spectral_norm_matches_pytorch(form, torch):
    module, other = twins(torch, "spectral_norm", form, LAYERS[0])
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    for library, layer in ((xgrad, module), (torch, other)):
        real, fake = (library.asarray(v) for v in x)
        ((layer(real) ** 2).sum() - (layer(fake) ** 2).sum()).backward()
    grads = [{k: p.grad.numpy() for k, p in m.named_parameters()} for m in (module, other)]
    check_equal(*grads)


@pytest.mark.parametrize("form", ["new", "old"])
def test_training_call_between_evaluation_and_its_backward_pass_with_spectral_norm(form, torch):
    module, other = twins(torch, "spectral_norm", form, LAYERS[0])
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    losses = [
        (module.train(mode)(xgrad.asarray(v)) ** 2).sum()
        for mode, v in zip((False, True), x, strict=True)
    ]
    sum(losses).backward()
    for mode, v in zip((False, True), x, strict=True):
        (other.train(mode)(torch.tensor(v)) ** 2).sum().backward()
    grads = [{k: p.grad.numpy() for k, p in m.named_parameters()} for m in (module, other)]
    check_equal(*grads)


def test_spectral_norm_divides_a_vector_by_its_norm():
    layer = parametrizations.spectral_norm(nn.LayerNorm(4).double())
    layer.weight = xgrad.asarray([1.0, 2.0, 2.0, 4.0], dtype=xgrad.float64)
    assert host(layer.weight).tolist() == [0.2, 0.4, 0.4, 0.8]
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]


@pytest.mark.parametrize("form", ["new", "old"])
@pytest.mark.parametrize("function", ["weight_norm", "spectral_norm"])
def test_removal_keeps_the_weight_and_is_trained_further(form, function):
    layer = getattr(utils_of(xgrad, form), function)(nn.Linear(3, 2)).eval()
    weight = host(layer.weight)
    if form == "new":
        parametrize.remove_parametrizations(layer, "weight")
        assert not hasattr(layer, "parametrizations")
    else:
        getattr(nn.utils, f"remove_{function}")(layer)
    assert list(layer.state_dict()) == ["bias", "weight"]
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad
    np.testing.assert_allclose(host(layer.weight), weight, 1e-6)
    layer(xgrad.ones((1, 3))).sum().backward()
    assert layer.weight.grad.shape == (2, 3)


@pytest.mark.parametrize(
    ("form", "function"),
    [(form, name) for form in ("new", "old") for name in ("weight_norm", "spectral_norm")]
    + [("new", "orthogonal")],
)
def test_captured_training_equals_eager(form, function, capturing_device):
    runs = []
    for run in (lambda step: step, xgrad.capture):
        xgrad.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(capturing_device)
        for i in (0, 2):
            getattr(utils_of(xgrad, form), function)(net[i])
        optimizer = optim.Adam(net.parameters(), lr=0.1)

        def step(x, net=net, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (net(x) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = run(step)
        x = xgrad.ones((5, 3), device=capturing_device)
        losses = [host(step(x)).tobytes() for _ in range(5)]
        runs.append((losses, [host(v).tobytes() for v in net.state_dict().values()]))
    assert runs[0] == runs[1] and len(set(runs[0][0])) > 1
    assert step.refusal is None


@pytest.mark.parametrize("form", ["new", "old"])
@pytest.mark.parametrize("function", ["weight_norm", "spectral_norm"])
def test_copies_functional_calls_and_state_dicts(form, function):
    layer = getattr(utils_of(xgrad, form), function)(nn.Linear(3, 2)).eval()
    twin, x = copy.deepcopy(layer), xgrad.ones((4, 3))
    assert twin(x).tolist() == layer(x).tolist()
    params = {name: 2 * p.detach() for name, p in layer.named_parameters()}
    out = nn.utils.functional_call(layer, params, x)
    twin.load_state_dict({**layer.state_dict(), **params})
    assert out.tolist() == twin(x).tolist() != layer(x).tolist()
    gradient = xgrad.grad(lambda p: nn.utils.functional_call(layer, p, x).sum())(params)
    assert all(gradient[name].shape == p.shape for name, p in params.items())
    double = copy.deepcopy(layer).double()
    assert double.weight.dtype == xgrad.float64


@pytest.mark.parametrize("orthogonal_map", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("sizes", [(3, 3), (4, 2), (2, 4), (1, 3)])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_matches_pytorch(orthogonal_map, sizes, trivial, torch):
    made = []
    for library in (xgrad, torch):
        layer = library.nn.Linear(*sizes).double()
        layer.weight.data = library.asarray(np.random.default_rng(3).normal(size=sizes[::-1]))
        register = library.nn.utils.parametrizations.orthogonal
        made.append(register(layer, "weight", orthogonal_map, use_trivialization=trivial))
    module, other = made
    assert list(module.state_dict()) == list(other.state_dict())
    if not trivial or sizes == (3, 3):  # otherwise the base is completed by random numbers
        weights = [np.asarray(layer.weight.detach().numpy()) for layer in made]
        np.testing.assert_allclose(*weights, 1e-10, 1e-12)
    state = {k: torch.tensor(v.numpy()) for k, v in module.state_dict().items()}
    state["parametrizations.weight.original"] += 0.1 * torch.arange(float(np.prod(sizes))).reshape(
        sizes[::-1]
    ).tril(-1 if orthogonal_map in (None, "householder") else 0)
    module.load_state_dict({k: v.numpy() for k, v in state.items()})
    other.load_state_dict(state)
    x = np.random.default_rng(0).normal(size=(5, sizes[0]))
    check_equal(gradients(xgrad, module, x), gradients(torch, other, x))
    weight = host(module.weight)
    gram = weight @ weight.T if weight.shape[0] < weight.shape[1] else weight.T @ weight
    np.testing.assert_allclose(gram, np.eye(min(sizes)), atol=1e-12)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("options", [{}, {"use_trivialization": False}])
def test_assigned_orthogonal_matrix_is_kept(sizes, options):
    layer = parametrizations.orthogonal(
        nn.Linear(*sizes).double(), orthogonal_map="householder", **options
    )
    matrix, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(max(sizes), min(sizes))))
    matrix = matrix if layer.weight.shape == matrix.shape else matrix.T
    layer.weight = xgrad.asarray(matrix)
    np.testing.assert_allclose(host(layer.weight), matrix, atol=1e-12)


class Symmetric(nn.Module):
    def forward(self, x):
        return xgrad.triu(x) + xgrad.triu(x, k=1).mT

    def right_inverse(self, x):
        return xgrad.triu(x)


class Double(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


def test_chain_of_parametrizations_matches_pytorch(torch):
    class TorchSymmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    class TorchDouble(torch.nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, x):
            return x / 2

    weight, results = np.arange(9.0).reshape(3, 3), []
    for library, parts, register in (
        (xgrad, (Symmetric, Double), parametrize.register_parametrization),
        (
            torch,
            (TorchSymmetric, TorchDouble),
            torch.nn.utils.parametrize.register_parametrization,
        ),
    ):
        layer = library.nn.Linear(3, 3).double()
        parameter = layer.weight
        parameter.data = library.asarray(weight)
        for part in parts:
            register(layer, "weight", part())
        assert layer.parametrizations.weight.original is parameter
        found = [layer.weight.tolist(), list(layer.state_dict())]
        layer.weight = library.asarray(weight + weight.T)
        found += [layer.weight.tolist(), parameter.tolist()]
        (layer.weight**2).sum().backward()
        results.append([*found, parameter.grad.tolist()])
    assert results[0] == results[1]


def test_buffers_and_restored_originals():
    module = nn.Module()
    module.register_buffer("scale", xgrad.ones(2))
    parametrize.register_parametrization(module, "scale", Double())
    assert module.scale.tolist() == [1.0, 1.0]
    assert list(module.state_dict()) == ["parametrizations.scale.original"]
    assert parametrize.is_parametrized(module) and parametrize.is_parametrized(module, "scale")
    parametrize.remove_parametrizations(module, "scale", leave_parametrized=False)
    assert module.scale.tolist() == [0.5, 0.5] and list(module.state_dict()) == ["scale"]
    assert not parametrize.is_parametrized(module)
    parametrize.register_parametrization(module, "scale", Double())
    module.scale = xgrad.asarray([4.0, 6.0])
    parametrize.remove_parametrizations(module, "scale")
    assert module.scale.tolist() == [4.0, 6.0]


def test_cached_values_are_computed_once():
    layer = parametrizations.spectral_norm(nn.Linear(3, 2).double())
    with parametrize.cached():
        first = layer.weight
        u = host(layer.parametrizations.weight[0]._u)
        with parametrize.cached():
            assert layer.weight is first
        assert host(layer.parametrizations.weight[0]._u).tolist() == u.tolist()
        layer.weight = xgrad.eye(2, 3, dtype=xgrad.float64)
        assert layer.weight is not first
        (layer.weight * layer.weight).sum().backward()
    assert layer.weight is not layer.weight
    assert layer.parametrizations.weight.original.grad is not None


class NoMatrix(nn.Module):
    """Returns a vector; its inverse returns zeros."""

    def forward(self, x: Any) -> Any:
        return x[0, ...]

    def right_inverse(self, x: Any) -> Any:
        return x * 0


def test_refused_parametrization_leaves_the_module_unchanged():
    layer = nn.Linear(3, 2)
    weight = host(layer.weight)
    with pytest.raises(ValueError, match="expected weight of shape"):
        parametrize.register_parametrization(layer, "weight", NoMatrix())
    np.testing.assert_array_equal(host(layer.weight), weight)
    assert list(layer.state_dict()) == ["weight", "bias"]


def test_missing_attributes_are_reported_as_python_does():
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wait'"):
        nn.Linear(3, 2).wait  # noqa: B018


NAMES = {"nn": nn, "p": parametrizations, "q": parametrize, "Double": Double}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "p.weight_norm(nn.Linear(3, 2), 'bias', 1)",
            "ValueError: weight_norm: expected dim from -1 to 0, or None, got 1",
        ),
        (
            "p.weight_norm(nn.Linear(3, 2), 'weights')",
            "ValueError: weight_norm: expected the name of a parameter of Linear, got 'weights'",
        ),
        ("p.weight_norm(3)", "TypeError: weight_norm: expected a module for module, got 3"),
        (
            "p.spectral_norm(nn.Linear(3, 2), n_power_iterations=0)",
            "ValueError: spectral_norm: expected an int above 0 for n_power_iterations, got 0",
        ),
        (
            "p.spectral_norm(nn.Linear(3, 2), eps=0)",
            "ValueError: spectral_norm: expected eps above 0, got 0",
        ),
        (
            "nn.utils.spectral_norm(nn.Linear(3, 2), dim=2)",
            "ValueError: spectral_norm: expected dim below 2, the number of axes, got 2",
        ),
        (
            "nn.utils.weight_norm(nn.utils.weight_norm(nn.Linear(3, 2)))",
            "ValueError: weight_norm: expected the name of a parameter of Linear, got 'weight'",
        ),
        (
            "p.orthogonal(nn.Linear(3, 2), 'bias')",
            "ValueError: orthogonal: expected a matrix for bias, got shape (2,)",
        ),
        (
            "p.orthogonal(nn.Linear(3, 2), orthogonal_map='qr')",
            "ValueError: orthogonal: expected an orthogonal_map of ['matrix_exp', 'cayley'",
        ),
        (
            "setattr(p.orthogonal(nn.Linear(3, 3), use_trivialization=False), 'weight', xp.eye(3))",
            "NotImplementedError: orthogonal: expected use_trivialization=True, or the map",
        ),
        (
            "setattr(p.spectral_norm(nn.Linear(3, 2)), 'weight', xp.ones((3, 2)))",
            "ValueError: right_inverse: expected shape (2, 3) and float32 to set a parametrized",
        ),
        (
            "setattr(p.weight_norm(nn.Linear(3, 2)), 'weight', xp.ones((2, 3), dtype=xp.float64))",
            "ValueError: right_inverse: expected shape (2, 1) and float32, shape (2, 3) and",
        ),
        (
            "setattr(nn.utils.weight_norm(nn.Linear(3, 2)), 'weight', None)",
            "TypeError: Linear.weight: expected a Tensor, got None",
        ),
        (
            "setattr(nn.utils.spectral_norm(nn.Linear(3, 2)), 'weight', xp.ones((3, 2)))",
            "ValueError: Linear.weight: expected a tensor of shape (2, 3) and float32, got (3, 2)",
        ),
        (
            "nn.utils.remove_weight_norm(nn.Linear(3, 2))",
            "ValueError: remove_weight_norm: expected the name of a weight of weight_norm",
        ),
        (
            "q.register_parametrization(nn.Linear(3, 2), 'weight', nn.Flatten(0))",
            "ValueError: register_parametrization: expected weight of shape (2, 3) and float32",
        ),
        (
            "q.register_parametrization(nn.Linear(3, 2), 'weight', abs)",
            "TypeError: register_parametrization: expected a module for parametrization",
        ),
        (
            "q.register_parametrization(nn.Linear(3, 2), 'in_features', Double())",
            "ValueError: register_parametrization: expected the name of a parameter or buffer",
        ),
        (
            "q.remove_parametrizations(nn.Linear(3, 2), 'weight')",
            "ValueError: remove_parametrizations: expected the name of a parametrized tensor",
        ),
        (
            "q.remove_parametrizations(p.weight_norm(nn.Linear(3, 2)), 'weight', False)",
            "ValueError: remove_parametrizations: expected leave_parametrized=True for a tensor",
        ),
        (
            "setattr(p.weight_norm(nn.Linear(3, 2)), 'weight', None)",
            "TypeError: Linear.weight: expected a Tensor for a parametrized tensor, got None",
        ),
        (
            "setattr(q.register_parametrization(nn.Linear(3, 2), 'weight', nn.Tanh()), 'weight',"
            " xp.ones((2, 3)))",
            "ValueError: Tanh: expected a method right_inverse",
        ),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    check_error(call, error, **NAMES)
