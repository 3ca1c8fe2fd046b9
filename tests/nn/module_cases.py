"""The table of modules and losses: one line for each set of options and shapes.

Each case names a class of `xgrad.nn` and of `torch.nn`. Tests compare them in training and evaluation mode, in both
dtypes, on every device, check gradients by finite differences, and capture a step: see `test_modules.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Input = tuple[int, ...] | np.ndarray


@dataclass(frozen=True)
class ModuleCase:
    """One case.

    Attributes
    ----------
    name : str
        The class.
    args : tuple
        Its positional arguments, in both libraries.
    inputs : tuple of (tuple of int or ndarray)
        The arguments of the call: shapes, of normal random numbers that require gradients, or arrays of other numbers.
    options : mapping
        Its keyword arguments.
    torch_options : mapping
        Those that PyTorch calls otherwise, such as ``dim``, and None for the name that they replace.
    call : mapping
        Keyword arguments of the call, in both libraries; arrays become tensors.
    """

    name: str
    args: tuple[Any, ...]
    inputs: tuple[Input, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    torch_options: Mapping[str, Any] = field(default_factory=dict)
    call: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [*map(str, self.args), *(f"{key}={value}" for key, value in self.options.items())]
        shapes = ",".join(str(x if isinstance(x, tuple) else x.shape) for x in self.inputs)
        return f"{self.name}({','.join(parts)}) of {shapes}".replace(" ", "")

    def named_for_torch(self) -> dict[str, Any]:
        """Return the keyword arguments of PyTorch's class."""
        options = {**self.options, **self.torch_options}
        return {key: value for key, value in options.items() if key not in self.torch_options or value is not None}


def case(
    name: str,
    *args: Any,
    of: tuple[Input, ...],
    torch: Mapping[str, Any] | None = None,
    call: Mapping[str, Any] | None = None,
    **options: Any,
) -> ModuleCase:
    return ModuleCase(name, args, of, options, torch or {}, call or {})


def classes(count: int, *shape: int) -> np.ndarray:
    """Return random integers below `count`."""
    return np.random.default_rng(1).integers(0, count, shape)


LINEAR = [
    case("Linear", 3, 2, of=((5, 3),)),
    case("Linear", 3, 2, of=((2, 4, 3),), bias=False),
    case("Identity", of=((2, 3),)),
    case("Dropout", 0.0, of=((2, 3),)),
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
]
ACTIVATIONS = [case(name, of=((2, 3),)) for name in ("ReLU", "Sigmoid", "Tanh")]
_IMAGES = (3, 4, 3, 2)
NORMALIZATION = [
    *[case(name, 4, of=(shape,), **options)
      for name, shapes in (
          ("BatchNorm1d", [(5, 4), (3, 4, 2), (0, 4), (1, 4, 3)]), ("BatchNorm2d", [_IMAGES, (0, 4, 2, 2)]))
      for shape in shapes
      for options in (
          {}, {"affine": False}, {"momentum": None}, {"momentum": 0.5, "eps": 0.1}, {"track_running_stats": False})],
    *[case(name, 4, of=(shape,), **options)
      for name, shapes in (("InstanceNorm1d", [(2, 4, 3), (4, 3)]), ("InstanceNorm2d", [_IMAGES, (4, 3, 2)]))
      for shape in shapes
      for options in ({}, {"affine": True, "eps": 0.1}, {"affine": True, "track_running_stats": True})],
    *[case("LayerNorm", *args, of=(shape,), **options)
      for args, shape, options in (
          ((4,), (5, 4), {}), ((4,), (4,), {}), ((4,), (2, 3, 4), {"eps": 0.5}), ((4,), (2, 4), {"bias": False}),
          (([3, 4],), (2, 3, 4), {}), (((3, 4),), (3, 4), {"elementwise_affine": False}), ((4,), (0, 4), {}))],
    *[case("RMSNorm", *args, of=(shape,), **options)
      for args, shape, options in (
          ((4,), (5, 4), {}), ((4,), (4,), {"eps": 0.5}), (([3, 4],), (2, 3, 4), {}),
          ((4,), (2, 3, 4), {"elementwise_affine": False}), ((4,), (0, 4), {}))],
    *[case("GroupNorm", groups, 4, of=(shape,), **options)
      for groups, shape, options in (
          (2, _IMAGES, {}), (1, (2, 4, 3), {}), (4, (2, 4, 3), {"eps": 0.5}), (2, (3, 4), {}),
          (2, (2, 4, 3), {"affine": False}), (2, (0, 4, 3), {}))],
]  # fmt: skip
EMBEDDING: list[ModuleCase] = []
RECURRENT = [
    *[case(f"{name}Cell", 3, 4, of=((5, 3),), bias=bias) for name in ("RNN", "GRU", "LSTM") for bias in (True, False)],
    *[case(f"{name}Cell", 3, 2, of=((3,),)) for name in ("RNN", "GRU", "LSTM")],
    case("RNNCell", 3, 2, of=((5, 3), (5, 2)), nonlinearity="relu"),
    case("GRUCell", 3, 2, of=((5, 3), (5, 2))),
    *[case(name, 3, 2, of=(shape,), **options) for name in ("RNN", "GRU", "LSTM") for shape, options in (
        ((5, 2, 3), {}), ((1, 2, 3), {}), ((4, 3), {}), ((5, 0, 3), {}), ((2, 4, 3), {"batch_first": True}),
        ((4, 2, 3), {"bias": False}), ((4, 2, 3), {"bidirectional": True}),
        ((2, 4, 3), {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    )],
    *[case(name, 3, 2, of=((4, 2, 3), (3, 2, 2)), num_layers=3) for name in ("RNN", "GRU")],
    *[case("RNN", 3, 2, of=((4, 2, 3),), nonlinearity="relu", bidirectional=both) for both in (False, True)],
    case("GRU", 3, 2, of=((4, 3), (2, 2)), bidirectional=True),
]  # fmt: skip
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
    case("ConvTranspose1d", 4, 2, 3, of=((2, 4, 4),), stride=3, padding=1, output_padding=2, groups=2),
    case("ConvTranspose1d", 2, 2, 2, of=((2, 4),), dilation=3, output_padding=2, bias=False),
    case("ConvTranspose2d", 2, 3, 3, of=((2, 2, 3, 4),)),
    case("ConvTranspose2d", 2, 1, 2, of=((2, 2, 3, 4),), stride=2),
    case("ConvTranspose2d", 4, 2, (3, 2), of=((1, 4, 3, 4),), stride=(2, 1), padding=(1, 0), groups=2, bias=False),
    case("ConvTranspose2d", 2, 2, 3, of=((2, 2, 3, 3),), stride=2, padding=1, output_padding=1, dilation=2),
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
        case("AvgPool2d", 3, of=((2, 2, 6, 5),), stride=2, padding=1, ceil_mode=True, count_include_pad=count)
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
ATTENTION: list[ModuleCase] = []
LOSSES = [
    *[
        case("CrossEntropyLoss", of=((4, 3), classes(3, 4)), **options)
        for options in ({}, {"reduction": "sum"}, {"reduction": "none"}, {"label_smoothing": 0.1})
    ],
    *[case("MSELoss", of=((4, 3), (4, 3)), reduction=reduction) for reduction in ("mean", "sum", "none")],
]
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
]
