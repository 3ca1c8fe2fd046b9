"""`torch.onnx`: `export`, by `xgrad.onnx`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from xgrad import onnx as xonnx
from xgrad.compat.torch.signatures import Signature
from xgrad.compat.torch.unavailable import raise_missing

__all__ = ["export"]

#: The options of a call; ones without effect choose among PyTorch's implementations.
_SIGNATURE = Signature(
    "torch.onnx.export",
    "model args f * kwargs!=None verbose~=None input_names=None output_names=None"
    " opset_version!=None dynamo~=True external_data~=True dynamic_shapes!=None"
    " custom_translation_table!=None report~=False optimize~=True verify~=False profile~=False"
    " dump_exported_program~=False artifacts_dir~='.' fallback~=False export_params!=True"
    " keep_initializers_as_inputs!=False dynamic_axes=None training~=None"
    " operator_export_type~=None"
    " do_constant_folding~=True custom_opsets!=None export_modules_as_functions!=False"
    " autograd_inlining~=True",
)


def export(*args: Any, **options: Any) -> None:
    """Write a model to an ONNX file: see `xgrad.onnx.export`.

    The version of the format is the one that ndonnx writes. Of ``dynamic_axes``, the entries of
    outputs are ignored: their sizes follow from the inputs.
    """
    (model, example, path), chosen = _SIGNATURE.bind(args, options)
    if not isinstance(path, (str, os.PathLike)):
        raise NotImplementedError(
            "torch.onnx.export: a file object is not available in xgrad.compat.torch: give a path"
        )
    axes, names = chosen["dynamic_axes"], chosen["input_names"]
    if axes:
        chosen["dynamic_axes"] = {
            name: _named(name, sizes) for name, sizes in axes.items() if name in (names or ())
        }
    xonnx.export(model, example, path, **chosen)  # type: ignore[arg-type]


def _named(name: str, sizes: Any) -> dict[int, str]:
    """Return names of sizes by their axes; a list has the axes alone."""
    if isinstance(sizes, Mapping):
        return dict(sizes)
    return {axis: f"{name}_{axis}" for axis in sizes}


def __getattr__(name: str) -> Any:
    raise_missing("torch.onnx", name)
