"""Options of all modules: unknown ones, ``inplace``, and the parameters of PyTorch's classes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host
from nn.module_cases import CASES
from xgrad import nn

#: Arguments of classes that the table of modules has no case of.
OTHERS: dict[str, tuple[Any, ...]] = {
    "CTCLoss": (),
    "MLP": ([2, 3, 1],),
    "ModuleDict": (),
    "ModuleList": (),
    "ParameterDict": (),
    "ParameterList": (),
    "PositionalEncoding": (4,),
    "Residual": (nn.Linear(2, 2),),
    "Sequential": (),
    "TransformerDecoder": (nn.TransformerDecoderLayer(4, 2), 1),
    "TransformerEncoder": (nn.TransformerEncoderLayer(4, 2), 1),
    "UpsamplingNearest2d": (2,),
}
CLASSES = sorted(
    name
    for name in nn.__all__
    if inspect.isclass(getattr(nn, name))
    and issubclass(getattr(nn, name), nn.Module)
    and name != "Module"
)
#: Names of PyTorch's parameters that xgrad has under another name, or lacks on purpose.
RENAMED = {"dim", "keepdim", "start_dim", "end_dim", "values", "args", "kwargs"}
LACKING = {
    *("size_average", "reduce"),  # former names of `reduction`
    *("min_value", "max_value"),  # former names of `min_val` and `max_val`
    *("_weight", "_freeze"),
    *("enable_nested_tensor", "mask_check"),
}


def arguments(name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments with which a class can be called."""
    if name in OTHERS:
        return OTHERS[name], {}
    case = next(case for case in CASES if case.name == name)
    options = {
        k: xgrad.asarray(x) if isinstance(x, np.ndarray) else x for k, x in case.options.items()
    }
    return case.args, options


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "Identity"])
def test_unknown_option_is_refused_by_name_when_the_module_is_made(name):
    args, options = arguments(name)
    getattr(nn, name)(*args, **options)
    with pytest.raises(TypeError, match="surprise"):
        getattr(nn, name)(*args, **options, surprise=1)


def test_identity_takes_any_arguments_as_in_pytorch():
    assert nn.Identity(54, surprise=True)(xgrad.ones(1)).tolist() == [1]


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in ("GRU", "LSTM", "RNN")])
def test_module_has_the_parameters_of_that_of_pytorch(name, torch):
    reference = getattr(torch.nn, name, None)
    if reference is None:
        pytest.skip("PyTorch has no such class")
    ours, theirs = [
        set(inspect.signature(each.__init__).parameters) for each in (getattr(nn, name), reference)
    ]
    lacking = LACKING if name not in ("LPPool1d", "LPPool2d", "LPPool3d") else {"args", "kwargs"}
    assert theirs - ours - lacking - RENAMED == set()


IN_PLACE = sorted(
    name for name in CLASSES if "inplace" in inspect.signature(getattr(nn, name)).parameters
)


def test_classes_with_inplace_are_those_of_pytorch(torch):
    theirs = {
        name
        for name in CLASSES
        if (reference := getattr(torch.nn, name, None)) is not None
        and "inplace" in inspect.signature(reference).parameters
    }
    assert set(IN_PLACE) == theirs


@pytest.mark.parametrize("name", IN_PLACE)
def test_module_in_place_gives_its_input_the_same_value_and_gradient(name, device):
    args, options = arguments(name)
    shape = next((case.inputs[0] for case in CASES if case.name == name), (2, 3))
    x = np.random.default_rng(0).normal(size=shape)
    if "ropout" in name or name == "RReLU":
        args, options = (), {}
    results = []
    for inplace in (False, True):
        xgrad.manual_seed(3)
        leaf = xgrad.asarray(x, device=device, requires_grad=True)
        given = leaf * 1
        out = getattr(nn, name)(*args, **options, inplace=inplace)(given)
        assert (out is given) == inplace
        if inplace:
            np.testing.assert_array_equal(host(given), host(out))
        (out * xgrad.asarray(x, device=device)).sum().backward()
        results.append((host(out), host(leaf.grad)))
    for plain, written in zip(*results, strict=True):
        np.testing.assert_array_equal(plain, written)


@pytest.mark.parametrize("name", IN_PLACE)
def test_inplace_is_an_attribute_and_part_of_the_representation(name):
    args, options = arguments(name)
    module = getattr(nn, name)(*args, **options, inplace=True)
    assert module.inplace and "inplace=True" in repr(module)
    module.inplace = False
    assert "inplace" not in repr(module)
    with pytest.raises(TypeError, match=rf"^{name}: expected True or False for inplace, got 'no'"):
        getattr(nn, name)(*args, **options, inplace="no")


def test_leaf_is_not_written_in_place():
    x = xgrad.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="in place: x is a leaf that requires a gradient"):
        nn.functional.relu(x, inplace=True)
    with xgrad.no_grad():
        assert nn.functional.threshold(x, 2.0, 5.0, inplace=True) is x
    assert x.tolist() == [5, 5]


def test_view_in_place_reaches_its_base(device):
    x = xgrad.asarray([[-1.0, 2.0], [-3.0, 4.0]], device=device)
    nn.functional.relu(x[0, :], inplace=True)
    assert x.tolist() == [[0, 2], [-3, 4]]


def test_captured_step_in_place_equals_eager(capturing_device):
    model = nn.Sequential(nn.Linear(3, 4), nn.ELU(inplace=True), nn.Dropout(0.5, inplace=True))
    model.to(capturing_device)
    x = xgrad.ones((2, 3), device=capturing_device)

    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        model.zero_grad()
        out = model(x)
        out.sum().backward()
        return out

    captured, results = xgrad.capture(step), []
    for function in (step, captured):
        xgrad.manual_seed(1)
        results.append([host(function(x)) for _ in range(3)])
    np.testing.assert_array_equal(*results)
    assert captured.refusal is None


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("nn.GELU('exact')", "ValueError: gelu: expected approximate of 'none' or 'tanh', got 'ex"),
        ("nn.ELU('x')", "TypeError: elu: expected a number for alpha, got 'x'"),
        ("nn.CELU(0)", "ValueError: celu: expected an alpha other than 0, got 0"),
        ("nn.LeakyReLU(None)", "TypeError: leaky_relu: expected a number for negative_slope, got"),
        ("nn.Hardtanh(1, 1)", "ValueError: hardtanh: expected min_val < max_val, got 1 and 1"),
        ("nn.Softplus(0)", "ValueError: softplus: expected a beta other than 0, got 0"),
        ("nn.Softshrink(-0.5)", "ValueError: softshrink: expected lambd >= 0, got -0.5"),
        ("nn.Hardshrink(-1)", "ValueError: hardshrink: expected lambd >= 0, got -1"),
        ("nn.Threshold(1.0, None)", "TypeError: threshold: expected a number for value, got None"),
        ("nn.RReLU(2.0, 1.0)", "ValueError: RReLU: expected lower <= upper, got 2.0 and 1.0"),
        ("nn.Softmax(dim=1)", "TypeError: …'dim': write axis= for dim="),
        ("nn.GLU(dim=1)", "TypeError: …'dim': write axis= for dim="),
        ("nn.PairwiseDistance(keepdim=True)", "TypeError: …: write keepdims= for keepdim="),
        (
            "nn.Dropout2d()(xp.ones((2, 3, 4)))",
            "ValueError: dropout2d: expected x of shape (batch, channels, height, width), got "
            "(2, 3, 4): use dropout1d for sequences, and x[None, ...] for a single image",
        ),
    ],
)
def test_wrong_options_are_refused_by_name(call, error):
    check_error(call, error, nn=nn)
