"""The table of kernels: each by the name of the rule that it replaces.

The tests compare each kernel with its generic rule. No kernel waits for the GPU, reads a value on
the host or copies to the device, so a CUDA graph can contain them all. Seeds, call numbers and the
factors of optimizers are numbers or 0-d arrays, which a graph reads at each replay: uint64 and
float64, to which other dtypes are converted.

`linear` has no kernel: one launch adds its bias in place, and in captured steps its gradient is
made by the kernel that computes the gradient of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from xgrad.backend.overridable import OVERRIDABLE, ComposedKernel
from xgrad.ops import floor_divide, remainder, sigmoid, softplus
from xgrad.ops.class_losses import _cross_entropy
from xgrad.ops.dropout import _dropout
from xgrad.ops.elementwise.arithmetic import _floor_quotient
from xgrad.ops.normalization import running_statistics
from xgrad.ops.pooling import maximum_pool, maximum_pool_gradient, sum_pool, sum_pool_gradient
from xgrad.ops.softmaxes import _log_softmax, _softmax
from xgrad.optim.adam import adam_step  # this import makes it overridable
from xgrad.optim.sgd import sgd_step
from xgrad_cupy.kernels import attention, convolution, elementwise, normalization, recurrent
from xgrad_cupy.kernels.attention import Attention
from xgrad_cupy.kernels.convolution import Convolution
from xgrad_cupy.kernels.cross_entropy import CrossEntropy
from xgrad_cupy.kernels.gelu import gelu_kernels
from xgrad_cupy.kernels.normalization import Normalization
from xgrad_cupy.kernels.optimizers import Optimizers
from xgrad_cupy.kernels.pooling import Pooling
from xgrad_cupy.kernels.random_bits import RandomBits
from xgrad_cupy.kernels.raw import FLOATS
from xgrad_cupy.kernels.recurrent import Recurrent
from xgrad_cupy.kernels.running_statistics import running_statistics_of
from xgrad_cupy.kernels.softmax import Softmax

#: Ops with a kernel for their forward rule; other kernels replace overridable functions.
_OPS: tuple[Any, ...] = (
    *(sigmoid, floor_divide, remainder, _floor_quotient, softplus),
    *(_softmax, _log_softmax, _cross_entropy, _dropout),
    *(maximum_pool, maximum_pool_gradient, sum_pool, sum_pool_gradient),
)

#: Kernels that call array functions: cuBLAS makes their products, or not all results are arrays.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "standardize": normalization.standardize,
    "normalization_gradient": normalization.gradient,
    "attention_values": attention.values,
    "attention_gradient": attention.gradient,
    "lstm_steps": recurrent.lstm_steps,
    "lstm_gradient": recurrent.lstm_gradient,
    "gru_steps": recurrent.gru_steps,
    "gru_gradient": recurrent.gru_gradient,
    "convolution": convolution.convolution,
    "convolution_input": convolution.convolution_input,
    "convolution_weight": convolution.convolution_weight,
}


def fused_functions(cp: Any) -> SimpleNamespace:
    """Return the functions of arrays, of one launch each, that composed kernels call."""
    attention, recurrent = Attention(cp), Recurrent(cp)
    convolution, normalization = Convolution(cp), Normalization(cp)
    return SimpleNamespace(
        attention_weights=attention.attention_weights,
        attention_scores_gradient=attention.attention_scores_gradient,
        contiguous_copies=attention.contiguous_copies,
        lstm_cell=recurrent.lstm_cell,
        lstm_cell_gradient=recurrent.lstm_cell_gradient,
        gru_cell=recurrent.gru_cell,
        gru_cell_gradient=recurrent.gru_cell_gradient,
        columns_of=convolution.columns_of,
        sums_of_columns=convolution.sums_of_columns,
        images_of=convolution.images_of,
        standardize=normalization.standardize,
        normalization_gradient=normalization.normalization_gradient,
    )


def kernels(cp: Any, xp: Any, random: RandomBits) -> Mapping[str, Callable[..., Any]]:
    """Return the table for CuPy, the module `cp`; generic rules run on `xp`.

    ``Backend.kernels`` describes the table.
    """
    softmaxes, losses, optimizers = Softmax(cp), CrossEntropy(cp), Optimizers(cp)
    pools = Pooling(cp)
    of_floats: dict[str, Any] = {
        **elementwise.compiled(cp, elementwise.SOURCES),
        **gelu_kernels(cp),
        "softmax": softmaxes.softmax,
        "softmax_gradient": softmaxes.softmax_gradient,
        "log_softmax": softmaxes.log_softmax,
        "log_softmax_gradient": softmaxes.log_softmax_gradient,
        "cross_entropy": losses.cross_entropy,
        "cross_entropy_gradient": losses.cross_entropy_gradient,
        running_statistics.__name__: running_statistics_of(cp),
        "maximum_pool": pools.maximum_pool,
        "maximum_pool_gradient": pools.maximum_pool_gradient,
        "sum_pool": pools.sum_pool,
        "sum_pool_gradient": pools.sum_pool_gradient,
        "dropout": random.dropout,
        sgd_step.__name__: optimizers.sgd_step,
        adam_step.__name__: optimizers.adam_step,
    }
    generic = {op.function.name: op.function.forward for op in _OPS}
    generic |= {name: part.generic for name, part in OVERRIDABLE.items()}
    return {
        **{name: _for_floats(cp, xp, kernel, generic[name]) for name, kernel in of_floats.items()},
        "uniform": random.uniform,
        **{name: ComposedKernel(xp, function) for name, function in _COMPOSED.items()},
    }


def _for_floats(
    cp: Any, xp: Any, kernel: Callable[..., Any], generic: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a kernel that falls back to the generic rule.

    It does so for dtypes such as float16, and for arguments for which the kernel returns
    NotImplemented.
    """

    def chosen(x: Any, *args: Any, **options: Any) -> Any:
        dtype = x.dtype if hasattr(x, "dtype") else args[0].dtype
        result = kernel(x, *args, **options) if dtype in FLOATS else NotImplemented
        return generic(xp, x, *args, **options) if result is NotImplemented else result

    chosen.__name__ = generic.__name__.lstrip("_")
    if isinstance(kernel, cp.ElementwiseKernel):
        # captured steps fuse it
        chosen.elementwise = kernel  # type: ignore[attr-defined]
    return chosen
