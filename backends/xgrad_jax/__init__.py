"""JAX's arrays as the devices ``jax``, ``jax:1``, ..., the devices of JAX's default platform.

They are in JAX's order. JAX's arrays are immutable: tensors hold mutable arrays over them. Neither
its derivatives nor its compiler are used. float64 is enabled where xgrad calls JAX, and nowhere
else. Differences from ``cpu``:

- An index in an array that is out of bounds selects the last element, as in JAX.
- Special functions are SciPy's: arrays pass through the host.

JAX takes three quarters of a GPU's memory when it first lists its devices, which leaves little for
CuPy or PyTorch. If the program has not imported JAX, and has set none of the environment variables
`MEMORY`, this backend sets ``XLA_PYTHON_CLIENT_PREALLOCATE=false`` before it imports JAX: memory is
then taken when it is needed.

Work is queued, but the backend is not `asynchronous`: checks of values wait. It has not run on a
GPU.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad.backend.mutable import MutableArray, MutableNamespace, unwrapped
from xgrad.backend.scipy_kernels import SciPyKernels

#: JAX's environment variables that say how much of a GPU's memory it takes at first.
MEMORY = (
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_CLIENT_MEM_FRACTION",
)


def take_memory_when_needed(environment: MutableMapping[str, str]) -> None:
    """Let JAX take memory of a GPU when it is needed, unless the user has decided that."""
    if environment.keys().isdisjoint(MEMORY):
        environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"


class JaxArray(MutableArray):
    """A mutable array over a JAX array."""

    __slots__ = ()

    @staticmethod
    def namespace() -> Any:
        return import_module("jax.numpy")

    @staticmethod
    def replaced(x: Any, key: Any, value: Any) -> Any:
        return x.at[key].set(value)

    def __getitem__(self, key: Any) -> MutableArray:
        if not any(
            isinstance(part, JaxArray) for part in (key if isinstance(key, tuple) else (key,))
        ):
            np.broadcast_to(0, self.shape)[
                key
            ]  # raises IndexError; JAX would take the last element
        return super().__getitem__(key)


class JaxBackend(Backend):
    """JAX without its derivatives and its compiler."""

    library = "jax"
    array_module = "jaxlib"

    def __init__(self) -> None:
        if "jax" not in sys.modules:  # else its memory is the concern of who imported it
            take_memory_when_needed(os.environ)
        try:
            self._jax: Any = import_module("jax")
            self._jnp = JaxArray.namespace()
        except ImportError as error:
            raise DeviceError(
                "jax: the package JAX is missing: pip install 'xgrad[jax]'"
            ) from error
        self.array_type, self.native_types = JaxArray, (self._jax.Array,)
        self.devices = self._jax.devices()
        with self._x64():
            added = {
                "index_add": self.index_add,
                "searchsorted": self.searchsorted,
                "special": SciPyKernels(self),
            }
            linalg = MutableNamespace(self._jnp.linalg, JaxArray, matrix_rank=self.matrix_rank)
            self.xp = MutableNamespace(self._jnp, JaxArray, **added, linalg=linalg)

    def _x64(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = self._jax.enable_x64(True)
        return context

    def device_context(self, index: int) -> Callable[[], AbstractContextManager[Any]]:
        return self._x64

    def describe(self, index: int) -> str:
        return f"JAX {self._jax.__version__} on {self.devices[index]}"

    def versions(self) -> dict[str, str]:
        return {"jax": self._jax.__version__}

    def index_of(self, x: Any) -> int:
        if x.device not in self.devices:
            raise TypeError(
                f"jax: expected an array on one of {self.devices}, got one on {x.device}"
            )
        return self.devices.index(x.device)

    def to_host(self, x: Any) -> np.ndarray:
        return np.array(x.native)

    def from_host(self, x: np.ndarray, index: int) -> Any:
        with self._x64():
            return JaxArray(self._jax.device_put(np.array(x), self.devices[index]))

    def transfer(self, x: Any, index: int) -> Any:
        with self._x64():
            return JaxArray(self._jax.device_put(x.native, self.devices[index]))

    def array_converter(self, index: int) -> Callable[[Any], Any]:
        return lambda value: (
            JaxArray(value)
            if isinstance(value, self._jax.Array)
            else self.from_host(np.asarray(value), index)
        )

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        return JaxArray(x.native.at[unwrapped(key)].add(unwrapped(values)))

    def matrix_rank(self, x: Any, /, *, rtol: Any = None) -> Any:
        """Return `linalg.matrix_rank` of the standard: JAX's `rtol` is an absolute tolerance."""
        rank, svdvals = self._jnp.linalg.matrix_rank, self._jnp.linalg.svdvals
        if rtol is None or 0 in x.shape:
            return JaxArray(rank(x.native))
        return JaxArray(
            rank(x.native, rtol=unwrapped(rtol) * self._jnp.max(svdvals(x.native), axis=-1))
        )

    def searchsorted(self, x1: Any, x2: Any, /, **options: Any) -> Any:
        """Return `searchsorted` of the standard, with int64 indices: JAX's are int32."""
        options = {name: unwrapped(value) for name, value in options.items()}
        return JaxArray(
            self._jnp.searchsorted(unwrapped(x1), unwrapped(x2), **options).astype("int64")
        )

    def from_dlpack(self, x: Any, index: int) -> Any:
        with self._x64():
            return JaxArray(self._jnp.from_dlpack(x))

    def synchronize(self, index: int) -> None:
        self._jnp.zeros((), device=self.devices[index]).block_until_ready()
