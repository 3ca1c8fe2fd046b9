"""Modules with PyTorch's constructors: outputs and gradients with the same weights."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import xgrad
from tests.compat.compared import array, as_tensor, check_close, copy_state, loss_of
from xgrad.compat import torch as compat

nn = compat.nn

SEQUENCE, IMAGE, VECTORS = array((2, 4, 6)), array((2, 4, 6, 5)), array((3, 4))
CLASSES, POSITIVE = np.asarray([1, 0, 3]), np.abs(VECTORS)
VOLUME = array((2, 2, 4, 3, 5))
LOG_PROBS = np.log(np.random.default_rng(0).dirichlet(np.ones(3), (5, 2)))

#: The constructor, evaluated with the name ``nn``, and the inputs of the call
CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("nn.Linear(4, 3)", (VECTORS,)),
    ("nn.Linear(4, 3, False)", (VECTORS,)),
    ("nn.Conv1d(4, 6, 3, 2, 1)", (SEQUENCE,)),
    ("nn.Conv2d(4, 6, (3, 2), padding='same', bias=False)", (IMAGE,)),
    ("nn.Conv2d(4, 8, 3, 2, 1, 1, 2, True, 'reflect')", (IMAGE,)),
    ("nn.Conv2d(4, 8, 3, padding=1, dilation=2, padding_mode='circular')", (IMAGE,)),
    ("nn.ConvTranspose1d(4, 6, 3, 2, 1, 1)", (SEQUENCE,)),
    ("nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2, False)", (IMAGE,)),
    ("nn.Embedding(5, 3, 1)", (CLASSES,)),
    ("nn.Embedding(5, 3, max_norm=1.0, scale_grad_by_freq=True)", (CLASSES,)),
    ("nn.EmbeddingBag(5, 3, mode='sum')", (CLASSES[None],)),
    ("nn.Conv3d(2, 4, (3, 2, 2), stride=2, padding=1, groups=2)", (VOLUME,)),
    ("nn.ConvTranspose3d(2, 4, 2, bias=False)", (VOLUME,)),
    ("nn.Bilinear(4, 4, 2)", (VECTORS, POSITIVE)),
    ("nn.BatchNorm1d(4, momentum=None)", (SEQUENCE,)),
    ("nn.BatchNorm3d(2)", (VOLUME,)),
    ("nn.InstanceNorm3d(2)", (VOLUME,)),
    ("nn.LocalResponseNorm(2, 0.1)", (IMAGE,)),
    ("nn.BatchNorm2d(4, 1e-3, 0.3)", (IMAGE,)),
    ("nn.BatchNorm2d(4, bias=False)", (IMAGE,)),
    ("nn.BatchNorm2d(4, affine=False, track_running_stats=False)", (IMAGE,)),
    ("nn.InstanceNorm1d(4, affine=True)", (SEQUENCE,)),
    ("nn.InstanceNorm2d(4, track_running_stats=True)", (IMAGE,)),
    ("nn.LayerNorm([6, 5], 1e-3)", (IMAGE,)),
    ("nn.LayerNorm(5, elementwise_affine=False)", (IMAGE,)),
    ("nn.RMSNorm(5, 1e-3)", (IMAGE,)),
    ("nn.GroupNorm(2, 4)", (IMAGE,)),
    ("nn.AvgPool1d(2)", (SEQUENCE,)),
    ("nn.AvgPool2d(3, divisor_override=2)", (IMAGE,)),
    ("nn.AvgPool3d(2)", (VOLUME,)),
    ("nn.MaxPool3d(2)", (VOLUME,)),
    ("nn.MaxPool2d(2, return_indices=True)", (IMAGE,)),
    ("nn.AdaptiveAvgPool3d(2)", (VOLUME,)),
    ("nn.AdaptiveMaxPool3d((1, 2, None), return_indices=True)", (VOLUME,)),
    ("nn.LPPool1d(2, 2)", (SEQUENCE,)),
    ("nn.LPPool2d(3.0, 2, 1)", (POSITIVE[None, None],)),
    ("nn.MaxUnpool2d(2)", (POSITIVE[None, None], np.arange(12).reshape(1, 1, 3, 4))),
    ("nn.ZeroPad2d((1, 2, 0, 1))", (IMAGE,)),
    ("nn.ConstantPad1d(1, 3.0)", (SEQUENCE,)),
    ("nn.ReflectionPad2d(1)", (IMAGE,)),
    ("nn.ReplicationPad3d(1)", (VOLUME,)),
    ("nn.CircularPad1d((1, 0))", (SEQUENCE,)),
    ("nn.PixelShuffle(2)", (IMAGE,)),
    ("nn.PixelUnshuffle(2)", (array((2, 1, 4, 6)),)),
    ("nn.ChannelShuffle(2)", (IMAGE,)),
    ("nn.Fold((3, 3), 2)", (array((1, 8, 4)),)),
    ("nn.Unfold(2, stride=2)", (IMAGE,)),
    ("nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)", (IMAGE,)),
    ("nn.UpsamplingNearest2d(7)", (IMAGE,)),
    ("nn.UpsamplingBilinear2d(scale_factor=2)", (IMAGE,)),
    ("nn.AvgPool2d(3, 2, 1, True, False)", (IMAGE,)),
    ("nn.MaxPool1d(2, 1)", (SEQUENCE,)),
    ("nn.MaxPool2d(3, 2, 1, ceil_mode=True)", (IMAGE,)),
    ("nn.AdaptiveAvgPool1d(3)", (SEQUENCE,)),
    ("nn.AdaptiveAvgPool2d((1, None))", (IMAGE,)),
    ("nn.AdaptiveMaxPool2d((2, 3))", (IMAGE,)),
    ("nn.Dropout(0.0)", (VECTORS,)),
    ("nn.Flatten()", (IMAGE,)),
    ("nn.Flatten(start_dim=2)", (IMAGE,)),
    ("nn.Unflatten(1, (2, 2))", (IMAGE,)),
    ("nn.Identity(54, unused=1)", (VECTORS,)),
    ("nn.CosineSimilarity(1)", (VECTORS, POSITIVE)),
    ("nn.PairwiseDistance(1.0, keepdim=True)", (VECTORS, POSITIVE)),
    ("nn.RNN(6, 3, 2, 'relu')", (SEQUENCE,)),
    ("nn.LSTM(6, 3, 2, batch_first=True, bidirectional=True)", (SEQUENCE,)),
    ("nn.LSTM(6, 3, proj_size=2)", (SEQUENCE,)),
    ("nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True)", (SEQUENCE,) * 3),
    ("nn.Transformer(6, 2, 1, 1, 8, 0.0)", (SEQUENCE, SEQUENCE)),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2)", (SEQUENCE, SEQUENCE)),
    ("nn.GRU(6, 3, bias=False)", (SEQUENCE, array((1, 4, 3)))),
    ("nn.LSTMCell(4, 3)", (VECTORS,)),
    ("nn.GRUCell(4, 3)", (VECTORS, array((3, 3)))),
    ("nn.RNNCell(4, 3, True, 'relu')", (VECTORS,)),
    ("nn.MultiheadAttention(6, 2, batch_first=True)", (SEQUENCE,) * 3),
    ("nn.MultiheadAttention(6, 3, bias=False, kdim=4, vdim=5)", (SEQUENCE, array((3, 4, 4)),
     array((3, 4, 5)))),
    ("nn.TransformerEncoderLayer(6, 2, 8, 0.0, 'gelu', batch_first=True)", (SEQUENCE,)),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0, norm_first=True), 2,"
     " nn.LayerNorm(6))", (SEQUENCE,)),
    ("nn.Sequential(OrderedDict(a=nn.Linear(4, 3), b=nn.ReLU(inplace=True)))", (VECTORS,)),
    ("nn.DataParallel(nn.Linear(4, 3))", (VECTORS,)),
    *[
        (f"nn.{activation}", (VECTORS,))
        for activation in (
            "ReLU() ReLU6() SELU() SiLU() Mish() Hardswish() ELU(0.5) CELU(0.5)"
            " LeakyReLU(0.2) Hardtanh(-0.5,0.5) Threshold(0.1,20) Sigmoid() Tanh() LogSigmoid()"
            " Softsign() Tanhshrink() GELU('tanh') GLU(1) Hardshrink() Softshrink(0.1) Softplus(2)"
            " PReLU(4) Softmax(0) Softmax() LogSoftmax(dim=1) Softmin(1)"
        ).split()
    ],
    ("nn.Softmax2d()", (IMAGE,)),
    ("nn.CrossEntropyLoss()", (VECTORS, CLASSES)),
    ("nn.CrossEntropyLoss(None, None, 1)", (VECTORS, CLASSES)),
    ("nn.CrossEntropyLoss(reduction='sum', label_smoothing=0.1)", (VECTORS, CLASSES)),
    ("nn.CrossEntropyLoss()", (VECTORS, POSITIVE)),
    ("nn.NLLLoss(reduction='none')", (VECTORS, CLASSES)),
    ("nn.MSELoss(size_average=False)", (VECTORS, POSITIVE)),
    ("nn.MSELoss(reduce=False)", (VECTORS, POSITIVE)),
    ("nn.L1Loss()", (VECTORS, POSITIVE)),
    ("nn.SmoothL1Loss(beta=0.5)", (VECTORS, POSITIVE)),
    ("nn.HuberLoss(delta=0.5)", (VECTORS, POSITIVE)),
    ("nn.KLDivLoss(reduction='batchmean')", (VECTORS, POSITIVE)),
    ("nn.BCELoss()", (POSITIVE / 4, POSITIVE / 5)),
    ("nn.BCEWithLogitsLoss(reduction='sum')", (VECTORS, POSITIVE / 4)),
    ("nn.SoftMarginLoss()", (VECTORS, np.sign(VECTORS).astype(np.int64))),
    ("nn.HingeEmbeddingLoss(0.5)", (POSITIVE, np.sign(VECTORS))),
    ("nn.CosineEmbeddingLoss(0.1)", (VECTORS, POSITIVE, np.sign(VECTORS[:, 0]))),
    ("nn.MarginRankingLoss(0.1)", (VECTORS, POSITIVE, np.sign(VECTORS))),
    ("nn.MultiMarginLoss(2)", (VECTORS, CLASSES)),
    ("nn.MultiLabelSoftMarginLoss()", (VECTORS, np.sign(POSITIVE))),
    ("nn.MultiLabelMarginLoss()", (VECTORS, np.array([[1, 2, -1, 0]] * 3))),
    ("nn.TripletMarginWithDistanceLoss(margin=2.0)", (VECTORS, POSITIVE, VECTORS[::-1].copy())),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2])", (VECTORS, CLASSES)),
    ("nn.CTCLoss()", (LOG_PROBS, np.array([[1, 2], [2, 2]]), np.array([5, 4]), np.array([2, 1]))),
    ("nn.TripletMarginLoss(swap=True)", (VECTORS, POSITIVE, VECTORS[::-1].copy())),
    ("nn.GaussianNLLLoss(full=True)", (VECTORS, POSITIVE, POSITIVE + 1)),
    ("nn.PoissonNLLLoss(False)", (POSITIVE, POSITIVE)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # of PyTorch, for deprecated options
@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_output_and_gradients(torch: Any, case: tuple[str, tuple[Any, ...]], mode: str) -> None:
    text, inputs = case
    modules = {
        library: eval(text, {"nn": library.nn, "OrderedDict": OrderedDict})
        for library in (torch, compat)
    }
    theirs, mine = (modules[library].double() for library in (torch, compat))
    assert list(mine.state_dict()) == list(theirs.state_dict())
    copy_state(theirs, mine)
    results = []
    for library, module in ((compat, mine), (torch, theirs)):
        getattr(module, mode)()
        x = as_tensor(library, inputs)
        output = module(*(2 * part if part.dtype == library.float64 else part for part in x))
        loss_of(library, output).backward()
        results.append((output, [part.grad for part in x if part.requires_grad]))
    check_close(results[0][0], results[1][0], 1e-11)
    check_close(results[0][1], results[1][1], 1e-11)
    own = dict(mine.named_parameters())
    for name, p in theirs.named_parameters():
        if p.grad is not None:
            check_close(own[name].grad, p.grad, 1e-10)
    buffers = dict(mine.named_buffers())
    for name, buffer in theirs.named_buffers():
        check_close(buffers[name], buffer)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nn.Embedding(3, 2, sparse=True)", "sparse"),
        ("nn.EmbeddingBag(3, 2, sparse=True)", "sparse"),
    ],
)
def test_option_without_equivalent_is_refused_by_name(text: str, name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{name}=.* is not available in xgrad.compat"):
        eval(text)


def test_wrong_arguments_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="unknown argument 'chanels'"):
        nn.Conv2d(1, 2, 3, chanels=3)
    with pytest.raises(TypeError, match="missing arguments"):
        nn.Conv2d(1)
    with pytest.raises(TypeError, match="'in_features' is given twice"):
        nn.Linear(1, 2, in_features=3)
    with pytest.raises(AttributeError, match=r"torch\.nn\.NoLayer is not available"):
        nn.NoLayer  # noqa: B018


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Embedding(4, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.decoder = nn.Linear(3, 4, bias=False)
        self.decoder.weight = self.encoder.weight
        self.scales = nn.ParameterList([nn.Parameter(compat.ones(3))])
        self.register_buffer("mask", compat.ones(3), persistent=False)
        self.register_parameter("none", None)

    def forward(self, x: Any) -> Any:
        x = self.encoder(x) * self.mask * self.scales[0]
        for layer in self.layers:
            x = layer(x).relu()
        return self.decoder(x)


def test_members_have_pytorch_classes_and_names() -> None:
    net = Net()
    assert [type(p) for p in net.parameters()] == [nn.Parameter] * 6
    assert isinstance(net.layers[:1], nn.ModuleList)
    assert [n for n, _ in net.named_parameters()] == [
        "encoder.weight", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
        "scales.0",
    ]  # fmt: skip
    assert [n for n, _ in net.named_parameters("p", recurse=False)] == []
    names = [n for n, _ in net.named_parameters(remove_duplicate=False)]
    assert "decoder.weight" in names
    assert list(net.state_dict()) == names
    assert "mask" in dict(net.named_buffers())
    assert net.get_parameter("decoder.weight") is net.encoder.weight
    assert next(iter(net.state_dict(prefix="a."))) == "a.encoder.weight"
    net.load_state_dict(Net().state_dict())
    with pytest.raises(RuntimeError, match="missing"):
        net.load_state_dict({})
    assert net.load_state_dict({}, strict=False).missing_keys


def test_attribute_by_a_computed_name() -> None:
    net = Net()
    assert net.__getattr__("decoder") is net.decoder
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'decode'"):
        net.decode  # noqa: B018


def test_sum_of_lists_of_modules() -> None:
    layers = nn.ModuleList([nn.ReLU()]) + nn.ModuleList([nn.Tanh()])
    layers += [nn.Sigmoid()]
    assert [type(layer) for layer in layers] == [nn.ReLU, nn.Tanh, nn.Sigmoid]
    assert isinstance(layers, nn.ModuleList)
    assert len(nn.Sequential(nn.ReLU()) + nn.Sequential(nn.ReLU())) == 2


def test_state_dict_follows_parameters() -> None:
    layer = nn.Linear(2, 2)
    state = layer.state_dict()
    state["weight"].zero_()
    assert not layer.weight.any()
    with compat.no_grad():
        layer.weight.fill_(3)
    assert state["weight"].eq(3).all()


def test_layers_within_layers_of_xgrad_are_found_by_class() -> None:
    kinds: list[Any] = []
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1)
    net.apply(lambda m: kinds.append(type(m)))
    assert kinds.count(nn.Linear) == 3
    assert nn.MultiheadAttention in kinds


def test_initialization_through_data_and_init() -> None:
    layer = nn.Linear(3, 2)
    layer.weight.data.uniform_(-0.1, 0.1)
    assert layer.weight.abs().max() <= 0.1
    layer.bias.data.zero_()
    nn.init.constant_(layer.bias, 2.0)
    assert layer.bias.tolist() == [2.0, 2.0]
    nn.init.orthogonal_(layer.weight)
    np.testing.assert_allclose(
        (layer.weight @ layer.weight.T).detach().numpy(), np.eye(2), atol=1e-6
    )
    nn.init.trunc_normal_(layer.weight, std=0.02, a=-0.03, b=0.03)
    assert layer.weight.abs().max() <= 0.03
    assert layer.weight.requires_grad


def test_hooks_get_tensors_of_the_namespace() -> None:
    seen: list[Any] = []
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    net[0].register_forward_hook(lambda m, args, out: seen.append(out))
    net[0].register_forward_pre_hook(lambda m, args: seen.append(args[0]))
    net[0].register_full_backward_hook(lambda m, gi, go: seen.extend(go))
    net(compat.ones(2, 3)).sum().backward()
    assert [type(x) for x in seen] == [compat.Tensor] * 3


def test_inplace_activation_writes_to_its_input() -> None:
    x = compat.tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x
    assert x.tolist() == [0.0, 2.0]
    y = compat.tensor([-1.0, 2.0], requires_grad=True) * 1
    compat.nn.functional.leaky_relu_(y, 0.5).sum().backward()


def test_captured_step_equals_eager_step() -> None:
    losses = []
    for captured in (False, True):
        xgrad.manual_seed(0)
        net = Net()
        optimizer = compat.optim.Adam(net.parameters(), lr=0.01)

        def step(x: Any, y: Any, net: Any = net, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = compat.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = xgrad.capture(step) if captured else step
        x, y = compat.tensor([0, 1, 2, 3]), compat.tensor([1, 2, 3, 0])
        losses.append([run(x, y).item() for _ in range(5)])
        if captured:
            assert type(run(x, y)) is compat.Tensor
    assert losses[0] == losses[1]
