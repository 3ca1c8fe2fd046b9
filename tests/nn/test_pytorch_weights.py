"""Weights that PyTorch saved, loaded by xgrad, and the reverse: both predict the same classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host
from xgrad.data import digits


def mlp(nn: Any) -> Any:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10)
    )


def nested(nn: Any) -> Any:
    """Return a model with names and nested containers."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 16, bias=False)])
            self.heads = nn.ModuleDict(
                {"digit": nn.Sequential(nn.Tanh(), nn.Flatten(), nn.Linear(128, 10))}
            )

        def forward(self, x: Any) -> Any:
            for layer in self.body:
                x = layer(x[:, 0] if x.ndim == 4 else x)
            return self.heads["digit"](x)

    return Net()


def cnn(nn: Any) -> Any:
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(
            nn.Conv2d(8, 16, 3, padding="same", groups=2),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.AvgPool2d(2),
        ),
        *(nn.ConvTranspose2d(16, 4, 3, stride=2), nn.GroupNorm(2, 4), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d((2, 3)), nn.Flatten(), nn.LayerNorm(24), nn.Linear(24, 10)),
    )


def check_predictions(library: Any, one: Any, other: Any) -> None:
    """Check that a model of xgrad and one of PyTorch agree on the digits, in evaluation mode."""
    images = (digits().test.images[:, None] / 16).astype(np.float32)
    with xgrad.no_grad(), library.no_grad():
        ours = host(one.eval()(xgrad.asarray(images)))
        theirs = other.eval()(library.tensor(images)).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert (ours.std(axis=0) > 1e-2).all()  # the images differ
    np.testing.assert_array_equal(ours.argmax(axis=1), theirs.argmax(axis=1))


@pytest.mark.parametrize("make", [mlp, nested, cnn])
def test_weights_of_image_models_are_exchanged_with_pytorch(make, torch, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    torch.manual_seed(0)
    xgrad.manual_seed(0)
    reference, model = make(torch.nn), make(xgrad.nn)
    for buffer in reference.buffers():  # such as running means
        if buffer.is_floating_point():
            buffer.uniform_(0.02, 0.1)
    assert list(model.state_dict()) == list(reference.state_dict())
    safetensors.save_file(reference.state_dict(), tmp_path / "reference.safetensors")
    assert model.load_state_dict(xgrad.load(tmp_path / "reference.safetensors")) == ([], [])
    check_predictions(torch, model, reference)

    model = make(xgrad.nn)
    xgrad.save(model.state_dict(), tmp_path / "model.safetensors")
    reference.load_state_dict(safetensors.load_file(tmp_path / "model.safetensors"))
    check_predictions(torch, model, reference)


def lstm_classifier(nn: Any) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(24, 10, bias=False)

        def forward(self, x: Any) -> Any:
            states = self.lstm(8 * x[:, 0])[0]
            return self.head(states[:, -1] - states[:, 0])

    return Net()


def encoder_classifier(nn: Any) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2)
            self.head = nn.Linear(8, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.encoder(x[:, 0])[:, 0])

    return Net()


@pytest.mark.parametrize("make", [lstm_classifier, encoder_classifier])
def test_weights_of_sequence_models_are_exchanged_with_pytorch(make, torch, tmp_path):
    test_weights_of_image_models_are_exchanged_with_pytorch(make, torch, tmp_path)
