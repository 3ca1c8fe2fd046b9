"""The interface between xgrad and an array library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from xgrad.backend import philox
from xgrad.support.hints import shown


class DeviceError(RuntimeError):
    """Raised if a device is unknown or unusable, or differs from the device of the other arrays."""


class Backend:
    """Base class of backends, which adapt array libraries to xgrad: see ``backends/README.md``.

    The constructor imports the library. If the library cannot be used, the constructor raises
    `DeviceError`, which says what is missing and what to install. Arrays below are the library's
    own, never tensors, and `index` is the number of a device.

    Attributes
    ----------
    library : str
        The import name of the library, which identifies its arrays before the backend is loaded.
    array_module : str
        The import name of the module that defines the array class, if it is not `library`.
    xp : namespace
        The array API namespace that rules run on, with `index_add` added to it. Its ``special`` has
        special functions, under SciPy's names; by default they are SciPy's own, and arrays are
        copied through the host.
    array_type : type
        The class of the library's arrays. Results of other types are converted by
        `array_converter`.
    native_types : tuple of type
        Other array classes of the library, which `array_type` wraps, and `array_converter` accepts.
    devices : sequence
        The library's device objects: the ``device=`` of its creation functions, and the
        ``x.device`` of its arrays.
    default_index : int
        The index of the device whose name has no index; 0 unless the backend sets another.
    kernels : mapping of str to callable
        Fused kernels that replace generic rules, by name: forward rules of ops, and functions
        declared `overridable`. Each takes the rule's arguments without `xp`.
    rule_kernels : set of str
        The names of kernels that are bit-identical to their rules; captured steps record the rules
        instead.
    asynchronous : bool
        Whether reading a value waits for the device. If it does, values are not checked.
    lazy : bool
        Whether writes extend a graph of queued work until `synchronize`, which optimizers call at
        the end of a step; `wrote` reports the arrays.
    data_dependent_shapes : bool
        Whether the library supports functions whose result shapes depend on values; if not, they
        raise an error.
    supports_out : bool
        Whether the namespace's `matmul` accepts ``out``, an array for the result, with the result's
        dtype and in C order.
    fast_float16 : bool
        Whether matrix products are faster in float16 than in float32; attention then uses float16.
    tf32 : bool
        Whether float32 products may use 10 bits of mantissa: see `set_tf32`.
    tile_size : int, optional
        The least number of elements to update at a time in large arrays, so that they stay in a
        cache; equal tiles have this many elements, and less than twice as many.
    executor : str, optional
        The name of the module with the ``Executor`` of captured programs; without it, steps run
        eagerly.
    communicator : str, optional
        The name of the module with the ``Communicator`` that sends the library's arrays between
        processes; without it, MPI sends them.
    """

    library: ClassVar[str]
    array_module: ClassVar[str] = ""
    xp: Any
    array_type: type
    native_types: tuple[type, ...] = ()
    devices: Sequence[Any] = (None,)
    default_index: int = 0
    kernels: Mapping[str, Callable[..., Any]] = {}
    rule_kernels: Set[str] = frozenset()
    asynchronous: bool = False
    lazy: bool = False
    data_dependent_shapes: bool = True
    supports_out: bool = False
    fast_float16: bool = False
    tf32: bool = False
    tile_size: int | None = None
    executor: ClassVar[str | None] = None
    communicator: ClassVar[str | None] = None

    def count(self) -> int:
        """Return the number of devices."""
        return len(self.devices)

    def describe(self, index: int) -> str:
        """Return a human-readable description of the device: model, memory."""
        return self.library

    def native_device(self, index: int) -> Any:
        """Return the library's device object."""
        return self.devices[index]

    def index_of(self, x: Any) -> int:
        """Return the index of the device that holds the array `x`."""
        return self.devices.index(x.device) if len(self.devices) > 1 else 0

    def device_context(self, index: int) -> Callable[[], AbstractContextManager[Any]] | None:
        """Return a factory of contexts in which the device is current.

        None if the library has no current device.
        """
        return None

    def to_host(self, x: Any) -> np.ndarray:
        """Return the values of `x` as a NumPy array, which may share memory with it."""
        raise NotImplementedError

    def from_host(self, x: np.ndarray, index: int) -> Any:
        """Return the values of a NumPy array on a device.

        The result shares the array's memory, or the values are copied before the call returns.
        """
        raise NotImplementedError

    def transfer(self, x: Any, index: int) -> Any:
        """Return an array of this library on another device of it; by default through the host."""
        return self.from_host(self.to_host(x), index)

    def array_converter(self, index: int) -> Callable[[Any], Any]:
        """Return a function that makes arrays of results.

        It is needed because some libraries return scalars in place of 0-d arrays.
        """
        return lambda value: self.from_host(np.asarray(value), index)

    def dtype(self, dtype: Any) -> Any:
        """Return the library's dtype for a NumPy dtype; its own dtypes are returned as they are."""
        try:
            return np.dtype(dtype)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(
                f"dtype: expected one such as xgrad.float32, got {shown(dtype)}"
            ) from error

    def numpy_dtype(self, dtype: Any) -> Any:
        """Return the NumPy dtype for a dtype of the library: the inverse of `dtype`."""
        return np.dtype(dtype)

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        """Return `x` with `values` added at `key`, once for each repeated index.

        `x` may be overwritten.
        """
        raise NotImplementedError

    def check_true(self, condition: Any) -> bool:
        """Return whether `condition`, an array of one bool, is true, in a check of an argument."""
        return bool(condition)

    def shares_memory(self, x: Any, y: Any) -> bool:
        """Return whether `y`, the result of a function of `x`, shares its memory."""
        base = getattr(y, "base", None)
        return y is x or (base is not None and (base is x or base is getattr(x, "base", None)))

    def is_exclusive(self, arrays: list[Any]) -> bool:
        """Return whether nothing but `arrays`, each held by one tensor, refers to their memory.

        If so, the memory may be overwritten. False if the library cannot tell.
        """
        return False

    def from_dlpack(self, x: Any, index: int) -> Any:
        """Return an array in the memory of an object with ``__dlpack__``.

        Raises BufferError if that needs a copy.
        """
        return self.xp.from_dlpack(x)

    def export_buffer(self, x: Any, *, read_only: bool, copy: bool) -> Any:
        """Return an array in the memory of `x` for another library.

        It is `read_only` if the library has that flag. If `copy` is true, the result may be a copy:
        for read-only memory that cannot be exported with that flag, and for layouts that other
        libraries refuse.
        """
        return x

    def random_bits(self, seed: int, call: int, width: int, count: int, index: int) -> Any:
        """Return `count` signed integers of `width` random bits, as `philox.bits` bit for bit.

        `seed` and `call` choose the numbers.
        """
        return self.from_host(philox.bits(seed, call, width, count), index)

    def from_words(
        self,
        make: Callable[[np.ndarray], np.ndarray],
        seed: int,
        call: int,
        count: int,
        shape: Any,
        index: int,
    ) -> Any:
        """Return the result of `make`, a function of `count` words of random bits, in a `shape`.

        The function is computed on the host; `seed` and `call` choose the words.
        """
        return self.from_host(make(philox.words(seed, call, count)).reshape(shape), index)

    def set_tf32(self, enabled: bool) -> None:
        """Set whether float32 products may use 10 bits of mantissa, if `enabled`.

        Raises DeviceError if the library does not support that.
        """
        if enabled:
            raise DeviceError(f"set_tf32: {self.library} has no TF32 that xgrad could turn on")

    def versions(self) -> dict[str, str]:
        """Return the versions of the library, and of its driver and runtime, by name."""
        return {}

    def synchronize(self, index: int) -> None:
        """Wait until all queued work on the device is done."""

    def wrote(self, x: Any) -> None:
        """Note that a write has given a tensor the array `x`; called for a `lazy` library."""

    def mark(self, index: int) -> Any:
        """Return a mark at the end of the device's queue, for `elapsed`.

        None if the library has no marks.
        """
        return None

    def elapsed(self, start: Any, end: Any) -> float:
        """Return the seconds between the marks `start` and `end`, which the device has passed."""
        raise NotImplementedError

    def memory(self, index: int) -> dict[str, int]:
        """Return the device's known memory figures in bytes.

        The keys are ``used``, ``reserved``, ``free`` and ``total``.
        """
        return {}
