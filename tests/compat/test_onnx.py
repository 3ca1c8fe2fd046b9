"""`torch.onnx.export` with PyTorch's arguments; files are run by onnxruntime."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compat.compared import array
from xgrad.compat import torch as compat

nn = compat.nn


@pytest.mark.parametrize("sizes", [{0: "batch"}, [0]])
def test_file_computes_the_results_of_the_model(tmp_path: Path, sizes: Any) -> None:
    pytest.importorskip("ndonnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
    compat.onnx.export(
        net,
        compat.ones(5, 3),
        tmp_path / "net.onnx",
        verbose=False,
        input_names=["x"],
        output_names=["y"],
        dynamic_axes={"x": sizes, "y": sizes},
    )
    x = array((7, 3)).astype(np.float32)
    (y,) = onnxruntime.InferenceSession(tmp_path / "net.onnx").run(None, {"x": x})
    np.testing.assert_allclose(y, net(compat.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_options_without_equivalent_are_refused() -> None:
    net, x = nn.Linear(3, 4), compat.ones(5, 3)
    with pytest.raises(NotImplementedError, match="opset_version=11 is not available"):
        compat.onnx.export(net, x, "net.onnx", opset_version=11)
    with pytest.raises(NotImplementedError, match="a file object is not available"):
        compat.onnx.export(net, x, io.BytesIO())
    with pytest.raises(AttributeError, match=r"torch\.onnx\.dynamo_export is not available"):
        compat.onnx.dynamo_export  # noqa: B018
