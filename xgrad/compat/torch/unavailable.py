"""Errors for names of PyTorch that this namespace lacks: they say what to do instead."""

from __future__ import annotations

from typing import NoReturn

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
    "export": "see xgrad.onnx",
    "float8_e4m3fn": "use torch.float16",
    "float8_e5m2": "use torch.float16",
    "fx": "use PyTorch for it",
    "hub": "load weights from a safetensors file, with torch.load(path)",
    "jit": "use torch.compile",
    "mps": "xgrad's devices are listed by xgrad.devices()",
    "multiprocessing": "see xgrad.distributed",
    "nested": "use padded tensors",
    "onnx": "see xgrad.onnx",
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
}


def raise_missing(module: str, name: str) -> NoReturn:
    """Raise AttributeError for a name that a module of this namespace lacks."""
    advice = ADVICE.get(name, "write it with other functions, or compute this part with PyTorch")
    raise AttributeError(
        f"{module}.{name} is not available in xgrad.compat.torch: {advice}", name=name
    )
