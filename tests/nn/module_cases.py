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
    torch_tolerance : float
        The error of PyTorch in float64, where it is larger than that of float64.
    """

    name: str
    args: tuple[Any, ...]
    inputs: tuple[Input, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    torch_options: Mapping[str, Any] = field(default_factory=dict)
    call: Mapping[str, Any] = field(default_factory=dict)
    torch_tolerance: float = 0.0

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
    torch_tolerance: float = 0.0,
    **options: Any,
) -> ModuleCase:
    return ModuleCase(name, args, of, options, torch or {}, call or {}, torch_tolerance)


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
        for axis, sizes, shape in ((1, (2, 3), (4, 6)), (-1, (2, -1), (2, 4)), (0, (2, 2), (4,)), (1, (-1, 3), (0, 6)))
    ],
]
ACTIVATIONS = [
    *[case(name, *args, of=((2, 3, 4),))
      for name, *args in (
          ["ReLU"], ["Sigmoid"], ["Tanh"], ["GELU"], ["GELU", "tanh"], ["SiLU"], ["Mish"], ["ELU"], ["ELU", 0.5],
          ["SELU"], ["CELU"], ["CELU", 0.5], ["LeakyReLU"], ["LeakyReLU", 0.3], ["ReLU6"], ["Hardtanh"],
          ["Hardtanh", -0.5, 1.5], ["Hardswish"], ["Softplus"], ["Softplus", 2.0],
          ["Softplus", 2.0, 1.0], ["Softsign"], ["LogSigmoid"], ["Tanhshrink"], ["Softshrink"], ["Softshrink", 0.1],
          ["Hardshrink"], ["Hardshrink", 0.1], ["Threshold", 0.1, 20.0], ["PReLU"], ["PReLU", 3], ["PReLU", 3, 0.5],
          ["Softmax", 1], ["LogSoftmax", 1], ["GLU"], ["GLU", 0])],
    case("Hardsigmoid", of=((2, 3, 4),), torch_tolerance=1e-7),  # its derivative is 1/6 in float32
    *[case("PReLU", 3, of=((4, 3),)), case("PReLU", of=((),))],
]  # fmt: skip
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
EMBEDDING = [
    case("Embedding", 5, 3, *args, of=(classes(4, *shape),))
    for args in ((), (4,))  # with padding, the gradient is not the derivative: see `test_embedding.py`
    for shape in ((4,), (2, 6), (), (0, 2))
]
CONVOLUTION: list[ModuleCase] = []
POOLING: list[ModuleCase] = []
RECURRENT: list[ModuleCase] = []
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
