"""Attention and transformers: masks and encoders, compared with PyTorch; dropout, errors.

`module_cases` has the other comparisons with PyTorch.
"""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from helpers import check_error
from xgrad import nn
from xgrad.nn.functional import scaled_dot_product_attention as attention


def normal(*shape, seed=0):
    return xgrad.asarray(np.random.default_rng(seed).normal(size=shape), dtype=xgrad.float32)


def test_mask_of_bools_selects_the_keys():
    q, k, v = normal(2, 4), normal(3, 4, seed=1), normal(3, 2, seed=2)
    masked = attention(q, k, v, xgrad.asarray([True, False, True]))
    assert np.allclose(masked.tolist(), attention(q, k[::2], v[::2]).tolist(), atol=1e-6)


def test_query_without_keys_has_zero_result_and_gradients(device):
    q, k, v = (xgrad.ones((2, 3), device=device, requires_grad=True) for _ in range(3))
    mask = xgrad.asarray([[False, False], [True, False]], device=device)
    out = attention(q, k, v, mask)
    assert out[0, :].tolist() == [0.0, 0.0, 0.0]
    xgrad.sum(out).backward()
    assert q.grad.tolist() == [[0.0] * 3] * 2 and v.grad.tolist() == [[1.0] * 3, [0.0] * 3]


def test_float_masks_match_pytorch(torch):
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    reference = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    reference.load_state_dict(
        {name: torch.tensor(x.numpy()) for name, x in layer.state_dict().items()}
    )
    x, mask, padding = normal(2, 3, 4), normal(3, 3, seed=1), normal(2, 3, seed=2)
    pairs = [(x, mask, padding), tuple(torch.tensor(y.numpy()) for y in (x, mask, padding))]
    for weights in (True, False):
        out, expected = (
            module(x, x, x, key_padding_mask=padding, need_weights=weights, attn_mask=mask)[0]
            for module, (x, mask, padding) in zip((layer, reference), pairs, strict=True)
        )
        assert np.allclose(out.detach().numpy(), expected.detach().numpy(), atol=1e-6)


def test_gradient_of_float_mask_matches_pytorch(torch):
    arrays = [normal(2, 3, 4, seed=i).numpy() for i in range(3)] + [normal(3, 3, seed=4).numpy()]
    ours = [xgrad.asarray(x, requires_grad=True) for x in arrays]
    others = [torch.tensor(x, requires_grad=True) for x in arrays]
    xgrad.sum(attention(*ours) ** 2).backward()
    (torch.nn.functional.scaled_dot_product_attention(*others) ** 2).sum().backward()
    for x, y in zip(ours, others, strict=True):
        assert np.allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-5)


def test_dropout_acts_in_training_only():
    layer, x = nn.MultiheadAttention(4, 2, dropout=0.5), normal(3, 2, 4)
    outs = [layer(x, x, x, need_weights=False)[0].tolist() for _ in range(2)]
    assert outs[0] != outs[1]
    layer.eval()
    outs = [layer(x, x, x, need_weights=False)[0].tolist() for _ in range(2)]
    assert outs[0] == outs[1]


def test_dropout_keeps_the_mean():
    xgrad.manual_seed(0)
    ones = xgrad.ones((100, 20, 1))
    out = attention(ones, ones, ones, dropout_p=0.25)
    assert abs(float(xgrad.mean(out)) - 1) < 0.02 and float(xgrad.std(out)) > 0.05


def test_output_with_weights_equals_that_without():
    layer, x = nn.MultiheadAttention(4, 2), normal(3, 2, 4)
    out, weights = layer(x, x, x)
    other, none = layer(x, x, x, need_weights=False)
    assert none is None and np.allclose(out.tolist(), other.tolist(), atol=1e-6)
    assert np.allclose(xgrad.sum(weights, axis=-1).tolist(), 1, atol=1e-6)


@pytest.mark.parametrize("norm", [False, True])
def test_encoder_matches_pytorch(norm, torch):
    def encoder(library, **options):
        layer = library.TransformerEncoderLayer(4, 2, 5, 0.0, norm_first=norm, batch_first=True)
        return library.TransformerEncoder(
            layer, 3, library.LayerNorm(4) if norm else None, **options
        )

    ours, reference = encoder(nn), encoder(torch.nn, enable_nested_tensor=False)
    ours.load_state_dict({name: x.numpy() for name, x in reference.state_dict().items()})
    x = normal(2, 3, 4)
    mask = np.triu(np.ones((3, 3), dtype=bool), 1)
    out = ours(x, mask=xgrad.asarray(mask))
    expected = reference(torch.tensor(x.numpy()), mask=torch.tensor(mask))
    assert np.allclose(out.detach().numpy(), expected.detach().numpy(), atol=1e-5)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # of PyTorch's Transformer
@pytest.mark.parametrize("norm_first", [False, True])
def test_second_gradients_of_transformer_match_pytorch(norm_first, torch):
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first, "activation": "gelu"}
    ours = nn.Transformer(4, 2, 1, 2, 6, **options).double()
    reference = torch.nn.Transformer(4, 2, 1, 2, 6, **options).double()
    reference.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    arrays = [np.random.default_rng(i).normal(size=(2, n, 4)) for i, n in enumerate((5, 3))]
    xs = [xgrad.asarray(x, requires_grad=True) for x in arrays]
    ys = [torch.tensor(x, requires_grad=True) for x in arrays]
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=xgrad.float64)
    other = torch.nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    assert mask.tolist() == other.tolist()
    firsts = []
    for library, model, inputs, tgt_mask in (
        (xgrad, ours, xs, mask),
        (torch, reference, ys, other),
    ):
        # PyTorch's fused kernels have no second derivative.
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            out = model(*inputs, tgt_mask=tgt_mask)
        gradients = library.autograd.grad((out**3).sum(), inputs, create_graph=True)
        sum((g**2).sum() for g in gradients).backward()
        firsts.append([np.asarray(g.detach().numpy()) for g in gradients])
    for x, y in zip(*firsts, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)
    gradients = dict(reference.named_parameters())
    pairs = [(x.grad, y.grad) for x, y in zip(xs, ys, strict=True)]
    pairs += [(p.grad, gradients[name].grad) for name, p in ours.named_parameters()]
    for x, y in pairs:
        scale = float(abs(y).max())
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-10, atol=1e-10 * max(1, scale))


@pytest.mark.parametrize("options", [{}, {"kdim": 3, "vdim": 6, "add_zero_attn": True}])
def test_second_gradients_of_attention_with_additional_keys_match_pytorch(options, torch):
    options = {"add_bias_kv": True, "batch_first": True, **options}
    ours = nn.MultiheadAttention(4, 2, **options).double()
    reference = torch.nn.MultiheadAttention(4, 2, **options).double()
    reference.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    lengths = (4, options.get("kdim", 4), options.get("vdim", 4))
    arrays = [np.random.default_rng(i).normal(size=(2, 3, n)) for i, n in enumerate(lengths)]
    mask = np.random.default_rng(5).normal(size=(3, 3))
    results = []
    for library, model in ((xgrad, ours), (torch, reference)):
        leaves = [library.asarray(x, dtype=library.float64) for x in arrays]
        leaves = [x.detach().requires_grad_() for x in leaves]
        out, weights = model(*leaves, attn_mask=library.asarray(mask))
        total = (out**3).sum() + (weights**2).sum()
        firsts = library.autograd.grad(total, leaves, create_graph=True)
        sum((g**2).sum() for g in firsts).backward()
        seconds = [x.grad for x in (*leaves, *(p for _, p in sorted(model.named_parameters())))]
        results.append([x.detach().numpy() for x in (out, weights, *firsts, *seconds)])
    for x, y in zip(*results, strict=True):
        scale = max(1.0, float(np.abs(y).max()))
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * scale)


def test_custom_encoder_and_decoder_are_called_as_pytorch_calls_them():
    class Part(nn.Module):
        def forward(self, x, memory=None, **masks):
            self.masks = sorted(masks)
            return x if memory is None else x + memory

    encoder, decoder = Part(), Part()
    model = nn.Transformer(4, 2, custom_encoder=encoder, custom_decoder=decoder)
    assert model(xgrad.ones((3, 1, 4)), xgrad.ones((3, 1, 4))).tolist() == [[[2.0] * 4]] * 3
    assert encoder.masks == ["is_causal", "mask", "src_key_padding_mask"]
    assert "tgt_is_causal" in decoder.masks and "memory_key_padding_mask" in decoder.masks


def test_causal_attention_always_sees_the_additional_keys():
    x = normal(3, 1, 4)
    layer = nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)
    later = xgrad.asarray(np.triu(np.ones((3, 3), dtype=bool), 1))
    causal = layer(x, x, x, is_causal=True)
    masked = layer(x, x, x, attn_mask=later)
    for a, b in zip(causal, masked, strict=True):
        assert a.tolist() == b.tolist()
    assert causal[1].shape == (1, 3, 5) and (causal[1][:, :, 3:] > 0).all()


def test_layers_of_encoder_are_copies_with_equal_weights():
    layer = nn.TransformerEncoderLayer(4, 2, 5)
    encoder = nn.TransformerEncoder(layer, 2)
    first, second = (x.linear1.weight for x in encoder.layers)
    assert (
        first is not second and first.tolist() == second.tolist() == layer.linear1.weight.tolist()
    )


def test_causal_encoder_does_not_look_ahead():
    layer = nn.TransformerEncoderLayer(4, 2, 5, 0.0, batch_first=True)
    x, other = normal(1, 5, 4), normal(1, 5, 4, seed=1)
    changed = xgrad.concat([x[:, :3, :], other[:, 3:, :]], axis=1)
    outs = [layer(y, is_causal=True)[:, :3, :].tolist() for y in (x, changed)]
    assert np.allclose(*outs, atol=1e-6)


@pytest.mark.parametrize("batch_first", [False, True])
def test_positional_encoding_is_added_along_the_sequence(batch_first):
    layer = nn.PositionalEncoding(3, max_length=7, batch_first=batch_first)
    x = xgrad.zeros((2, 5, 3) if batch_first else (5, 2, 3))
    out = layer(x).numpy()
    expected = layer.encoding[:5, :].numpy()
    assert np.array_equal(out[1] if batch_first else out[:, 1], expected)
    assert np.allclose(expected[:, 2], np.sin(np.arange(5) / 10000 ** (2 / 3)), atol=1e-6)
    assert not layer.state_dict()


def test_learned_positional_encoding_has_gradients():
    layer = nn.PositionalEncoding(4, max_length=7, learned=True)
    xgrad.sum(layer(xgrad.zeros((5, 2, 4)))).backward()
    assert layer.encoding.grad.tolist() == [[2.0] * 4] * 5 + [[0.0] * 4] * 2
    assert list(layer.state_dict()) == ["encoding"]


ONES = "xp.ones((3, 2, 4))"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "nn.MultiheadAttention(4, 3)",
            "ValueError: MultiheadAttention: expected num_heads to divide embed_dim",
        ),
        (
            "nn.MultiheadAttention(4, 0)",
            "ValueError: MultiheadAttention: expected an int above 0 for num_heads, got 0",
        ),
        (
            "nn.MultiheadAttention(4, 2, dropout=2)",
            "ValueError: MultiheadAttention: expected p from 0 to 1, got 2",
        ),
        (
            (
                "nn.MultiheadAttention(4, 2)(xp.ones((3, 2, 5)), xp.ones((3, 2, 4)), xp.ones((3, 2,"
                " 4)))"
            ),
            (
                "ValueError: MultiheadAttention: expected query, key and value of shape (length,"
                " batch, ...) or (length, ...) that end with (4, 4, 4), got (3, 2, 5), (3, 2, 4)"
                " and (3, 2, 4)"
            ),
        ),
        (
            (
                "nn.MultiheadAttention(4, 2)(xp.ones((3, 2, 4)), xp.ones((3, 1, 4)), xp.ones((3, 1,"
                " 4)))"
            ),
            (
                "ValueError: MultiheadAttention: expected query, key and value of shape (length,"
                " batch, ...)"
            ),
        ),
        (
            f"nn.MultiheadAttention(4, 2)({ONES}, {ONES}, {ONES}, attn_mask=xp.ones((2, 3)) > 0)",
            (
                "ValueError: MultiheadAttention: expected attn_mask of shape (3, 3) or (4, 3, 3),"
                " got (2, 3)"
            ),
        ),
        (
            (
                f"nn.MultiheadAttention(4, 2)({ONES}, {ONES}, {ONES}, attn_mask=xp.ones((3, 3),"
                " dtype=xp.int64))"
            ),
            "TypeError: MultiheadAttention: expected attn_mask of bools or of float32, got int64",
        ),
        (
            (
                f"nn.MultiheadAttention(4, 2)({ONES}, {ONES}, {ONES}, key_padding_mask=xp.ones((3,"
                " 2)) > 0)"
            ),
            "ValueError: MultiheadAttention: expected key_padding_mask of shape (2, 3), got (3, 2)",
        ),
        (
            "nn.MultiheadAttention(4, 2)(*[xp.ones((3, 2, 4), dtype=xp.float64)] * 3)",
            (
                "TypeError: MultiheadAttention: expected query of float32, the dtype of weight, got"
                " float64"
            ),
        ),
        (
            "nn.TransformerEncoderLayer(4, 2, activation='sine')",
            "ValueError: TransformerEncoderLayer: expected an activation of ['relu'…], got 'sine'",
        ),
        (
            "nn.TransformerEncoderLayer(4, 3)",
            "ValueError: MultiheadAttention: expected num_heads to divide",
        ),
        (
            "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 0)",
            "ValueError: TransformerEncoder: expected an int above 0 for num_layers, got 0",
        ),
        (
            "nn.TransformerEncoder(3, 2)",
            "TypeError: TransformerEncoder: expected a module for encoder_layer, got 3",
        ),
        (
            "nn.TransformerDecoder(3, 2)",
            "TypeError: TransformerDecoder: expected a module for decoder_layer, got 3",
        ),
        (
            "nn.TransformerDecoderLayer(4, 2, activation=1)",
            "ValueError: TransformerDecoderLayer: expected an activation of ['relu'…], got 1",
        ),
        (
            "nn.Transformer(4, 2, custom_encoder=3)",
            "TypeError: Transformer: expected a module for custom_encoder, got 3",
        ),
        (
            (
                "F.scaled_dot_product_attention(*[xp.ones((h, 3, 4)) for h in (4, 3, 3)],"
                " enable_gqa=True)"
            ),
            "ValueError: scaled_dot_product_attention: expected heads of key and value that divide",
        ),
        (
            "nn.PositionalEncoding(4, 2)(xp.ones((3, 4)))",
            (
                "ValueError: PositionalEncoding: expected input of shape (length, batch, d_model)"
                " or (length, d_model), a length up to 2 and d_model = 4, got (3, 4)"
            ),
        ),
        (
            "F.scaled_dot_product_attention(xp.ones((3, 4)), xp.ones((3, 5)), xp.ones((3, 4)))",
            (
                "ValueError: scaled_dot_product_attention: expected query (..., queries, channels),"
                " key (..., keys, channels)"
            ),
        ),
        (
            "F.scaled_dot_product_attention(xp.ones((3, 4)), xp.ones((0, 4)), xp.ones((0, 4)))",
            "ValueError: scaled_dot_product_attention: expected at least one key, got shape (0, 4)",
        ),
        (
            "F.scaled_dot_product_attention(*[xp.ones((3, 4), dtype=xp.int64)] * 3)",
            "TypeError: scaled_dot_product_attention: expected a floating query, got int64",
        ),
        (
            (
                "F.scaled_dot_product_attention(*[xp.ones((3, 4))] * 3, attn_mask=xp.ones((3, 3),"
                " dtype=xp.int64))"
            ),
            (
                "TypeError: scaled_dot_product_attention: expected attn_mask of bools or floats,"
                " got int64"
            ),
        ),
        (
            "F.scaled_dot_product_attention(*[xp.ones((3, 4))] * 3, dropout_p=-1)",
            "ValueError: scaled_dot_product_attention: expected p from 0 to 1, got -1",
        ),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    check_error(call, error, nn=nn, F=nn.functional)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_shared_heads_matches_pytorch(torch, causal):
    """Also where a query has one key, so that its gradient is 0 but for rounding."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((2, 6, 3, 4), (2, 2, 3, 4), (2, 2, 3, 5))]
    results = []
    for lib, F in ((xgrad, nn.functional), (torch, torch.nn.functional)):
        inputs = [lib.asarray(array).requires_grad_() for array in arrays]
        out = F.scaled_dot_product_attention(*inputs, is_causal=causal, enable_gqa=True)
        (out * out).sum().backward()
        results.append([out.detach().numpy(), *[x.grad.numpy() for x in inputs]])
    for got, expected in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)
