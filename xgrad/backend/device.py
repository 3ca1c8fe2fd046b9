"""Devices, on which tensors are stored and ops run, and placements of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, ClassVar

from xgrad.backend import Backend, DeviceError
from xgrad.backend.registry import PlugInErrors, device_count, open_backend
from xgrad.support.hints import shown

#: The `Interceptor` of op calls in this thread or task, such as anomaly detection. A captured step
#: sets one, too, beside its recorder, so that ops look for a recorder only then.
intercepting: ContextVar[Interceptor | None] = ContextVar("xgrad_intercepting", default=None)
#: The innermost call of `vmap` in this thread or task: see `xgrad.transforms.batching`.
batching: ContextVar[Any] = ContextVar("xgrad_batching", default=None)
_NO_CONTEXT = nullcontext()


class Interceptor:
    """A mode in which op calls, except on one device, pass through a method.

    Ops test for it at the same place as for the recorder of a captured step, so its absence costs
    nothing.
    """

    device: Any = None  # the device whose ops are not intercepted

    def intercept(self, function: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return the result of a call, or None to let it run as it is."""

    def before_backward(self, edges: Iterable[Any]) -> None:
        """Handle the start of a backward pass from these edges."""

    def after_backward(self) -> None:
        """Handle the end of a backward pass."""

    def run_rule(self, watched: Any, g: Any, xp: Any, saved: Any, into: Any) -> Any:
        """Run a derivative rule of a watched node: see `xgrad.diagnostics.interception`."""
        return watched.rule(g, xp, saved, into)


class Device:
    """A device, on which tensors are stored and ops run. Interned: equality is identity.

    Parameters
    ----------
    name : str or Device
        A backend's name, with an index if it has several devices: ``"cpu"``, ``"cuda"``,
        ``"cuda:1"``. Without an index, the device is the first one; in a process that a launcher
        such as ``mpiexec`` has started, ``"cuda"`` is the GPU of its rank on this machine.
    index : int, optional
        The index, if the name has none: ``Device("cuda", 1)``, as in PyTorch.

    Raises
    ------
    DeviceError
        If no backend has the name, or its library, driver or device is missing; the message says
        which.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.Device("cpu")
    Device('cpu')
    >>> xgrad.Device("cpu:0") is xgrad.Device("cpu")
    True
    """

    _known: ClassVar[dict[str, Device]] = {}
    type: str
    index: int
    backend: Backend
    xp: Any
    array_type: Any
    as_array: Callable[[Any], Any]
    floats: tuple[Any, ...]
    device_context: Callable[[], AbstractContextManager[Any]] | None
    native: Any
    placements: Placements
    # the nesting level of `vmap`, whose tensors have separate devices, each representing a `root`
    level = 0
    root: Device
    # Arrays of a `vmap` have the graph of the calls around it; see `xgrad.transforms.batching`.
    detached: Callable[[Any], Any]
    is_differentiated: Callable[[Any], bool]
    rewritten: Callable[[Any, Any], Any]
    call_with_own_rule: Callable[..., Any]

    def __new__(cls, name: str | Device, index: int | None = None) -> Device:
        if isinstance(name, Device) and index is None:
            return name
        if not isinstance(name, str):
            raise TypeError(f"Device: expected a name such as 'cpu' or 'cuda:1', got {shown(name)}")
        if index is not None:
            name = f"{name}:{index}"
        if name in cls._known:
            return cls._known[name]
        kind, colon, digits = name.partition(":")
        # `int` raises for thousands of digits
        if colon and not (digits.isdecimal() and len(digits) < 10):
            raise DeviceError(f"unknown device {name!r}: expected a name such as 'cpu' or 'cuda:1'")
        backend, count = open_backend(kind), device_count(kind)
        index = int(digits) if colon else backend.default_index
        if index >= count:
            raise DeviceError(f"unknown device {name!r}: this machine has {count} of type {kind!r}")
        full = f"{kind}:{index}"
        with PlugInErrors(kind):
            device = cls._known.get(full) or cls._known.setdefault(
                full, cls.of(kind, backend, index)
            )
        return cls._known.setdefault(name, device)

    @classmethod
    def of(cls, kind: str, backend: Backend, index: int = 0) -> Device:
        """Return a device of a backend that need not be installed.

        It has no name under which it can be found.
        """
        device = object.__new__(cls)
        device.type, device.index, device.backend, device.root = kind, index, backend, device
        device.xp, device.array_type = backend.xp, backend.array_type
        if "special" not in vars(device.xp):  # hasattr would load array-api-compat
            # not at the top: imported with the first device
            from xgrad.backend.scipy_kernels import SciPyKernels

            device.xp.special = SciPyKernels(backend)
        device.xp.kernels = backend.kernels  # for `overridable`
        device.floats = tuple(backend.dtype(t) for t in ("float32", "float64"))
        device.as_array = backend.array_converter(index)
        device.device_context = backend.device_context(index)
        device.native = backend.native_device(index)
        device.placements = Placements(device)
        return device

    @property
    def _full_name(self) -> str:
        return f"{self.type}:{self.index}"

    def __str__(self) -> str:
        # The first device has the short name, unless that is the name of another one.
        return self._full_name if self.index or self.backend.default_index else self.type

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self._full_name,)  # the short name may be another device elsewhere

    def active(self) -> AbstractContextManager[Any]:
        """Return a context in which this is the current device of its library."""
        return _NO_CONTEXT if self.device_context is None else self.device_context()

    def synchronize(self) -> None:
        """Wait until all queued work on the device is done: call it before reading a clock."""
        self.backend.synchronize(self.index)

    def memory(self) -> dict[str, int]:
        """Return known memory figures in bytes: ``used``, ``reserved``, ``free``, ``total``."""
        return self.backend.memory(self.index)


class Placement:
    """A device and a dtype of its library, with NumPy's character for the dtype's kind.

    Interned: equality is identity.
    """

    __slots__ = ("complex", "device", "dtype", "floating", "half", "kind")
    device: Device
    dtype: Any
    kind: str
    floating: bool
    complex: bool
    half: bool

    def __init__(self, device: Device, dtype: Any) -> None:
        self.device, self.dtype = device, dtype
        numpy_dtype = device.backend.numpy_dtype(dtype)
        self.kind = kind = numpy_dtype.kind
        self.floating, self.complex = kind in "fc", kind == "c"
        self.half = kind == "f" and numpy_dtype.itemsize == 2  # float16

    def __str__(self) -> str:
        return f"{self.dtype} on {self.device}"


class Placements(dict[Any, Placement]):
    """The placements of a device by dtype, each made at its first use."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __missing__(self, dtype: Any) -> Placement:
        return self.setdefault(dtype, Placement(self.device, dtype))
