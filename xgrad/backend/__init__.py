"""What an array library is to xgrad: the only way in which it reaches one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from xgrad.backend import philox
from xgrad.support.hints import shown


class DeviceError(RuntimeError):
    """A device that is unknown, unusable, or not the one where the other arrays are."""


class Backend:
    """What an array library adds to the standard; a plug-in subclasses this (see ``backends/README.md``).

    The constructor imports the library and raises `DeviceError`, saying what is missing and what to
    install, where it cannot be used. Arrays below are the library's own, never tensors.

    Attributes
    ----------
    library : str
        The import name of the library, by which its arrays are recognised before it is loaded.
    xp : namespace
        The array API namespace that rules run on. Its ``special`` has the special functions, by SciPy's names;
        where it has none, SciPy's own are put there, for which arrays pass through the host.
    array_type : type
        The class of its arrays. A result of any other type passes through `array_converter`.
    kernels : mapping of str to callable
        Fused kernels that replace generic rules: the forward rule of an op, by its name, or a part that is declared
        `overridable`, by its own. Each takes the same arguments without `xp`.
    asynchronous : bool
        Whether to read a value is to wait for the device, so that checks of values are left out.
    supports_out : bool
        Whether the namespace's `matmul` takes ``out``, an array for the result, of its dtype and in C order.
    tf32 : bool
        Whether products of float32 may take 10 bits of mantissa: see `set_tf32`.
    tile_size : int, optional
        How many elements at a time elementwise work on large arrays should take, to stay in a cache.
    executor : str, optional
        The module whose ``Executor`` runs the programs of `xgrad.capture`; without one steps run eagerly.
    """

    library: ClassVar[str]
    xp: Any
    array_type: type
    kernels: Mapping[str, Callable[..., Any]] = {}
    asynchronous: bool = False
    supports_out: bool = False
    tf32: bool = False
    tile_size: int | None = None
    executor: ClassVar[str | None] = None

    def count(self) -> int:
        """Return the number of devices."""
        return 1

    def describe(self, index: int) -> str:
        """Return a name of the device that means something to a person."""
        return self.library

    def native_device(self, index: int) -> Any:
        """Return the library's own device object."""
        raise NotImplementedError

    def index_of(self, x: Any) -> int:
        """Return the index of the device that holds the array `x`."""
        return 0

    def device_context(self, index: int) -> Callable[[], AbstractContextManager[Any]] | None:
        """Return what makes the device current, or None where a library has no current device."""
        return None

    def to_host(self, x: Any) -> np.ndarray:
        """Return the values of `x` as a NumPy array, without a copy where memory is shared."""
        raise NotImplementedError

    def from_host(self, x: np.ndarray, index: int) -> Any:
        """Return the values of the NumPy array `x` on a device, without a copy where memory is shared."""
        raise NotImplementedError

    def transfer(self, x: Any, index: int) -> Any:
        """Return the array `x` of this library on another of its devices."""
        return self.from_host(self.to_host(x), index)

    def array_converter(self, index: int) -> Callable[[Any], Any]:
        """Return what makes an array of an op's result: some libraries give scalars for 0-d results."""
        return lambda value: self.from_host(np.asarray(value), index)

    def dtype(self, dtype: Any) -> Any:
        """Return the library's dtype for a NumPy one; its own are returned as they are."""
        try:
            return np.dtype(dtype)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"dtype: expected one such as xgrad.float32, got {shown(dtype)}") from error

    def numpy_dtype(self, dtype: Any) -> Any:
        """Return the NumPy dtype for one of the library's own: the inverse of `dtype`."""
        return np.dtype(dtype)

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        """Return `x`, which may be overwritten, with `values` added at `key`; repeated indices add up."""
        raise NotImplementedError

    def check_true(self, condition: Any) -> bool:
        """Return whether an array of one bool is true, which is the check of an argument."""
        return bool(condition)

    def buffer_refcount(self, x: Any) -> int | None:
        """Return a number that grows when another array comes to share the memory of `x`, or None if none is known."""
        return None

    def shares_memory(self, x: Any, y: Any) -> bool:
        """Return whether `y`, the result of a function of `x`, lies in the memory of `x`."""
        base = getattr(y, "base", None)
        return y is x or (base is not None and (base is x or base is getattr(x, "base", None)))

    def is_exclusive(self, arrays: list[Any]) -> bool:
        """Return whether nothing sees the memory of `arrays` but these, each of which one tensor holds.

        They may then be written to. False where the library cannot tell.
        """
        return False

    def from_dlpack(self, x: Any, index: int) -> Any:
        """Return what an object with ``__dlpack__`` holds as an array, without a copy; BufferError if it needs one."""
        return self.xp.from_dlpack(x)

    def export_buffer(self, x: Any, *, read_only: bool, copy: bool) -> Any:
        """Return an array in the memory of `x`, to be given away: one more that `buffer_refcount` counts.

        If the library can say of arrays that they are, it is to be `read_only`; of what is read-only and cannot be
        given away as that, a copy is, if it may be made. So it is of what other libraries cannot take.
        """
        return x

    def random_bits(self, seed: int, call: int, width: int, count: int, index: int) -> Any:
        """Return `count` integers of `width` random bits, 16, 32 or 64, signed: to the bit those of `philox.bits`."""
        return self.from_host(philox.bits(seed, call, width, count), index)

    def from_words(
        self, make: Callable[[np.ndarray], np.ndarray], seed: int, call: int, count: int, shape: Any, index: int
    ) -> Any:
        """Return what a function of the host makes of `count` words of random bits, in a shape."""
        return self.from_host(make(philox.words(seed, call, count)).reshape(shape), index)

    def set_tf32(self, enabled: bool) -> None:
        """Let products of float32 take 10 bits of mantissa, or not; DeviceError where that cannot be had."""
        if enabled:
            raise DeviceError(f"set_tf32: {self.library} has no TF32 that xgrad could turn on")

    def versions(self) -> dict[str, str]:
        """Return the versions of the library and of what it runs on, by name."""
        return {}

    def synchronize(self, index: int) -> None:
        """Wait until the device has done all that was asked of it."""

    def memory(self, index: int) -> dict[str, int]:
        """Return memory figures of the device in bytes: ``used``, ``reserved``, ``free``, ``total``, as known."""
        return {}
