"""Errors for names of PyTorch that this namespace lacks: they say what to do instead."""

from __future__ import annotations

from typing import Any, NoReturn

_NO_BFLOAT16 = "xgrad has no bfloat16: use torch.float16 or torch.float32"
_NO_SPARSE = "xgrad has no sparse tensors: use dense ones"
_NO_QUANTIZED = "xgrad has no quantized tensors: use torch.float16 or torch.float32"

#: What to do instead of some names.
ADVICE = {
    "BFloat16Tensor": _NO_BFLOAT16,
    "bfloat16": _NO_BFLOAT16,
    "chalf": "use torch.cfloat",
    "complex32": "use torch.cfloat",
    "distributed": "see xgrad.distributed",
    "export": "see torch.onnx.export",
    "float8_e4m3fn": "use torch.float16",
    "float8_e5m2": "use torch.float16",
    "fx": "use PyTorch for it",
    "hub": "load weights from a safetensors file, with torch.load(path)",
    "jit": "use torch.compile",
    "mps": "xgrad's devices are listed by xgrad.devices()",
    "multiprocessing": "see xgrad.distributed",
    "nested": "use padded tensors",
    "ops": "use PyTorch for it",
    "overrides": "use PyTorch for it",
    "profiler": "see xgrad.profile",
    "qint8": _NO_QUANTIZED,
    "quantization": _NO_QUANTIZED,
    "quantize_per_tensor": _NO_QUANTIZED,
    "quint8": _NO_QUANTIZED,
    "sparse": _NO_SPARSE,
    "sparse_coo_tensor": _NO_SPARSE,
    "sparse_csr_tensor": _NO_SPARSE,
    "xpu": "xgrad's devices are listed by xgrad.devices()",
    # modules and functions of modules
    **dict.fromkeys(
        [
            f"Lazy{kind}{n}d"
            for kind in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm")
            for n in (1, 2, 3)
        ]
        + ["LazyLinear", "UninitializedBuffer", "UninitializedParameter"],
        "give the number of input features, which xgrad does not infer at the first call",
    ),
    "Buffer": "use register_buffer(name, tensor)",
    "FractionalMaxPool2d": "use MaxPool2d",
    "FractionalMaxPool3d": "use MaxPool3d",
    "NLLLoss2d": "use NLLLoss",
    "SparseAdam": "use Adam",
    "SummaryWriter": "see xgrad.training.TensorBoard",
    "SyncBatchNorm": "see xgrad.distributed",
    "multi_head_attention_forward": "use torch.nn.MultiheadAttention",
    "parallel": "see xgrad.distributed",
    "prune": "multiply the weight by a mask, with torch.nn.utils.parametrize",
    "tensorboard": "see xgrad.training.TensorBoard",
    # methods of tensors
    "apply_": "write it with functions of tensors",
    "data_ptr": "xgrad moves memory: use x.numpy() or DLPack",
    "map_": "write it with functions of tensors",
    "resize": "shapes do not change in place: make a new tensor",
    "storage": "use x.numpy(), or x.reshape(-1)",
    "t_": "shapes do not change in place: write x = x.t()",
    "to_sparse": _NO_SPARSE,
    "transpose_": "shapes do not change in place: write x = x.transpose(dim0, dim1)",
    "untyped_storage": "use x.numpy(), or x.reshape(-1)",
}

#: Methods and attributes of PyTorch's tensors that this namespace lacks.
UNAVAILABLE_METHODS = (
    "apply_ as_strided as_strided_ as_strided_scatter bfloat16 chalf coalesce data_ptr"
    " dequantize frexp gcd gcd_ geqrf hardshrink indices istft"
    " lcm lcm_ lu lu_solve map2_ map_ nanquantile orgqr ormqr polygamma_ prelu"
    " register_post_accumulate_grad_hook resize resize_as stft storage storage_offset"
    " swapaxes_ swapdims_ t_ to_dense to_sparse transpose_ triangular_solve"
    " untyped_storage xpu"
).split()


class Missing:
    """Descriptor of an attribute that tensors of this namespace lack."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise_missing("Tensor", self.name)


def raise_missing(module: str, name: str) -> NoReturn:
    """Raise AttributeError for a name that a module of this namespace lacks."""
    advice = ADVICE.get(name, "write it with other functions, or compute this part with PyTorch")
    raise AttributeError(
        f"{module}.{name} is not available in xgrad.compat.torch: {advice}", name=name
    )
