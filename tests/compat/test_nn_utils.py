"""`torch.nn.utils` with each library: packed sequences, normalized weights, norms of gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compat.compared import array, check_call, check_close, copy_state
from xgrad.compat import torch as compat

PARTS = array((5, 3)), array((2, 3), 1), array((4, 3), 2)


@pytest.mark.parametrize("batch_first", [False, True])
def test_packed_and_padded_sequences(torch: Any, batch_first: bool) -> None:
    def call(library: Any, *parts: Any) -> Any:
        rnn = library.nn.utils.rnn
        padded = rnn.pad_sequence(parts, batch_first, 0.5)
        packed = rnn.pack_padded_sequence(padded, [5, 2, 4], batch_first, enforce_sorted=False)
        again, lengths = rnn.pad_packed_sequence(packed, batch_first)
        left = rnn.pad_sequence(list(parts), padding_side="left")
        sequences = rnn.unpad_sequence(again * 1, lengths, batch_first)
        return padded, packed.data, packed.batch_sizes, again, left, list(sequences)

    check_call(torch, call, PARTS)


def test_recurrent_network_of_packed_sequences(torch: Any) -> None:
    nets = {
        library: library.nn.LSTM(3, 4, bidirectional=True).double() for library in (torch, compat)
    }
    copy_state(nets[torch], nets[compat])

    def call(library: Any, *parts: Any) -> Any:
        packed = library.nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
        assert isinstance(packed, library.nn.utils.rnn.PackedSequence)
        output, state = nets[library](packed)
        return output.data, state, list(library.nn.utils.rnn.unpack_sequence(output))

    check_call(torch, call, PARTS, 1e-11)


@pytest.mark.filterwarnings("ignore")  # of PyTorch, for the deprecated functions
@pytest.mark.parametrize(
    "text",
    [
        "U.weight_norm(net)",
        "U.spectral_norm(net).eval()",
        "U.remove_weight_norm(U.weight_norm(net))",
        "U.parametrizations.weight_norm(net, dim=None)",
        "U.parametrizations.spectral_norm(net).eval()",
        "U.parametrize.register_parametrization(net, 'weight', Double())",
    ],
)
def test_parametrized_weights(torch: Any, text: str) -> None:
    nets = {}
    for library in (torch, compat):

        class Double(library.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any) -> Any:
                return 2 * x

        names = {"U": library.nn.utils, "net": library.nn.Linear(4, 3).double(), "Double": Double}
        nets[library] = eval(text, names)
    assert set(nets[compat].state_dict()) == set(nets[torch].state_dict())
    copy_state(nets[torch], nets[compat])
    check_call(torch, lambda library, x: nets[library](x), (array((5, 4)),), 1e-10)
    theirs = {n: p.grad for n, p in nets[torch].named_parameters()}
    for name, p in nets[compat].named_parameters():
        check_close(p.grad, theirs[name], 1e-10)
    assert isinstance(nets[compat].weight, compat.Tensor)


def test_norms_of_gradients(torch: Any) -> None:
    results = []
    for library in (compat, torch):
        p = library.nn.Parameter(library.tensor(array((3, 4))))
        (p**2).sum().backward()
        utils = library.nn.utils
        norm = utils.get_total_norm([p.grad])
        utils.clip_grads_with_norm_(p, 1.0, norm)
        results.append((norm, p.grad))
    check_close(*results, 1e-12)


def test_initialization_of_special_matrices(torch: Any) -> None:
    for name, shape in (("eye_", (3, 4)), ("dirac_", (4, 2, 3))):
        mine, theirs = (
            getattr(library.nn.init, name)(library.ones(*shape)) for library in (compat, torch)
        )
        check_close(mine, theirs)
    sparse = compat.nn.init.sparse_(compat.ones(10, 3), 0.3)
    assert (sparse == 0).sum(0).tolist() == [3, 3, 3]
    matrix = compat.nn.init.orthogonal_(compat.empty(3, 5))
    np.testing.assert_allclose((matrix @ matrix.T).numpy(), np.eye(3), atol=1e-6)


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("nn.LazyLinear", "give the number of input features"),
        ("nn.utils.prune", "parametrize"),
        ("hub", "safetensors"),
        ("jit", r"torch\.compile"),
        ("utils.tensorboard", "TensorBoard"),
    ],
)
def test_missing_names_say_what_to_do(path: str, match: str) -> None:
    with pytest.raises(AttributeError, match=match):
        eval(f"compat.{path}")
