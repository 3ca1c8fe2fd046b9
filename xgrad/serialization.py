"""State in safetensors files, which other libraries can read, and which cannot run code.

Tensors are stored as tensors of the format; anything else is JSON in the metadata, next to a
checksum. In the JSON, an object with a key that begins with ``$`` represents a value that JSON
lacks::

    {"$tensor": name}    {"$complex128": name}, whose parts are along a last axis
    {"$transposed": name}, whose last two axes are exchanged
    {"$tuple": [...]}    {"$dict": [[key, value], ...]}
    {"$float": "nan"}    {"$complex": [real, imaginary]}    {"$generator": [seed, calls]}

A mapping of names to tensors needs no JSON: its file looks like the files of other libraries.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from zipfile import BadZipFile, ZipFile
from zlib import crc32

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.devices import current_device
from xgrad.core.tensor import Tensor
from xgrad.ops import asarray
from xgrad.random import Generator
from xgrad.support import hints
from xgrad.support.files import write
from xgrad.support.hints import shown

__all__ = ["load", "save"]
hints.install(__name__)

FORMAT, STATE, CHECKSUM = "xgrad-3", "xgrad.state", "xgrad.crc32"
MAX_DEPTH = 100  # levels of containers, each of at most three levels of JSON
MAX_HEADER = 100_000_000  # bytes, above which readers of the format refuse a file


def save(state: Any, path: str | os.PathLike[str]) -> None:
    """Save tensors, numbers and strings, in nested dicts, lists and tuples, as a safetensors file.

    The file is written completely or not at all: after a failure, an earlier file is unchanged, and
    on return the new file is on the disk. Its mode is kept, and a symbolic link is followed. A
    device or a FIFO is written to, and not replaced. `load` detects later damage by a checksum.

    A mapping of names to tensors, such as the ``state_dict()`` of a module, becomes a file that any
    library for the format can read. In a file with other contents, a tensor is named by its path,
    such as ``model.0.weight``.

    Parameters
    ----------
    state : dict, list, tuple, Tensor, Generator, str, bool, int, float, complex, or None
        The state, such as ``{ "model": model.state_dict(), "optimizer": optimizer.state_dict(),
        "epoch": 3}``. Keys of mappings are of type str or int, and NumPy scalars are saved as
        Python scalars. Tensors may have any dtype and be on any devices; gradients, graphs and
        devices are not saved. A tensor that occurs several times is saved once.
    path : str or os.PathLike
        The path of the file.

    Raises
    ------
    TypeError
        If the state has a value or a key of another type.
    ValueError
        If the state is nested more than 100 levels deep, or contains itself, if its names, numbers
        and strings take more than 100 MB, or if the path has a null character.
    OSError
        If the file cannot be written, for example on a full disk; FileNotFoundError if its folder
        does not exist, PermissionError if it is write-protected.

    Examples
    --------
    >>> import tempfile, xgrad
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     xgrad.save(
    ...         {"x": xgrad.ones(2), "losses": [0.5, 0.25]}, f"{folder}/state.safetensors"
    ...     )
    ...     xgrad.load(f"{folder}/state.safetensors")
    {'x': Tensor([1., 1.]), 'losses': [0.5, 0.25]}
    """
    target = os.fsdecode(path)
    if not target or os.path.isdir(target):
        raise IsADirectoryError(
            f"save: expected the path of a file, got the folder {target!r}: add a file name"
        )
    if not os.path.isdir(folder := os.path.dirname(target) or "."):
        raise FileNotFoundError(f"save: expected an existing folder, got {folder}: make it first")
    write(target, serialized(state))


def serialized(state: Any) -> memoryview:
    """Return the content of a file with a state."""
    return _content(state, transposed=False)()


def snapshot(state: Any) -> Callable[[], memoryview]:
    """Return a function, for another thread, that returns the file content for the current state.

    Each tensor is copied once, in its memory layout: the file has the transpose of a matrix in
    Fortran order.
    """
    return _content(state, transposed=True)


def _content(state: Any, transposed: bool) -> Callable[[], memoryview]:
    """Copy the tensors now; return a function that finishes the header and returns the content."""
    encoder = _Encoder(transposed)
    tree, arrays = encoder.encode(state, ()), encoder.arrays
    metadata = {"format": FORMAT}
    if tree != {name: {"$tensor": name} for name in arrays}:
        metadata[STATE] = json.dumps(tree, allow_nan=False, separators=(",", ":"))
    metadata[CHECKSUM] = f"{0:08x}"  # has the length of the checksum
    offsets = {}
    end = 0
    # by item size, so that each is aligned
    for name in sorted(arrays, key=lambda name: -arrays[name].itemsize):
        offsets[name] = (end, end + arrays[name].nbytes)
        _, end = offsets[name]
    header: dict[str, Any] = {"__metadata__": metadata}
    for name, array in arrays.items():  # the order in which `load` returns them
        header[name] = {
            "dtype": _code(array),
            "shape": array.shape,
            "data_offsets": offsets[name],
        }
    data = 8 + len(_header(header))
    if data - 8 > MAX_HEADER:
        raise ValueError(
            f"save: expected names, numbers and strings of at most {MAX_HEADER} bytes, the limit of"
            f" the format, got {data - 8}: save long lists of numbers as tensors"
        )
    content = np.empty(data + end, np.uint8).data
    stored = {}
    for name, array in arrays.items():
        stored[name] = np.ndarray(array.shape, array.dtype, content, data + offsets[name][0])
        stored[name][...] = array

    def completed() -> memoryview:
        metadata[CHECKSUM] = _checksum(metadata.get(STATE, ""), stored)
        content[:data] = (data - 8).to_bytes(8, "little") + _header(header)
        return content

    return completed


def _header(header: Mapping[str, Any]) -> bytes:
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


class _Encoder:
    """The JSON of a state, and the arrays of its tensors by name.

    If `transposed`, an array that is not in C order is stored as its transpose.
    """

    def __init__(self, transposed: bool) -> None:
        self._transposed = transposed
        self.arrays: dict[str, np.ndarray] = {}
        # holds each tensor, so that no other tensor gets its id
        self._known: dict[int, tuple[Tensor, dict[str, str]]] = {}

    def encode(self, value: Any, path: tuple[str | int, ...]) -> Any:
        """Return the JSON form of a value at a path."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (str, int)):
            return value
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": repr(float(value))}
        if isinstance(value, complex):
            return {"$complex": [self.encode(part, path) for part in (value.real, value.imag)]}
        if isinstance(value, Generator):
            return {"$generator": list(value.get_state().values())}
        if len(path) > MAX_DEPTH:
            raise ValueError(
                f"save: expected containers nested at most {MAX_DEPTH} deep, got"
                f" {_text(path[:5])}..."
            )
        if isinstance(value, (list, tuple)):
            items = [self.encode(item, (*path, i)) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if not isinstance(value, Mapping):
            raise TypeError(
                "save: expected tensors, numbers, strings, None, and dicts, lists and tuples of"
                f" them, got {type(value).__name__}{_text(path)}: {_hint(value)}"
            )
        for key in value:
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                raise TypeError(
                    f"save: expected keys of type str or int, got {shown(key)}{_text(path)}"
                )
        pairs = [(key, self.encode(item, (*path, key))) for key, item in value.items()]
        if all(isinstance(key, str) and key[:1] != "$" for key in value):
            return dict(pairs)
        return {"$dict": pairs}

    def _tensor(self, tensor: Tensor, path: tuple[str | int, ...]) -> dict[str, str]:
        if id(tensor) not in self._known:
            # The array is on the host. A name that is invalid in UTF-8 or in the format is changed.
            array = tensor.detach().cpu().numpy()
            name = ".".join(map(str, path)).encode(errors="replace").decode()
            while name in self.arrays or name == "__metadata__":
                name += "_"
            kind = "$tensor"
            if array.dtype == np.complex128:
                kind, array = "$complex128", np.stack([array.real, array.imag], axis=-1)
            elif self._transposed and array.ndim > 1 and not array.flags.c_contiguous:
                kind, array = "$transposed", array.mT
            self.arrays[name], self._known[id(tensor)] = array, (tensor, {kind: name})
        return self._known[id(tensor)][1]


def _text(path: tuple[str | int, ...]) -> str:
    return " at state" + "".join(f"[{step!r}]" for step in path) if path else ""


def _hint(value: Any) -> str:
    if hasattr(value, "state_dict"):
        return "give its state_dict()"
    return "use xgrad.asarray" if isinstance(value, np.ndarray) else "leave it out, or convert it"


def _code(array: np.ndarray) -> str:
    """Return the format's name of a dtype."""
    return "BOOL" if array.dtype.kind == "b" else f"{array.dtype.kind.upper()}{8 * array.itemsize}"


def _checksum(state: str, arrays: Mapping[str, np.ndarray]) -> str:
    checksum = crc32(state.encode())
    for name in sorted(arrays):
        checksum = crc32(
            f"\n{name}\n{_code(arrays[name])}{arrays[name].shape}\n".encode(), checksum
        )
        checksum = crc32(arrays[name].data, checksum)
    return f"{checksum:08x}"


def load(path: str | os.PathLike[str], *, device: str | Device | None = None) -> Any:
    """Load the state from a file of `save`, or the tensors from any other safetensors file.

    Nothing in a file is executed.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    device : str or Device, optional
        The device of the tensors; by default the `default_device`.

    Returns
    -------
    dict, list, tuple, Tensor, Generator, str, bool, int, float, complex, or None
        The state, with tensors in the dtypes of the file; tensors by name if another library wrote
        the file. Mappings are loaded as dict, named tuples as tuple, and a tensor that occurred
        several times in the state is one tensor in all these places. Keys are in the order of the
        state, or of the file's header.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no such file.
    PermissionError
        If it is read-protected.
    ValueError
        If the file is not a safetensors file, or is damaged. For a file of ``torch.save``, the
        message has the lines that convert it.
    TypeError
        If a tensor has a dtype that this library lacks, such as bfloat16.
    DeviceError
        If the device is unknown or cannot be used.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.load("weights.safetensors")
    Traceback (most recent call last):
        ...
    FileNotFoundError: load: file not found: weights.safetensors: expected a safetensors
    file
    """
    from safetensors import SafetensorError, safe_open  # not at the top: slow to import

    source = os.fspath(path)
    if not os.path.isfile(source):
        if os.path.isdir(source):
            raise IsADirectoryError(f"load: expected a safetensors file, got the folder {source}")
        raise FileNotFoundError(f"load: file not found: {source}: expected a safetensors file")
    if not os.access(source, os.R_OK):  # safetensors reports it as missing
        raise PermissionError(
            f"load: expected a file that can be read, got {source}: change its mode"
        )
    target = current_device() if device is None else Device(device)
    try:
        with safe_open(source, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: _from_file(file, name, source) for name in _names(source)}
    except SafetensorError as error:
        if kind := _pytorch_kind(source):
            call = f'torch.load({source!r}, map_location="cpu", weights_only=True)'
            if kind == _SCRIPT:
                call = f'torch.jit.load({source!r}, map_location="cpu").state_dict()'
            raise ValueError(_CONVERSION.format(kind=kind, source=source, call=call)) from error
        raise _damaged(source, error) from error
    state = metadata.get(STATE)
    ours = CHECKSUM in metadata or STATE in metadata or metadata.get("format") == FORMAT
    if ours and metadata.get(CHECKSUM) != _checksum(state or "", arrays):
        raise _damaged(source, "its contents do not have its checksum")
    if state is None:
        return {name: asarray(array, device=target) for name, array in arrays.items()}
    try:
        return _Decoder(arrays, target).decode(json.loads(state))
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
        raise _damaged(
            source, f"its state has an invalid value: {type(error).__name__}: {error}"
        ) from error


def _names(source: str | bytes) -> list[str]:
    """Return the names of the tensors in the order of the header.

    Raises ValueError for a duplicate name, or for space before the header.

    The format forbids both, but its reader accepts them. If two tensors have the same name,
    different readers might read different ones.
    """
    with open(source, "rb") as file:
        header = file.read(int.from_bytes(file.read(8), "little"))
    if header[:1] != b"{":
        raise _damaged(source, "its header begins with space")
    try:
        names = json.loads(header, object_pairs_hook=_without_duplicates)
    except ValueError as error:
        raise _damaged(source, error) from error
    return [name for name in names if name != "__metadata__"]


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("its header has a name twice")
    return dict(pairs)


_PICKLE = re.compile(rb"\x80[\x02-\x05]")  # the first bytes of a pickle since protocol 2
_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the first pickle of PyTorch before 1.6
_SCRIPT = "a program of TorchScript"
_CONVERSION = """load: expected a safetensors file, got {source}, {kind}.
xgrad executes no pickle. Convert the file where PyTorch is installed, if you trust it:
    import torch, safetensors.torch
    state = {call}
    safetensors.torch.save_file({{k: x.clone() for k, x in state.items()}}, "weights.safetensors")
where state must be a dict of tensors, such as the state_dict in a checkpoint."""


def _pytorch_kind(source: str | bytes) -> str:
    """Return what kind of file of ``torch.save`` a file is, or an empty text.

    Only the names in a zip file and the first bytes of another file are read.
    """
    with open(source, "rb") as file:
        start = file.read(len(_MAGIC))
    if start == _MAGIC:
        return "a file of torch.save in PyTorch's format before version 1.6"
    if start[:2] == b"PK":
        try:
            with ZipFile(os.fsdecode(source)) as archive:
                names = archive.namelist()
        except (BadZipFile, OSError, ValueError, NotImplementedError, RecursionError):
            return ""
        if any(name.endswith("/data.pkl") for name in names):
            scripted = any(name.endswith("/constants.pkl") for name in names)
            return _SCRIPT if scripted else "a file of torch.save"
    # the length of the header, if it is a damaged safetensors file
    length = int.from_bytes(start[:8], "little")
    return "a pickle, perhaps of torch.save" if _PICKLE.match(start) and length > MAX_HEADER else ""


def _damaged(source: Any, reason: Any) -> ValueError:
    return ValueError(
        f"load: expected a safetensors file, got {source}, which is damaged or of another kind:"
        f" {reason}"
    )


class _Decoder:
    """A decoder of the JSON of a state, given the arrays of its tensors by name."""

    def __init__(self, arrays: Mapping[str, np.ndarray], device: Device) -> None:
        self._arrays, self._device = arrays, device
        self._tensors: dict[str, Tensor] = {}

    def decode(self, value: Any) -> Any:
        """Return the original of a JSON value.

        Raises an error of any kind if `save` cannot have written it.
        """
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if not any(key[:1] == "$" for key in value):
            return {key: self.decode(item) for key, item in value.items()}
        ((kind, content),) = value.items()
        return getattr(self, _KINDS[kind])(content)

    def _tensor(self, name: str) -> Tensor:
        if name not in self._tensors:
            self._tensors[name] = asarray(self._arrays[name], device=self._device)
        return self._tensors[name]

    def _transposed(self, name: str) -> Tensor:
        if name not in self._tensors:
            self._tensors[name] = asarray(self._arrays[name].mT, device=self._device)
        return self._tensors[name]

    def _complex128(self, name: str) -> Tensor:
        if name not in self._tensors:
            parts = self._arrays[name]
            if parts.dtype != np.float64 or parts.shape[-1:] != (2,):
                raise ValueError(
                    f"{name!r}: expected two parts of a complex number, got"
                    f" {parts.dtype}{parts.shape}"
                )
            values = parts.view(np.complex128).reshape(parts.shape[:-1])
            self._tensors[name] = asarray(values, device=self._device)
        return self._tensors[name]

    def _tuple(self, items: list[Any]) -> tuple[Any, ...]:
        return tuple([self.decode(item) for item in items])

    def _dict(self, pairs: list[Any]) -> dict[str | int, Any]:
        return {key: self.decode(item) for key, item in pairs}

    def _float(self, text: str) -> float:
        return float(text)

    def _complex(self, parts: list[Any]) -> complex:
        real, imag = self._tuple(parts)
        return complex(real, imag)

    def _generator(self, numbers: list[Any]) -> Generator:
        generator = Generator(0)
        generator.set_state(dict(zip(("seed", "calls"), numbers, strict=True)))
        return generator


_KINDS = {
    f"${name}": f"_{name}"
    for name in (
        "tensor",
        "transposed",
        "complex128",
        "tuple",
        "dict",
        "float",
        "complex",
        "generator",
    )
}

_SUPPORTED = {
    "BOOL",
    "U8",
    "U16",
    "U32",
    "U64",
    "I8",
    "I16",
    "I32",
    "I64",
    "F16",
    "F32",
    "F64",
    "C64",
}


def _from_file(file: Any, name: str, source: Any) -> np.ndarray:
    dtype = file.get_slice(name).get_dtype()
    if dtype not in _SUPPORTED:
        raise TypeError(
            f"load: {name!r} in {source} has the dtype {dtype}, which xgrad lacks: save it as F32"
            " first"
        )
    array: np.ndarray = file.get_tensor(name)
    return array
