"""`torch.nn.functional`: each function with each library, values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compat.compared import array, check_call
from xgrad.compat import torch as compat

#: Expressions of ``x``, ``y`` and ``z`` of shape (3, 4), ``s`` of shape (2, 4, 6), ``i`` of shape
#: (2, 4, 6, 5), ``k`` with classes, and ``v`` and ``w`` of shape (4,)
EXPRESSIONS = """
F.celu(x, 0.5)
F.elu(x, alpha=0.5)
F.gelu(x, approximate='tanh')
F.glu(x, dim=1)
F.hardshrink(x, 0.2)
F.hardswish(x)
F.hardtanh(x, -0.5, 0.25)
F.leaky_relu(x, 0.2)
F.logsigmoid(x)
F.mish(x)
F.prelu(x, v)
F.relu(x)
F.relu6(x * 4)
F.selu(x)
F.sigmoid(x)
F.silu(x)
F.softplus(x, 2, 3)
F.softshrink(x, 0.1)
F.softsign(x)
F.tanh(x)
F.tanhshrink(x)
F.threshold(x, 0.1, 20)
F.relu(x * 1, inplace=True)
F.elu_(x * 1)
F.softmax(x, dim=1)
F.softmax(x, 0, dtype=torch.float32)
F.softmax(x)
F.softmax(s)
F.log_softmax(x, dim=-1)
F.log_softmax(x[0, 0], 0)
F.softmin(x, 1)
F.dropout(x, training=False)
F.dropout(x, 0.0)
F.dropout2d(s, 0.0)
F.linear(x, y, z[:, 0])
F.conv1d(s, i[:, :, 0, :3], stride=2)
F.conv2d(i, i[:, :, :3, :3], v[:2], padding='same')
F.conv_transpose1d(s, s[0, :4, None, :3])
F.conv_transpose2d(i, i[0, :, :2, None, :3], padding=(0, 1), stride=2, output_padding=1)
F.embedding(k, x)
F.embedding_bag(k[None], x, mode='max')
F.bilinear(x, y, i[0, :2, :4, :4])
F.conv3d(i[None], i[None, :, :, :2, :2])
F.conv_transpose3d(i[None], i[:, :, None, :2, :2], stride=(1, 2, 1))
F.alpha_dropout(x, 0.3)
F.dropout3d(i, 0.0, True)
F.rrelu(x)
F.rrelu_(x * 1)
F.gumbel_softmax(x * 1000, dim=1)
F.max_pool2d(i, 2, return_indices=True)
F.max_pool3d(i[None], 2)
F.avg_pool3d(i[None], 2, divisor_override=3)
F.adaptive_max_pool3d(i[None], 2, True)
F.adaptive_avg_pool3d(i[None], (1, 2, None))
F.lp_pool2d(i, 3.0, 2)
F.max_unpool1d(z[None], torch.tensor([[[0, 2, 4, 6]] * 3]), 2)
F.affine_grid(s[:, :2, :3], (2, 1, 3, 4), align_corners=False)
F.grid_sample(i, torch.sin(i[:, :3, :4, :2]), align_corners=True)
F.interpolate(i, scale_factor=1.5, mode='bicubic')
F.interpolate(s, 9, mode='linear', align_corners=True)
F.upsample(i, (7, 9))
F.pixel_shuffle(i, 2)
F.pixel_unshuffle(s[None], 2)
F.channel_shuffle(i, 2)
F.unfold(i, 2, padding=1)
F.fold(s, (3, 4), (2, 2))
F.local_response_norm(i, 3, 0.1)
F.multilabel_margin_loss(x, torch.tensor([[1, 2, -1, 0], [0, -1, 0, 0], [3, 1, 0, 2]]))
F.triplet_margin_with_distance_loss(x, y, z, margin=0.5, reduction='sum')
F.embedding(k, x, padding_idx=1)
F.scaled_dot_product_attention(s, s, s, is_causal=True)
F.scaled_dot_product_attention(i, i, i, scale=0.3)
F.adaptive_avg_pool1d(s, 3)
F.adaptive_avg_pool2d(i, (2, None))
F.adaptive_max_pool1d(s, 2)
F.adaptive_max_pool2d(i, 2)
F.avg_pool1d(s, 2)
F.avg_pool2d(i, 3, 2, 1, False, False)
F.max_pool1d(s, 3, stride=2)
F.max_pool2d(i, (2, 3), padding=1, dilation=1, ceil_mode=True)
F.batch_norm(s, None, None, v, w, True)
F.batch_norm(s, v.detach(), v.detach().exp(), w, None)
F.cosine_similarity(x, y, dim=0)
F.group_norm(s, 2, v, w)
F.instance_norm(s, weight=v)
F.layer_norm(x, (4,), v, w)
F.layer_norm(x, x.shape[1:])
F.layer_norm(x[:0], (4,), v, w)
F.normalize(x, dim=-1)
F.normalize(x, p=1.0)
F.pairwise_distance(x, y, 1.0, keepdim=True)
F.rms_norm(x, (4,), v)
F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), size_average=False)
F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=v.detach().exp())
F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1]))
F.cross_entropy(x, k)
F.cross_entropy(x, k, v.detach().exp(), reduction='none')
F.cross_entropy(x, k, ignore_index=1, label_smoothing=0.1)
F.cross_entropy(x, y.softmax(1))
F.gaussian_nll_loss(x, y, z.exp(), full=True)
F.gaussian_nll_loss(x, y[:, :1], z.exp())
F.hinge_embedding_loss(x, torch.tensor([1, -1, 1, 1]).expand(3, 4))
F.huber_loss(x, y, 'sum', 0.5)
F.kl_div(x, y.softmax(1), reduction='batchmean')
F.kl_div(x[0, 0], y[0, 0].exp(), reduction='batchmean')
F.kl_div(x, y, log_target=True, reduce=False)
F.l1_loss(x, y)
F.margin_ranking_loss(x, y, torch.ones(3, 4), 0.3)
F.mse_loss(x, y, None, None, 'sum')
F.mse_loss(x, y, reduction='none')
F.multi_margin_loss(x, k, 2, 0.5)
F.multilabel_soft_margin_loss(x, torch.ones(3, 4))
F.nll_loss(x.log_softmax(1), k)
F.poisson_nll_loss(x, y.exp(), full=True)
F.smooth_l1_loss(x, y, beta=0.5)
F.soft_margin_loss(x, torch.ones(3, 4))
F.triplet_margin_loss(x, y, z, margin=0.5, swap=True)
F.pad(x, (1, 2))
F.pad(x, (1, 2, 0, 3), value=1.5)
F.pad(x, (-1, 2))
F.pad(s, (2, 1), 'reflect')
F.pad(s, (2, 1), mode='replicate')
F.pad(i, (1, 1, 2, 0), mode='circular')
F.pad(s, (-4, 5), mode='replicate')
F.one_hot(k)
F.one_hot(k, 5)
torch.nn.utils.parameters_to_vector([x, y])
torch.nn.utils.rnn.pad_sequence([x, x[:1], x[:2]], batch_first=True, padding_value=2.0)
torch.nn.utils.rnn.unpad_sequence(x.detach().T[:, :2], torch.tensor([3, 2]))
""".strip().splitlines()

INPUTS = (
    array((3, 4), 0), array((3, 4), 1), array((3, 4), 2), array((2, 4, 6), 3),
    array((2, 4, 6, 5), 4), np.asarray([1, 0, 2]), array((4,), 5), array((4,), 6),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # of PyTorch, for deprecated options
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_value_and_gradients(torch: Any, text: str) -> None:
    def call(library: Any, *values: Any) -> Any:
        names = dict(zip("xyzsikvw", values, strict=True))
        return eval(text, {"torch": library, "F": library.nn.functional, **names})

    check_call(torch, call, INPUTS, 1e-6 if "float32" in text else 1e-12)


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("F.embedding(x, x, sparse=True)", NotImplementedError, "sparse"),
        ("F.relu(x, inplac=True)", TypeError, "unknown argument 'inplac'"),
        ("F.conv2d(x)", TypeError, "missing arguments"),
        ("F.relu(x, False, 3)", TypeError, "at most 2 positional"),
        ("F.no_such_function", AttributeError, "not available in xgrad.compat.torch"),
        ("F.pad(x, (9, 0), 'reflect')", ValueError, "expected at most 3 elements"),
        ("F.pad(x, (1, 0), 'odd')", NotImplementedError, "unknown mode 'odd'"),
    ],
)
def test_refusals(text: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        eval(text, {"F": compat.nn.functional, "x": compat.ones(2, 4)})


def test_pooling_modules_follow_pytorch_for_integers_and_repeated_indices(torch: Any) -> None:
    """Overlapping windows repeat indices; PyTorch gives each element the whole gradient."""
    values = np.random.default_rng(0).permutation(50).reshape(1, 2, 5, 5)
    results: list[list[Any]] = []
    for lib in (compat, torch):
        pool = lib.nn.MaxPool2d(3, 1, return_indices=True)
        integers, _ = pool(lib.tensor(values))
        x, indices = pool(lib.tensor(values.astype(np.float64)))
        x = x.detach().requires_grad_()
        out = lib.nn.MaxUnpool2d(3, 1)(x, indices)
        (out * out).sum().backward()
        results.append([integers.numpy(), out.detach().numpy(), x.grad.numpy()])
    for got, expected in zip(*results, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    with pytest.raises(NotImplementedError, match=r"integers beyond 2\*\*53"):
        compat.nn.functional.max_pool1d(compat.tensor([[2**60, 2**60 + 1]]), 2)
