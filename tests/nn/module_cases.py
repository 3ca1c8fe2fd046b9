"""The table of modules and losses: one line for each set of options and shapes.

Each case names a class of `xgrad.nn` and of `torch.nn`. Tests compare them in training and
evaluation mode, in both dtypes, on every device, check gradients by finite differences, and capture
a step: see `test_modules.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nn import image_cases
from nn.module_case import ModuleCase, case


def classes(count: int, *shape: int) -> np.ndarray:
    """Return random integers below `count`."""
    return np.random.default_rng(1).integers(0, count, shape)


LINEAR = [
    case("Linear", 3, 2, of=((5, 3),)),
    case("Linear", 3, 2, of=((2, 4, 3),), bias=False),
    case("Identity", of=((2, 3),)),
    case("Dropout", 0.0, of=((2, 3),)),
    *[case("Dropout1d", 0.0, of=(shape,)) for shape in ((2, 3), (2, 3, 4))],
    case("Dropout2d", 0.0, of=((2, 3, 4, 1),)),
]
SHAPES = [
    case("Flatten", of=((2, 3, 4),)),
    case(
        "Flatten",
        of=((2, 3, 4, 2),),
        start_axis=0,
        end_axis=2,
        torch={"start_axis": None, "end_axis": None, "start_dim": 0, "end_dim": 2},
    ),
    *[
        case("Unflatten", axis, sizes, of=(shape,))
        for axis, sizes, shape in (
            (1, (2, 3), (4, 6)),
            (-1, (2, -1), (2, 4)),
            (0, (2, 2), (4,)),
            (1, (-1, 3), (0, 6)),
        )
    ],
]
ACTIVATIONS = [
    *[
        case(name, *args, of=((2, 3, 4),))
        for name, *args in (
            ["ReLU"],
            ["Sigmoid"],
            ["Tanh"],
            ["GELU"],
            ["GELU", "tanh"],
            ["SiLU"],
            ["Mish"],
            ["ELU"],
            ["ELU", 0.5],
            ["SELU"],
            ["CELU"],
            ["CELU", 0.5],
            ["LeakyReLU"],
            ["LeakyReLU", 0.3],
            ["ReLU6"],
            ["Hardtanh"],
            ["Hardtanh", -0.5, 1.5],
            ["Hardswish"],
            ["Softplus"],
            ["Softplus", 2.0],
            ["Softplus", 2.0, 1.0],
            ["Softsign"],
            ["LogSigmoid"],
            ["Tanhshrink"],
            ["Softshrink"],
            ["Softshrink", 0.1],
            ["Hardshrink"],
            ["Hardshrink", 0.1],
            ["Threshold", 0.1, 20.0],
            ["PReLU"],
            ["PReLU", 3],
            ["PReLU", 3, 0.5],
            ["Softmax", 1],
            ["LogSoftmax", 1],
            ["GLU"],
            ["GLU", 0],
        )
    ],
    case("Hardsigmoid", of=((2, 3, 4),), torch_tolerance=1e-7),  # its derivative is 1/6 in float32
    *[case("PReLU", 3, of=((4, 3),)), case("PReLU", of=((),))],
]
_IMAGES = (3, 4, 3, 2)
NORMALIZATION = [
    *[
        case(name, 4, of=(shape,), **options)
        for name, shapes in (
            ("BatchNorm1d", [(5, 4), (3, 4, 2), (0, 4), (1, 4, 3)]),
            ("BatchNorm2d", [_IMAGES, (0, 4, 2, 2)]),
        )
        for shape in shapes
        for options in (
            {},
            {"affine": False},
            {"momentum": None},
            {"momentum": 0.5, "eps": 0.1},
            {"track_running_stats": False},
        )
    ],
    *[
        case(name, 4, of=(shape,), **options)
        for name, shapes in (
            ("InstanceNorm1d", [(2, 4, 3), (4, 3)]),
            ("InstanceNorm2d", [_IMAGES, (4, 3, 2)]),
        )
        for shape in shapes
        for options in (
            {},
            {"affine": True, "eps": 0.1},
            {"affine": True, "track_running_stats": True},
        )
    ],
    *[
        case("LayerNorm", *args, of=(shape,), **options)
        for args, shape, options in (
            ((4,), (5, 4), {}),
            ((4,), (4,), {}),
            ((4,), (2, 3, 4), {"eps": 0.5}),
            ((4,), (2, 4), {"bias": False}),
            (([3, 4],), (2, 3, 4), {}),
            (((3, 4),), (3, 4), {"elementwise_affine": False}),
            ((4,), (0, 4), {}),
        )
    ],
    *[
        case("RMSNorm", *args, of=(shape,), **options)
        for args, shape, options in (
            ((4,), (5, 4), {}),
            ((4,), (4,), {"eps": 0.5}),
            (([3, 4],), (2, 3, 4), {}),
            ((4,), (2, 3, 4), {"elementwise_affine": False}),
            ((4,), (0, 4), {}),
        )
    ],
    *[
        case("GroupNorm", groups, 4, of=(shape,), **options)
        for groups, shape, options in (
            (2, _IMAGES, {}),
            (1, (2, 4, 3), {}),
            (4, (2, 4, 3), {"eps": 0.5}),
            (2, (3, 4), {}),
            (2, (2, 4, 3), {"affine": False}),
            (2, (0, 4, 3), {}),
        )
    ],
]
EMBEDDING = [
    case("Embedding", 5, 3, *args, of=(classes(4, *shape),))
    for args in (
        (),
        (4,),
    )  # with padding, the gradient is not the derivative: see `test_embedding.py`
    for shape in ((4,), (2, 6), (), (0, 2))
]
EMBEDDING += [
    case("EmbeddingBag", 5, 3, of=inputs, mode=mode, **options)
    for mode in ("sum", "mean", "max")
    for inputs, options in (
        ((classes(5, 2, 4),), {}),
        ((classes(5, 2, 4),), {"padding_idx": 2}),
        ((classes(5, 7), np.array([0, 3, 3, 6])), {}),
        ((classes(5, 7), np.array([0, 3, 5, 7])), {"include_last_offset": True}),
        ((classes(5, 7), np.array([0, 1, 5, 7])), {"padding_idx": 4}),
    )
]
EMBEDDING += [
    case("EmbeddingBag", 5, 3, of=(numbers, offsets, numbers.shape), mode="sum", **options)
    for numbers, offsets in ((classes(5, 7), np.array([0, 2, 6])),)
    for options in ({}, {"padding_idx": 0})
]
RECURRENT = [
    *[
        case(f"{name}Cell", 3, 4, of=((5, 3),), bias=bias)
        for name in ("RNN", "GRU", "LSTM")
        for bias in (True, False)
    ],
    *[case(f"{name}Cell", 3, 2, of=((3,),)) for name in ("RNN", "GRU", "LSTM")],
    case("RNNCell", 3, 2, of=((5, 3), (5, 2)), nonlinearity="relu"),
    case("GRUCell", 3, 2, of=((5, 3), (5, 2))),
    *[
        case(name, 3, 2, of=(shape,), **options)
        for name in ("RNN", "GRU", "LSTM")
        for shape, options in (
            ((5, 2, 3), {}),
            ((1, 2, 3), {}),
            ((4, 3), {}),
            ((5, 0, 3), {}),
            ((2, 4, 3), {"batch_first": True}),
            ((4, 2, 3), {"bias": False}),
            ((4, 2, 3), {"bidirectional": True}),
            ((2, 4, 3), {"num_layers": 2, "bidirectional": True, "batch_first": True}),
        )
    ],
    *[case(name, 3, 2, of=((4, 2, 3), (3, 2, 2)), num_layers=3) for name in ("RNN", "GRU")],
    *[
        case("RNN", 3, 2, of=((4, 2, 3),), nonlinearity="relu", bidirectional=both)
        for both in (False, True)
    ],
    case("GRU", 3, 2, of=((4, 3), (2, 2)), bidirectional=True),
    case("LSTM", 3, 3, of=((4, 2, 3),), proj_size=2),
    case("LSTM", 3, 3, of=((4, 3),), proj_size=1, num_layers=2, bidirectional=True, bias=False),
]
CONVOLUTION = [
    case("Conv1d", 2, 3, 3, of=((2, 2, 7),)),
    case("Conv1d", 2, 4, 3, of=((2, 2, 9),), stride=2, padding=2, groups=2),
    case("Conv1d", 3, 2, 2, of=((3, 6),), dilation=3, bias=False),
    case("Conv1d", 2, 2, 5, of=((2, 2, 6),), padding="same"),
    case("Conv2d", 1, 2, 3, of=((2, 1, 5, 6),)),
    case("Conv2d", 2, 3, (3, 2), of=((2, 2, 5, 6),), stride=(2, 1), padding=(1, 0)),
    case("Conv2d", 2, 3, 3, of=((1, 2, 6, 5),), stride=2, padding=1, bias=False),
    case("Conv2d", 2, 2, 3, of=((2, 2, 7, 7),), stride=3, padding=1, dilation=2),
    case("Conv2d", 4, 4, 3, of=((2, 4, 4, 4),), padding=1, groups=4),
    case("Conv2d", 4, 6, 2, of=((2, 4, 4, 5),), stride=2, groups=2),
    case("Conv2d", 3, 2, 1, of=((2, 3, 3, 4),)),
    case("Conv2d", 3, 2, 1, of=((2, 3, 4, 5),), stride=2),
    case("Conv2d", 2, 3, 3, of=((2, 4, 5),), padding=1),
    case("Conv2d", 2, 2, (4, 3), of=((2, 2, 5, 4),), padding="same", dilation=2),
    case("Conv2d", 2, 2, 3, of=((2, 2, 5, 4),), padding="valid"),
    case("Conv2d", 1, 2, 5, of=((2, 1, 5, 5),)),
    *[
        case("Conv2d", 2, 2, 3, of=((2, 2, 4, 5),), padding=(1, 2), padding_mode=mode)
        for mode in ("reflect", "replicate", "circular")
    ],
    case("ConvTranspose1d", 2, 3, 3, of=((2, 2, 4),)),
    case(
        "ConvTranspose1d", 4, 2, 3, of=((2, 4, 4),), stride=3, padding=1, output_padding=2, groups=2
    ),
    case("ConvTranspose1d", 2, 2, 2, of=((2, 4),), dilation=3, output_padding=2, bias=False),
    case("ConvTranspose2d", 2, 3, 3, of=((2, 2, 3, 4),)),
    case("ConvTranspose2d", 2, 1, 2, of=((2, 2, 3, 4),), stride=2),
    case(
        "ConvTranspose2d",
        4,
        2,
        (3, 2),
        of=((1, 4, 3, 4),),
        stride=(2, 1),
        padding=(1, 0),
        groups=2,
        bias=False,
    ),
    case(
        "ConvTranspose2d",
        2,
        2,
        3,
        of=((2, 2, 3, 3),),
        stride=2,
        padding=1,
        output_padding=1,
        dilation=2,
    ),
    case("ConvTranspose2d", 2, 2, 3, of=((2, 3, 3),), padding=2, output_padding=(1, 2), dilation=3),
]
POOLING = [
    case("MaxPool1d", 2, of=((2, 3, 7),)),
    case("MaxPool1d", 3, of=((3, 8),), stride=2, padding=1, dilation=2),
    case("MaxPool2d", 2, of=((2, 3, 4, 6),)),
    case("MaxPool2d", 3, of=((2, 2, 7, 6),), stride=2, padding=1),
    case("MaxPool2d", (3, 2), of=((2, 5, 6),), stride=(1, 2), dilation=(2, 1)),
    case("MaxPool2d", 3, of=((2, 2, 6, 7),), stride=2, ceil_mode=True),
    case("MaxPool2d", 2, of=((1, 2, 5, 4),), stride=3, padding=1, ceil_mode=True),
    case("AvgPool1d", 2, of=((2, 3, 7),)),
    case("AvgPool1d", 3, of=((3, 8),), stride=2, padding=1, count_include_pad=False),
    case("AvgPool2d", 2, of=((2, 3, 4, 6),)),
    case("AvgPool2d", (3, 2), of=((2, 3, 5, 6),), stride=(1, 2), padding=(1, 0)),
    *[
        case(
            "AvgPool2d",
            3,
            of=((2, 2, 6, 5),),
            stride=2,
            padding=1,
            ceil_mode=True,
            count_include_pad=count,
        )
        for count in (True, False)
    ],
    case("AdaptiveAvgPool1d", 3, of=((2, 3, 6),)),
    case("AdaptiveAvgPool1d", 5, of=((3, 7),)),
    case("AdaptiveAvgPool2d", 1, of=((2, 3, 4, 5),)),
    case("AdaptiveAvgPool2d", (3, None), of=((2, 3, 7, 4),)),
    case("AdaptiveAvgPool2d", 4, of=((2, 3, 6, 3),)),
    case("AdaptiveMaxPool1d", 3, of=((2, 3, 6),)),
    case("AdaptiveMaxPool1d", 5, of=((3, 7),)),
    case("AdaptiveMaxPool2d", 1, of=((2, 3, 4, 5),)),
    case("AdaptiveMaxPool2d", (3, None), of=((2, 3, 7, 4),)),
    case("AdaptiveMaxPool2d", 4, of=((2, 3, 6, 3),)),
]
WEIGHTS = np.array([0.5, 2.0, 1.5])
SHARES = np.random.default_rng(1).uniform(0.1, 0.9, (4, 3))
COUNTS = np.array([[0.5, 2.0, 3.0]] * 4)
SIGNS = 2 * classes(2, 4, 3) - 1
_LATER = np.triu(np.ones((3, 3), dtype=bool), 1)
_PADDING = np.array([[False, False, True], [False, True, True]])
_MEMORY = np.array([[False] * 4 + [True], [False] * 3 + [True] * 2, [True] + [False] * 4])


def _attention(
    shape: tuple[int, ...], *args: Any, call: Mapping[str, Any] | None = None, **options: Any
) -> ModuleCase:
    """Return a case of self-attention of three tensors of one shape."""
    return case("MultiheadAttention", *(args or (4, 2)), of=(shape,) * 3, call=call, **options)


ATTENTION = [
    *[
        _attention(shape, call=call)
        for shape in ((3, 2, 4), (3, 4))
        for call in (
            {},
            {"need_weights": False},
            {"average_attn_weights": False},
            {"attn_mask": _LATER},
        )
    ],
    _attention((2, 3, 4), batch_first=True, bias=False),
    *[
        _attention((2, 3, 4), batch_first=True, call={"key_padding_mask": _PADDING, **more})
        for more in (
            {},
            {"need_weights": False},
            {"attn_mask": _LATER},
            {"attn_mask": _LATER, "is_causal": True},
        )
    ],
    _attention((3, 2, 4), call={"attn_mask": np.stack([_LATER] * 2 + [_LATER.T] * 2)}),
    case("MultiheadAttention", 4, 1, of=((3, 2, 4), (5, 2, 3), (5, 2, 6)), kdim=3, vdim=6),
    case(
        "MultiheadAttention",
        4,
        2,
        of=((2, 3, 4), (2, 5, 4), (2, 5, 4)),
        batch_first=True,
        call={"need_weights": False},
    ),
    *[
        case("TransformerEncoderLayer", 4, 2, 5, 0.0, of=((3, 2, 4),), call=call, **options)
        for options, call in (
            ({}, {}),
            ({"norm_first": True}, {}),
            ({"activation": "gelu"}, {}),
            ({"bias": False}, {}),
            ({"layer_norm_eps": 0.1}, {"src_mask": _LATER}),
        )
    ],
    *[
        _attention(shape, add_bias_kv=bias, add_zero_attn=zero, call=call)
        for bias, zero in ((True, False), (False, True), (True, True))
        for shape, call in (
            ((3, 2, 4), {}),
            ((3, 4), {"need_weights": False}),
            ((3, 2, 4), {"attn_mask": _LATER, "average_attn_weights": False}),
            ((3, 2, 4), {"attn_mask": _LATER, "is_causal": True, "key_padding_mask": _PADDING}),
        )
    ],
    _attention((3, 4), add_bias_kv=True, call={"attn_mask": np.stack([_LATER, _LATER.T])}),
    case("TransformerEncoderLayer", 4, 2, 5, 0.0, of=((3, 4),)),
    *[
        case(
            "TransformerDecoderLayer", 4, 2, 5, 0.0, of=((3, 2, 4), (5, 2, 4)), call=call, **options
        )
        for options, call in (
            ({}, {}),
            ({"norm_first": True, "layer_norm_eps": 0.1}, {"tgt_key_padding_mask": _PADDING}),
            ({"activation": "gelu", "bias": False}, {"tgt_mask": _LATER, "tgt_is_causal": True}),
            ({}, {"memory_mask": _MEMORY, "memory_key_padding_mask": _MEMORY[:2]}),
        )
    ],
    case("TransformerDecoderLayer", 4, 2, 5, 0.0, of=((3, 4), (5, 4))),
    case("Transformer", 4, 2, 2, 1, 5, 0.0, of=((5, 2, 4), (3, 2, 4))),
    case(
        "Transformer",
        4,
        2,
        1,
        2,
        5,
        0.0,
        of=((2, 5, 4), (2, 3, 4)),
        batch_first=True,
        norm_first=True,
        bias=False,
        call={"tgt_mask": _LATER, "src_key_padding_mask": _MEMORY[1:]},
    ),
    case(
        "TransformerEncoderLayer",
        4,
        2,
        5,
        0.0,
        of=((2, 3, 4),),
        batch_first=True,
        norm_first=True,
        call={"src_mask": _LATER, "is_causal": True},
    ),
]
LOSSES = [
    *[
        case("CrossEntropyLoss", of=((4, 3), classes(3, 4)), **options)
        for options in ({}, {"reduction": "sum"}, {"reduction": "none"}, {"label_smoothing": 0.1})
    ],
    *[
        case(name, of=(shape, classes(3, *shape[:1], *shape[2:])), reduction=reduction, **options)
        for name in ("CrossEntropyLoss", "NLLLoss")
        for shape in ((4, 3), (2, 3, 2))
        for reduction in ("mean", "sum", "none")
        for options in (
            {"weight": WEIGHTS},
            {"ignore_index": 1},
            {"weight": WEIGHTS, "ignore_index": 0},
        )
    ],
    *[
        case(
            "CrossEntropyLoss",
            of=((4, 3), target),
            label_smoothing=0.2,
            reduction=reduction,
            **ignored,
            **options,
        )
        for target, ignored in (
            (np.array([0, -100, 2, 1]), {"ignore_index": -100}),
            ((4, 3), {}),
        )  # no default on cuda
        for reduction in ("mean", "sum", "none")
        for options in ({}, {"weight": WEIGHTS})
    ],
    *[
        case(name, of=((4, 3), (4, 3)), reduction=reduction, **options)
        for reduction in ("mean", "sum", "none")
        for name, options in (
            ("MSELoss", {}),
            ("L1Loss", {}),
            ("SmoothL1Loss", {}),
            ("SmoothL1Loss", {"beta": 0.3}),
            ("SmoothL1Loss", {"beta": 0.0}),
            ("HuberLoss", {}),
            ("HuberLoss", {"delta": 0.3}),
            ("BCEWithLogitsLoss", {}),
            ("BCEWithLogitsLoss", {"pos_weight": WEIGHTS, "weight": WEIGHTS}),
        )
    ],
    *[
        case("KLDivLoss", of=((4, 3), (4, 3)), reduction=reduction, log_target=True)
        for reduction in ("batchmean", "sum", "none")  # PyTorch warns of the mean
    ],
    *[
        case(name, of=inputs, reduction=reduction, **options)
        for reduction in ("mean", "sum", "none")
        for name, inputs, options in (
            ("BCELoss", (SHARES, SHARES[::-1]), {}),
            ("BCELoss", (SHARES, SHARES[::-1]), {"weight": WEIGHTS}),
            ("PoissonNLLLoss", ((4, 3), COUNTS), {}),
            ("PoissonNLLLoss", (SHARES, COUNTS), {"log_input": False, "full": True, "eps": 0.1}),
            ("GaussianNLLLoss", ((4, 3), (4, 3), SHARES), {}),
            ("GaussianNLLLoss", ((4, 3), (4, 3), SHARES[:, :1]), {"full": True}),
            ("GaussianNLLLoss", ((2, 4, 3), (2, 4, 3), SHARES.T[:2]), {}),
            ("HingeEmbeddingLoss", ((4, 3), SIGNS), {}),
            ("HingeEmbeddingLoss", ((4, 3), SIGNS), {"margin": 0.3}),
            ("CosineEmbeddingLoss", ((4, 3), (4, 3), SIGNS[:, 0]), {}),
            ("CosineEmbeddingLoss", ((3,), (3,), np.array(1)), {"margin": -0.5}),
            ("MarginRankingLoss", ((4, 3), (4, 3), SIGNS), {"margin": 0.5}),
            ("SoftMarginLoss", ((4, 3), SIGNS), {}),
            ("TripletMarginLoss", ((4, 3), (4, 3), (4, 3)), {}),
            (
                "TripletMarginLoss",
                ((4, 3), (4, 3), (4, 3)),
                {"margin": 2.0, "p": 1.0, "swap": True},
            ),
            ("TripletMarginLoss", ((3,), (3,), (3,)), {"margin": 3.0, "p": 3.0, "eps": 0.1}),
            ("MultiMarginLoss", ((4, 3), classes(3, 4)), {}),
            (
                "MultiMarginLoss",
                ((4, 3), classes(3, 4)),
                {"p": 2, "margin": 0.5, "weight": WEIGHTS},
            ),
            ("MultiMarginLoss", ((3,), classes(3)), {}),
            ("MultiLabelSoftMarginLoss", ((4, 3), (4, 3)), {}),
            ("MultiLabelSoftMarginLoss", ((3,), (3,)), {"weight": WEIGHTS}),
        )
    ],
]
ADAPTIVE = [
    case("AdaptiveLogSoftmaxWithLoss", 8, 9, cutoffs, of=((5, 8), classes(9, 5)), **options)
    for cutoffs, options in (
        ([4], {}),
        ([2, 5, 7], {"div_value": 2.0, "head_bias": True}),
        ([1, 8], {"div_value": 1.0}),
    )
]
ADAPTIVE += [case("AdaptiveLogSoftmaxWithLoss", 8, 9, [4], of=((8,), np.array(6)))]
CASES = [
    *LINEAR,
    *SHAPES,
    *ACTIVATIONS,
    *NORMALIZATION,
    *EMBEDDING,
    *CONVOLUTION,
    *POOLING,
    *RECURRENT,
    *ATTENTION,
    *LOSSES,
    *ADAPTIVE,
    *image_cases.CASES,
]
