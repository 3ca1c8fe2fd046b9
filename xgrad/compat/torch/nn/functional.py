"""`torch.nn.functional`: a table of signatures over `xgrad.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xgrad
from xgrad.compat.torch.nn.functional_pooling import max_pool, max_unpool
from xgrad.compat.torch.signatures import adapted
from xgrad.compat.torch.tensor import as_torch
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.nn import functional as F
from xgrad.support.hints import shown

_LOSS = "size_average~=None reduce~=None reduction='mean'"
_CONVOLUTION = "input weight bias=None stride=1 padding=0 dilation=1 groups=1"
_TRANSPOSED = "input weight bias=None stride=1 padding=0 output_padding=0 groups=1 dilation=1"
_POOL = "input kernel_size stride=None padding=0"
_AVERAGE = f"{_POOL} ceil_mode=False count_include_pad=True"
_SDPA = "query key value attn_mask=None dropout_p=0.0 is_causal=False * scale=None enable_gqa=False"

#: PyTorch's signatures of functions that xgrad has under the same name: see `signatures`.
SIGNATURES: dict[str, str] = {
    # activations
    "celu": "input alpha=1.0 inplace=False",
    "elu": "input alpha=1.0 inplace=False",
    "gelu": "input * approximate='none'",
    "glu": "input dim>axis=-1",
    "gumbel_softmax": "logits tau=1.0 hard=False eps~=1e-10 dim>axis=-1",
    "hardshrink": "input lambd=0.5",
    "hardsigmoid": "input inplace=False",
    "hardswish": "input inplace=False",
    "hardtanh": "input min_val=-1.0 max_val=1.0 inplace=False",
    "leaky_relu": "input negative_slope=0.01 inplace=False",
    "logsigmoid": "input",
    "mish": "input inplace=False",
    "prelu": "input weight",
    "rrelu": "input lower=0.125 upper=0.3333333333333333 training=False inplace=False",
    "relu": "input inplace=False",
    "relu6": "input inplace=False",
    "selu": "input inplace=False",
    "sigmoid": "input",
    "silu": "input inplace=False",
    "softplus": "input beta=1.0 threshold=20.0",
    "softshrink": "input lambd=0.5",
    "softsign": "input",
    "tanh": "input",
    "tanhshrink": "input",
    "threshold": "input threshold value inplace=False",
    # dropout
    "dropout": "input p=0.5 training=True inplace=False",
    "dropout1d": "input p=0.5 training=True inplace=False",
    "dropout2d": "input p=0.5 training=True inplace=False",
    "dropout3d": "input p=0.5 training=True inplace=False",
    "alpha_dropout": "input p=0.5 training=False inplace=False",
    "feature_alpha_dropout": "input p=0.5 training=False inplace=False",
    # linear functions, convolutions, embeddings, attention
    "conv1d": _CONVOLUTION,
    "conv2d": _CONVOLUTION,
    "conv3d": _CONVOLUTION,
    "conv_transpose1d": _TRANSPOSED,
    "conv_transpose2d": _TRANSPOSED,
    "conv_transpose3d": _TRANSPOSED,
    "bilinear": "input1 input2 weight bias=None",
    "embedding": "input weight padding_idx=None max_norm=None norm_type=2.0"
    " scale_grad_by_freq=False sparse!=False",
    "embedding_bag": "input weight offsets=None max_norm=None norm_type=2.0"
    " scale_grad_by_freq=False mode='mean' sparse!=False per_sample_weights=None"
    " include_last_offset=False padding_idx=None",
    "linear": "input weight bias=None",
    "scaled_dot_product_attention": _SDPA,
    # pooling
    **dict.fromkeys((f"adaptive_avg_pool{n}d" for n in (1, 2, 3)), "input output_size"),
    **dict.fromkeys(
        (f"adaptive_max_pool{n}d" for n in (1, 2, 3)), "input output_size return_indices=False"
    ),
    "avg_pool1d": _AVERAGE,
    "avg_pool2d": f"{_AVERAGE} divisor_override=None",
    "avg_pool3d": f"{_AVERAGE} divisor_override=None",
    **dict.fromkeys(
        (f"lp_pool{n}d" for n in (1, 2, 3)),
        "input norm_type kernel_size stride=None ceil_mode=False",
    ),
    **dict.fromkeys(
        (f"max_pool{n}d" for n in (1, 2, 3)),
        f"{_POOL} dilation=1 ceil_mode=False return_indices=False",
    ),
    **dict.fromkeys(
        (f"max_unpool{n}d" for n in (1, 2, 3)),
        "input indices kernel_size stride=None padding=0 output_size=None",
    ),
    # images
    "affine_grid": "theta size align_corners=None",
    "channel_shuffle": "input groups",
    "fold": "input output_size kernel_size dilation=1 padding=0 stride=1",
    "grid_sample": "input grid mode='bilinear' padding_mode='zeros' align_corners=None",
    "interpolate": "input size=None scale_factor=None mode='nearest' align_corners=None"
    " recompute_scale_factor=None antialias=False",
    "pixel_shuffle": "input upscale_factor",
    "pixel_unshuffle": "input downscale_factor",
    "unfold": "input kernel_size dilation=1 padding=0 stride=1",
    "upsample": "input size=None scale_factor=None mode='nearest' align_corners=None",
    # normalization and distances
    "batch_norm": "input running_mean running_var weight=None bias=None training=False"
    " momentum=0.1 eps=1e-5",
    "cosine_similarity": "x1 x2 dim>axis=1 eps=1e-8",
    "group_norm": "input num_groups weight=None bias=None eps=1e-5",
    "instance_norm": "input running_mean=None running_var=None weight=None bias=None"
    " use_input_stats=True momentum=0.1 eps=1e-5",
    "layer_norm": "input normalized_shape weight=None bias=None eps=1e-5",
    "local_response_norm": "input size alpha=1e-4 beta=0.75 k=1.0",
    "normalize": "input p=2.0 dim>axis=1 eps=1e-12",
    "pairwise_distance": "x1 x2 p=2.0 eps=1e-6 keepdim>keepdims=False",
    "rms_norm": "input normalized_shape weight=None eps=None",
    # losses
    "binary_cross_entropy": f"input target weight=None {_LOSS}",
    "binary_cross_entropy_with_logits": f"input target weight=None {_LOSS} pos_weight=None",
    "cosine_embedding_loss": f"input1 input2 target margin=0.0 {_LOSS}",
    "cross_entropy": "input target weight=None size_average~=None ignore_index=-100 reduce~=None"
    " reduction='mean' label_smoothing=0.0",
    "ctc_loss": "log_probs targets input_lengths target_lengths blank=0 reduction='mean'"
    " zero_infinity=False",
    "gaussian_nll_loss": "input target var full=False eps=1e-6 reduction='mean'",
    "hinge_embedding_loss": f"input target margin=1.0 {_LOSS}",
    "huber_loss": "input target reduction='mean' delta=1.0 weight!=None",
    "kl_div": f"input target {_LOSS} log_target=False",
    "l1_loss": f"input target {_LOSS} weight!=None",
    "margin_ranking_loss": f"input1 input2 target margin=0.0 {_LOSS}",
    "mse_loss": f"input target {_LOSS} weight!=None",
    "multi_margin_loss": f"input target p=1 margin=1.0 weight=None {_LOSS}",
    "multilabel_margin_loss": f"input target {_LOSS}",
    "multilabel_soft_margin_loss": f"input target weight=None {_LOSS}",
    "nll_loss": "input target weight=None size_average~=None ignore_index=-100 reduce~=None"
    " reduction='mean'",
    "poisson_nll_loss": "input target log_input=True full=False size_average~=None eps=1e-8"
    " reduce~=None reduction='mean'",
    "smooth_l1_loss": f"input target {_LOSS} beta=1.0",
    "soft_margin_loss": f"input target {_LOSS}",
    "triplet_margin_loss": f"anchor positive negative margin=1.0 p=2.0 eps=1e-6 swap=False {_LOSS}",
    "triplet_margin_with_distance_loss": "anchor positive negative * distance_function=None"
    " margin=1.0 swap=False reduction='mean'",
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: adapted(f"torch.nn.functional.{name}", text, getattr(F, name))
    for name, text in SIGNATURES.items()
}


def _in_place(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def call(input: Any, *args: Any, **options: Any) -> Any:
        return function(input, *args, inplace=True, **options)

    call.__name__ = call.__qualname__ = f"{name}_"
    return call


FUNCTIONS.update(
    {
        f"{name}{n}d": adapt(f"{name}{n}d", SIGNATURES[f"{name}{n}d"], n)
        for name, adapt in (("max_pool", max_pool), ("max_unpool", max_unpool))
        for n in (1, 2, 3)
    }
)
FUNCTIONS.update(
    {
        f"{name}_": _in_place(name)
        for name in "celu elu hardtanh leaky_relu relu rrelu selu threshold".split()
    }
)


def _implied_dim(name: str, input: Any, dim: int | None) -> int:
    """Return the axis of a softmax; without one, PyTorch takes 0 or 1, deprecated."""
    return dim if dim is not None else 0 if input.ndim in (0, 1, 3) else 1


def _softmax(name: str, op: Callable[..., Any], sign: int = 1) -> Callable[..., Any]:
    def call(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        x = input if dtype is None else xgrad.astype(input, dtype, copy=False)
        if not x.ndim:
            return as_torch(op(xgrad.reshape(x * sign, (1,)), axis=0)[0])
        return as_torch(op(x if sign == 1 else -x, axis=_implied_dim(name, x, dim)))

    call.__name__ = call.__qualname__ = name
    return call


softmax = _softmax("softmax", F.softmax)
log_softmax = _softmax("log_softmax", F.log_softmax)
softmin = _softmax("softmin", F.softmax, -1)

_PADDING_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """Return a tensor with more elements before and after its last axes, or fewer: `xgrad.pad`.

    `pad` has two numbers for each axis, from the last one on; negative ones remove elements.
    """
    pairs = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    if len(pairs) > input.ndim:
        raise ValueError(f"pad: expected at most {2 * input.ndim} numbers, got {shown(pad)}")
    if mode not in ("constant", *_PADDING_MODES):
        raise NotImplementedError(f"pad: unknown mode {shown(mode)}")
    if mode != "constant" and value:
        raise ValueError(f"pad: mode {mode!r} takes no value, got {value}")
    pairs = [(0, 0)] * (input.ndim - len(pairs)) + pairs
    if mode != "constant":
        for (before, after), length in zip(pairs, input.shape, strict=True):
            most = length - 1 if mode == "reflect" else length if mode == "circular" else None
            if most is not None and max(0, before, after) > max(0, most):
                raise ValueError(
                    f"pad: expected at most {most} elements along an axis of length {length} for"
                    f" mode {mode!r}, got {shown(pad)}"
                )
    more = tuple((max(0, before), max(0, after)) for before, after in pairs)
    if mode == "circular":  # which repeats what is left after elements are removed
        input = _cropped(input, pairs)
    if mode == "constant":
        padded = xgrad.pad(input, more, constant_values=value or 0)
    else:
        padded = xgrad.pad(input, more, mode=_PADDING_MODES[mode])  # type: ignore[arg-type]
    return as_torch(padded if mode == "circular" else _cropped(padded, pairs))


def _cropped(x: Any, pairs: list[tuple[int, int]]) -> Any:
    """Return a tensor without the elements that negative numbers remove."""
    if min([0, *(n for pair in pairs for n in pair)]) == 0:
        return x
    return x[
        tuple(
            slice(max(0, -before), length - max(0, -after))
            for (before, after), length in zip(pairs, x.shape, strict=True)
        )
    ]


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Return int64 rows with a 1 at each index; by default as long as the largest index needs."""
    count = int(xgrad.max(tensor)) + 1 if num_classes == -1 else num_classes
    return as_torch(F.one_hot(tensor, count, dtype=xgrad.int64))


_cross_entropy = FUNCTIONS["cross_entropy"]
_ctc_loss = FUNCTIONS["ctc_loss"]
_gaussian_nll_loss = FUNCTIONS["gaussian_nll_loss"]
_kl_div = FUNCTIONS["kl_div"]


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Return the cross-entropy; `ignore_index` has a meaning for targets that are classes only."""
    ignored = None if target.dtype.kind == "f" and ignore_index < 0 else ignore_index
    return _cross_entropy(
        input, target, weight, size_average, ignored, reduce, reduction, label_smoothing
    )


def ctc_loss(log_probs: Any, *args: Any, **options: Any) -> Any:
    """Return the loss; its derivative is the one for the inputs of `log_softmax`, as in PyTorch.

    For the inputs of `log_softmax` itself, this makes no difference.
    """
    total = xgrad.sum(xgrad.exp(log_probs), axis=-1, keepdims=True)  # 1
    return _ctc_loss(log_probs - total + total.detach(), *args, **options)


def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """Return the loss for a target, or variances, whose axes of length 1 repeat."""
    if isinstance(var, xgrad.Tensor):
        input, target = xgrad.broadcast_arrays(input, target)
    return _gaussian_nll_loss(input, target, var, full, eps, reduction)


#: Functions that drop channels, the second axis, by the number of axes.
_DROPS = {
    2: FUNCTIONS["dropout"],
    3: FUNCTIONS["dropout1d"],
    4: FUNCTIONS["dropout2d"],
    5: FUNCTIONS["dropout3d"],
}


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Drop channels, the second axis of two to five axes, as in PyTorch."""
    drop = _DROPS.get(input.ndim, _DROPS[4])
    return drop(input, p, training, inplace)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Drop channels, the second axis of two to five axes, as in PyTorch."""
    drop = _DROPS.get(input.ndim, _DROPS[5])
    return drop(input, p, training, inplace)


def kl_div(input: Any, target: Any, *args: Any, **options: Any) -> Any:
    """Return the divergence; the mean over a batch of one number is the sum."""
    if not input.ndim and options.get("reduction") == "batchmean":
        options["reduction"] = "sum"
    return _kl_div(input, target, *args, **options)


FUNCTIONS.update(
    {
        function.__name__: function
        for function in (
            softmax,
            log_softmax,
            softmin,
            pad,
            one_hot,
            cross_entropy,
            ctc_loss,
            kl_div,
            gaussian_nll_loss,
            dropout2d,
            dropout3d,
        )
    }
)
__all__ = sorted(FUNCTIONS)


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return globals().setdefault(name, FUNCTIONS[name])
    raise_missing("torch.nn.functional", name)
