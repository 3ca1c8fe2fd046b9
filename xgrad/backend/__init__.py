"""The interface between xgrad and an array library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from xgrad.backend import philox
from xgrad.support.hints import shown


class DeviceError(RuntimeError):
    """A device that is unknown, unusable, or not the one where the other arrays are."""


class Backend:
    """Base class of backends, which adapt array libraries to xgrad: see ``backends/README.md``.

    The constructor imports the library. If that cannot be used, it raises `DeviceError`, with what
    is missing and what to install. Arrays below are the library's own, never tensors.

    Attributes
    ----------
    library : str
        The import name of the library, by which its arrays are recognised before the backend is
        loaded.
    array_module : str
        The import name of the module that has the class of its arrays, if it is not `library`.
    xp : namespace
        The array API namespace that rules run on, and `index_add`. Its ``special`` has special
        functions, by SciPy's names; by default SciPy's own, for which arrays pass through the host.
    array_type : type
        The class of its arrays. Results of other types pass through `array_converter`.
    native_types : tuple of type
        Other classes of arrays of the library, which `array_converter` takes: those that
        `array_type` wraps.
    devices : sequence
        The library's device objects, the ``device=`` of its creation functions and ``x.device`` of
        its arrays.
    kernels : mapping of str to callable
        Fused kernels that replace generic rules, by name: forward rules of ops, and functions
        declared `overridable`. Each takes the arguments of the rule but `xp`.
    rule_kernels : set of str
        The names of kernels that have the bits of their rules: captured steps record the rules in
        their place.
    asynchronous : bool
        Whether reading a value waits for the device. Values are not checked then.
    lazy : bool
        Whether writes extend a graph of queued work until `synchronize`, which optimizers call at
        the end of a step; `wrote` tells which arrays.
    data_dependent_shapes : bool
        Whether functions run whose results have shapes that depend on values; without, they raise
        an error.
    supports_out : bool
        Whether the namespace's `matmul` takes ``out``, an array for the result, of its dtype and in
        C order.
    fast_float16 : bool
        Whether matrix products of float16 are faster than those of float32; attention is then
        computed with them.
    tf32 : bool
        Whether products of float32 may use 10 bits of mantissa: see `set_tf32`.
    tile_size : int, optional
        The number of elements, and less than twice as many, to update at a time in large arrays, so
        that they stay in a cache.
    executor : str, optional
        The name of the module with the ``Executor`` of captured programs; without one, steps run
        eagerly.
    communicator : str, optional
        The name of the module with the ``Communicator`` of its arrays between processes; without
        one, MPI takes them.
    """

    library: ClassVar[str]
    array_module: ClassVar[str] = ""
    xp: Any
    array_type: type
    native_types: tuple[type, ...] = ()
    devices: Sequence[Any] = (None,)
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
        """Return a description of the device for people: model, memory."""
        return self.library

    def native_device(self, index: int) -> Any:
        """Return the library's device object."""
        return self.devices[index]

    def index_of(self, x: Any) -> int:
        """Return the index of the device that holds the array `x`."""
        return self.devices.index(x.device) if len(self.devices) > 1 else 0

    def device_context(self, index: int) -> Callable[[], AbstractContextManager[Any]] | None:
        """Return a factory of contexts in which the device is current, or None if the library has
        no current device.
        """
        return None

    def to_host(self, x: Any) -> np.ndarray:
        """Return the values of `x` as a NumPy array, which may share memory with it."""
        raise NotImplementedError

    def from_host(self, x: np.ndarray, index: int) -> Any:
        """Return the values of a NumPy array on a device: in shared memory, or copied before the
        call returns.
        """
        raise NotImplementedError

    def transfer(self, x: Any, index: int) -> Any:
        """Return an array of this library on another of its devices; by default through the
        host.
        """
        return self.from_host(self.to_host(x), index)

    def array_converter(self, index: int) -> Callable[[Any], Any]:
        """Return a function that makes arrays of results: some libraries give scalars for 0-d
        ones.
        """
        return lambda value: self.from_host(np.asarray(value), index)

    def dtype(self, dtype: Any) -> Any:
        """Return the library's dtype for a NumPy one; its own unchanged."""
        try:
            return np.dtype(dtype)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(
                f"dtype: expected one such as xgrad.float32, got {shown(dtype)}"
            ) from error

    def numpy_dtype(self, dtype: Any) -> Any:
        """Return the NumPy dtype for one of the library: the inverse of `dtype`."""
        return np.dtype(dtype)

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        """Return `x`, which may be overwritten, with `values` added at `key`, once for each
        repeated index.
        """
        raise NotImplementedError

    def check_true(self, condition: Any) -> bool:
        """Return whether an array of one bool is true, in a check of an argument."""
        return bool(condition)

    def shares_memory(self, x: Any, y: Any) -> bool:
        """Return whether `y`, the result of a function of `x`, shares its memory."""
        base = getattr(y, "base", None)
        return y is x or (base is not None and (base is x or base is getattr(x, "base", None)))

    def is_exclusive(self, arrays: list[Any]) -> bool:
        """Return whether only `arrays`, each held by one tensor, refer to their memory, which may
        then be overwritten.

        False if the library cannot tell.
        """
        return False

    def from_dlpack(self, x: Any, index: int) -> Any:
        """Return an array in the memory of an object with ``__dlpack__``; BufferError if that needs
        a copy.
        """
        return self.xp.from_dlpack(x)

    def export_buffer(self, x: Any, *, read_only: bool, copy: bool) -> Any:
        """Return an array in the memory of `x` for another library.

        It is `read_only` if the library has that flag. If `copy` is true, it may be a copy: of
        read-only memory that cannot be exported with that flag, and of a layout that other
        libraries refuse.
        """
        return x

    def random_bits(self, seed: int, call: int, width: int, count: int, index: int) -> Any:
        """Return the integers of `philox.bits`, bit for bit: `count` of `width` random bits,
        signed.
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
        """Return the result of a function of `count` words of random bits, computed on the host, in
        a shape.
        """
        return self.from_host(make(philox.words(seed, call, count)).reshape(shape), index)

    def set_tf32(self, enabled: bool) -> None:
        """Set whether products of float32 may use 10 bits of mantissa; DeviceError if the library
        lacks it.
        """
        if enabled:
            raise DeviceError(f"set_tf32: {self.library} has no TF32 that xgrad could turn on")

    def versions(self) -> dict[str, str]:
        """Return the versions of the library, and of its driver and runtime, by name."""
        return {}

    def synchronize(self, index: int) -> None:
        """Wait until all queued work of the device is done."""

    def wrote(self, x: Any) -> None:
        """Take note that a tensor was given the array `x` by a write; called for a library that is
        `lazy`.
        """

    def mark(self, index: int) -> Any:
        """Return a mark at the end of the queue of the device, for `elapsed`; None if the library
        has none.
        """
        return None

    def elapsed(self, start: Any, end: Any) -> float:
        """Return the seconds between two marks in the queue of a device, which has passed both."""
        raise NotImplementedError

    def memory(self, index: int) -> dict[str, int]:
        """Return known memory figures of the device in bytes: ``used``, ``reserved``, ``free``,
        ``total``.
        """
        return {}
