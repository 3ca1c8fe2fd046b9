"""Dask's arrays as the device ``dask``: rules build graphs, which Dask's schedulers run.

A scheduler may run them on a cluster. Dask's arrays are immutable: tensors hold mutable arrays over
them. Values are computed when they are read: by ``.numpy()``, ``.item()``, or a condition. Arrays
that were written to in place, such as parameters, the state of an optimizer and running statistics,
are computed together at the end of an optimizer's step, or by ``device.synchronize()``; data stay
in chunks. Differences from ``cpu``:

- Values are not checked, because a check would compute the graph.
- NumPy computes on whole arrays, not by chunks, in decompositions of matrices, in indexing by
  several arrays, in ``searchsorted``, and in sums of repeated indices.
- NumPy computes on arrays without elements, for which many functions of Dask fail.
- Functions whose result has a shape that depends on values raise a NotImplementedError.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import chain, count, islice
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad.backend.mutable import MutableArray, MutableNamespace, unwrapped
from xgrad.backend.scipy_kernels import SciPyKernels

_LINALG = (
    "cholesky cross det eig eigh eigvals eigvalsh inv matrix_rank pinv qr slogdet solve svd"
    " svdvals".split()
)
_UNKNOWN = (
    "expected a shape that is known without values, got one that depends on them: move the inputs"
    " by .to('cpu')"
)


def whole(function: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """Return the results of a NumPy function applied to whole arrays.

    Shapes and dtypes are taken from a call with other values.
    """
    with np.errstate(all="ignore"):
        example = function(*[_example(x) for x in inputs], **options)
    function = partial(function, **options)
    if not isinstance(example, tuple):
        return _of_wholes(function, example, *inputs)
    results = _of_wholes(function, np.empty((), object), *inputs)  # one block that holds the tuple
    parts = [_of_wholes(itemgetter(i), part, results) for i, part in enumerate(example)]
    return type(example)(*parts) if hasattr(example, "_fields") else tuple(parts)


def _of_wholes(function: Callable[..., Any], like: Any, *inputs: Any) -> Any:
    """Return the result of a function of whole arrays as one block.

    It has the shape and dtype of `like`. `dask.delayed` would rename the tasks of the inputs, which
    would then no longer be shared.
    """
    labels, axes = count(like.ndim), range(like.ndim)
    indices = [tuple(islice(labels, x.ndim)) if hasattr(x, "dask") else None for x in inputs]
    arguments = chain.from_iterable(zip(inputs, indices, strict=True))
    options = {
        "new_axes": dict(zip(axes, like.shape, strict=True)),
        "dtype": like.dtype,
        "concatenate": True,
    }
    return import_module("dask.array").blockwise(
        function, tuple(axes), *arguments, **options, meta=like[:0] if axes else like
    )


def _example(x: Any) -> Any:
    """Return a NumPy array like a Dask array, with values for which functions are defined."""
    if not hasattr(x, "dask"):
        return x
    values = np.eye(*x.shape[-2:]) if x.ndim > 1 and x.dtype.kind in "fc" else np.zeros(())
    return np.broadcast_to(values, x.shape).astype(x.dtype)


def _item(x: Any, *key: Any) -> Any:
    return np.asarray(x[key])


def _replaced(x: Any, value: Any, *key: Any) -> Any:
    x = x.copy()
    x[key] = value
    return x


def _added(x: Any, value: Any, *key: Any) -> Any:
    x = x.copy()
    np.add.at(x, key, value)
    return x


def _parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _computed(*arrays: Any) -> tuple[Any, ...]:
    """Return the values of arrays, without fusion of tasks.

    Fusion gives a cluster different tasks under the same keys.
    """
    values: tuple[Any, ...] = import_module("dask").compute(*arrays, optimize_graph=False)
    return values


def _whole_if_empty(
    function: Callable[..., Any], of_numpy: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a Dask function that leaves arrays without elements to NumPy."""

    def call(*args: Any, **options: Any) -> Any:
        places = [i for i, x in enumerate(args) if hasattr(x, "dask")]
        if any(0 in args[i].shape for i in places):
            others = [None if i in places else x for i, x in enumerate(args)]
            return whole(
                partial(_placed, of_numpy, others, places), *[args[i] for i in places], **options
            )
        return function(*args, **options)

    return call


def _placed(
    function: Callable[..., Any], others: list[Any], places: list[int], *arrays: Any, **options: Any
) -> Any:
    """Call a function with arrays at the given positions among its other arguments."""
    args = others.copy()
    for place, x in zip(places, arrays, strict=True):
        args[place] = x
    return function(*args, **options)


def _eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Any:
    """Return ones on a diagonal; Dask's `eye` fails unless the matrix is square."""
    da = import_module("dask.array")
    rows, columns = da.arange(n_rows), da.arange(n_rows if n_cols is None else n_cols)
    return (rows[:, None] + k == columns).astype(np.float64 if dtype is None else dtype)


def _reshape(x: Any, /, shape: tuple[int, ...]) -> Any:
    """Reshape by chunks where Dask can, otherwise as one chunk."""
    reshape = import_module("dask.array").reshape
    try:
        return reshape(x, shape)
    except NotImplementedError:
        return reshape(x.rechunk(-1), shape)


def _repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    if not isinstance(repeats, int):
        raise NotImplementedError(_UNKNOWN)
    return whole(np.repeat, x, repeats, axis=axis)


def _take_along_axis(x: Any, indices: Any, axis: int = -1) -> Any:
    """Take elements along an axis, chunk by chunk along the others."""
    kept, taken = list(range(x.ndim)), list(range(x.ndim))
    taken[axis] = x.ndim
    function = partial(np.take_along_axis, axis=axis)
    blockwise = import_module("dask.array").blockwise
    return blockwise(function, taken, x, kept, indices, taken, dtype=x.dtype, concatenate=True)


class DaskArray(MutableArray):
    """A mutable array over a Dask array."""

    __slots__ = ()
    # arrays written to and not computed since, by id
    written: ClassVar[WeakValueDictionary[int, DaskArray]] = WeakValueDictionary()

    def __init__(
        self,
        native: Any,
        base: MutableArray | None = None,
        take: Callable[[Any], Any] | None = None,
    ) -> None:
        if any(map(math.isnan, native.shape)):
            raise NotImplementedError(_UNKNOWN)
        super().__init__(native, base, take)

    @staticmethod
    def namespace() -> Any:
        return import_module("array_api_compat.dask.array")

    @staticmethod
    def replaced(x: Any, key: Any, value: Any) -> Any:
        if any(hasattr(part, "dask") for part in _parts(key)):
            return whole(_replaced, x, value, *_parts(key))
        new = x.copy()
        if new[key].size:  # Dask refuses empty parts
            new[key] = value
        return new

    def write(self, native: Any) -> None:
        super().write(native)
        self.written[id(self)] = self

    @property
    def device(self) -> str:
        return "cpu"

    def __getitem__(self, key: Any) -> MutableArray:
        if sum(isinstance(part, DaskArray) for part in _parts(key)) > 1:
            return DaskArray(whole(_item, self.native, *unwrapped(_parts(key))))
        return super().__getitem__(key)


class DaskSpecial(SciPyKernels):
    """SciPy's special functions, chunk by chunk."""

    def adapted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(*inputs: Any) -> Any:
            if not any(isinstance(x, DaskArray) for x in inputs):
                return function(*inputs)
            out = import_module("dask.array.core").elemwise(function, *unwrapped(inputs))
            floats = [x.dtype for x in inputs if hasattr(x, "dtype") and x.dtype.kind in "fc"]
            return DaskArray(out.astype(np.result_type(*floats)) if floats else out)

        return kernel


class DaskBackend(Backend):
    """Dask, through array-api-compat."""

    library = "dask"
    devices = ("cpu",)
    array_type = DaskArray
    asynchronous = lazy = True
    data_dependent_shapes = False

    def __init__(self) -> None:
        try:
            self._dask, self._da = import_module("dask"), import_module("dask.array")
            namespace = DaskArray.namespace()
        except ImportError as error:
            raise DeviceError(
                "dask: the package Dask is missing: pip install 'xgrad[dask]'"
            ) from error
        self.native_types = (self._da.Array,)
        linalg = {name: partial(whole, getattr(np.linalg, name)) for name in _LINALG}
        twins = import_module("array_api_compat.numpy")
        common = {
            name: f
            for name, f in vars(namespace).items()
            if callable(f) and callable(getattr(twins, name, None))
        }
        added: dict[str, Any] = {
            name: _whole_if_empty(f, getattr(twins, name))
            for name, f in common.items()
            if not isinstance(f, type)
        }
        added["reshape"] = _whole_if_empty(_reshape, np.reshape)
        added |= {"eye": _eye, "repeat": _repeat, "take_along_axis": _take_along_axis}
        added |= {"searchsorted": partial(whole, np.searchsorted)}
        added["linalg"] = SimpleNamespace(**vars(namespace.linalg) | linalg)
        library = SimpleNamespace(**vars(namespace) | added)
        self.xp = MutableNamespace(
            library, DaskArray, index_add=self.index_add, special=DaskSpecial(self)
        )
        self.kernels = {"cross_entropy": self._cross_entropy}

    def versions(self) -> dict[str, str]:
        return {"dask": self._dask.__version__}

    def describe(self, index: int) -> str:
        return f"Dask {self._dask.__version__}"

    def to_host(self, x: Any) -> np.ndarray:
        return np.array(*_computed(x.native))

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return DaskArray(self._da.from_array(np.array(x), chunks=-1))

    def array_converter(self, index: int) -> Callable[[Any], Any]:
        return lambda value: (
            DaskArray(value)
            if isinstance(value, self._da.Array)
            else self.from_host(np.asarray(value), index)
        )

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        return DaskArray(whole(_added, x.native, unwrapped(values), *unwrapped(_parts(key))))

    def synchronize(self, index: int) -> None:
        """Compute all arrays of one chunk that were written to, together.

        The values replace their graphs. They are held here, not on a cluster (`persist`), because
        its scheduler would remember the tasks of all steps.
        """
        arrays = [x for x in DaskArray.written.values() if x.native.npartitions == 1]
        for x, values in zip(arrays, _computed(*[x.native for x in arrays]), strict=True):
            x.write(self.from_host(values, index).native)
            DaskArray.written.pop(id(x), None)  # another thread may have removed it

    def wrote(self, x: Any) -> None:
        DaskArray.written[id(x.root)] = x.root

    def _cross_entropy(self, input: Any, target: Any, **options: Any) -> Any:
        """Apply the generic rule to three axes.

        For two axes, it indexes by two arrays, which would take whole arrays.
        """
        rule, xp = import_module("xgrad.ops.class_losses")._cross_entropy.function.forward, self.xp
        if len(input.shape) != 2:
            return rule(xp, input, target, **options)
        out, scale = rule(
            xp, xp.expand_dims(input, axis=2), xp.expand_dims(target, axis=1), **options
        )
        return xp.reshape(out, out.shape[:1]), tuple([xp.squeeze(part, axis=2) for part in scale])
