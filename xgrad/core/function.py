"""Declaration and call of ops: one forward rule, and one derivative rule for each input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NoReturn, Protocol, overload

from xgrad.backend.device import Device, intercepting
from xgrad.backend.devices import transfer
from xgrad.backend.recording import active_recorder
from xgrad.core import providers
from xgrad.core.arguments import ArrayLike, to_tensors
from xgrad.core.backward_spec import BackwardSpec, outputs, reads
from xgrad.core.dtypes import SCALARS
from xgrad.core.graph import MultiOutputNode, Node, record
from xgrad.core.methods import Methods
from xgrad.core.modes import autocast_dtypes, grad_enabled
from xgrad.core.op import Op, Rule
from xgrad.core.promotion import are_bools, promote
from xgrad.core.tensor import Tensor, from_placement
from xgrad.core.views import is_view, link
from xgrad.support.hints import FUNCTION_FORM


class OneResult(Protocol):
    """A function whose forward rule returns one array, for type checkers."""

    @property
    def forward(self) -> Callable[..., ArrayLike]: ...


class Function(Op):
    """A differentiable function of arrays, written once for every device and every order.

    Subclass it, with two static methods:

    - ``forward(xp, x, ..., *, option=default)``: computes the result, or a tuple of them, from
      arrays, using operators and the functions of the namespace `xp` alone. Parameters before the
      ``*`` are inputs, those after it are options, which can be given in the constructor or in the
      call.
    - ``backward(xp, g, ...)``: returns the gradient for the input, or a tuple with one for each
      input (None where there is none), from the gradient `g` of the result. The names of its other
      parameters say what is saved for it: an input, an option, ``out`` for the result, ``x_shape``
      or ``x_device`` of an input x.

    Under ``create_graph=True`` the same `backward` runs on tensors, so a `Function` can be
    differentiated to any order if its `backward` uses nothing but its arguments. Gradients are
    summed over broadcast axes, and cast to the dtype of the input, after it. Neither method may
    write to the arrays that it is given.

    A complex tensor has the gradient ``dL/dRe z + i dL/dIm z`` of a real L, as in PyTorch.
    `backward` is written as for real numbers, the transpose of the derivative, which is what
    holomorphic functions need: where the result is complex it is called with the conjugate of `g`,
    and what it returns is conjugated. Where that is not the derivative (`abs`, `conj` ...), set the
    class attribute ``holomorphic = False``, and `backward` is left alone. Of what it returns for a
    real input the real part is taken.

    Raises
    ------
    TypeError
        In the constructor, if `backward` asks for a name that `forward` does not have.

    Examples
    --------
    >>> import xgrad
    >>> class Power(xgrad.Function):
    ...     @staticmethod
    ...     def forward(xp, x, *, n):
    ...         return x**n
    ...
    ...     @staticmethod
    ...     def backward(xp, g, x, n):
    ...         return g * n * x ** (n - 1)
    >>> cube = Power(n=3)
    >>> x = xgrad.Tensor(2.0, requires_grad=True)
    >>> (slope,) = xgrad.autograd.grad(cube(x), x, create_graph=True)
    >>> slope, xgrad.autograd.grad(slope, x)
    (Tensor(12., grad_fn=<multiply>), (Tensor(12.),))
    """

    _presets: dict[str, Any] | None = None  # the options of the constructor
    own_rule = True
    backward: Rule
    public: Callable[..., Any]  # the callable of an op of the library

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        code = getattr(getattr(cls, "forward", None), "__code__", None)
        if code is not None and code.co_varnames[:1] == ("ctx",):
            form = FUNCTION_FORM.format(name=cls.__name__)
            raise TypeError(
                f"{cls.__name__}: expected forward(xp, ...), got forward(ctx, ...): write{form}"
            )

    @classmethod
    def apply(cls, *inputs: Any) -> NoReturn:
        """Raise TypeError: xgrad calls functions as instances, not by PyTorch's ``apply``."""
        form = FUNCTION_FORM.format(name=cls.__name__)
        raise TypeError(f"{cls.__name__}: expected a call of an instance, got .apply: write{form}")

    def __init__(self, **options: Any) -> None:
        for method in ("forward", "backward"):
            if not hasattr(self, method):
                raise TypeError(
                    f"{type(self).__name__}: expected a static method {method}(xp, ...)"
                )
        self._presets = options
        self._declare(
            getattr(self, "name", type(self).__name__),
            (self.backward,),
            options,
            joint_backward=True,
        )
        reads(self, self.backward)  # which raises TypeError for unknown parameters

    def __reduce__(self) -> tuple[Any, ...]:
        if self._presets is None:  # an op of the library, pickled by its name
            return attrgetter("function"), (self.public,)
        return partial(type(self), **self._presets), ()

    @classmethod
    def of(
        cls, name: str, forward: Callable[..., Any], rules: Sequence[Rule | None], **flags: Any
    ) -> Function:
        """Return the function of a forward rule, and of a derivative rule or None for each input.

        If `joint_backward`, there is one rule for all inputs.
        """
        self = object.__new__(cls)
        joint_backward = flags.pop("joint_backward", False)
        vars(self).update({"own_rule": False, **flags}, forward=forward)
        self._declare(name, tuple(rules), {}, joint_backward)
        return self

    @overload
    def __call__(self: OneResult, *inputs: Any, **options: Any) -> Tensor: ...
    @overload
    def __call__(self, *inputs: Any, **options: Any) -> tuple[Tensor, ...]: ...
    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Apply the function to tensors and Python scalars, and record the call.

        A call is recorded if an input requires a gradient.
        """
        if options or self.options or (len(inputs) != len(self.inputs) and not self.variadic):
            inputs, options = self.bind(inputs, options)
        if self.autocast and (dtypes := autocast_dtypes.get()) is not None:
            narrow = self.autocast == "narrow"
            inputs = providers.module("precision").cast_inputs(inputs, dtypes, narrow)
        device = dtype = residual = recorder = None
        mixed, mask, bit, raws, edges, exempt = False, 0, 1, [], [], self._undecisive
        for x in inputs:
            if isinstance(x, Methods):  # a tensor: faster, since this base has no metaclass
                raw, placement, edge = x._data, x._placement, x._edge  # type: ignore[attr-defined]
                if placement.device is not device:
                    if device is not None:
                        inputs = providers.module("errors").on_one_device(self, inputs)
                        return self(*inputs, **options)
                    device = placement.device
                if not bit & exempt:
                    mixed = mixed or (dtype is not None and placement.dtype is not dtype)
                    dtype = placement.dtype
                if edge is not None:
                    mask |= bit
                raws.append(raw)
                edges.append(edge)
            elif type(x) in SCALARS or (x is None and self.nullable):
                mixed = mixed or x is True or x is False or type(x) is complex
                raws.append(x)
                edges.append(None)
            else:
                return self(*to_tensors(self, inputs), **options)
            bit += bit
        if device is None:
            return self(*to_tensors(self, inputs, scalars=True), **options)
        if (mode := intercepting.get()) is not None and device is not mode.device:
            result = mode.intercept(self, inputs, options)
            if result is not None:
                return result
            recorder = active_recorder()
        given = options
        if recorder is not None:
            device, raws, given = recorder.enter(device, raws, options)
        if self.lowest is not None and (mixed or dtype not in device.floats):
            if self.of_bools is not None and are_bools(raws, device):
                return getattr(providers.module("functions"), self.of_bools)(*inputs)
            if self.instead_for_bools and are_bools(raws, device):
                raise TypeError(
                    f"{self.name}: expected numbers, got bools: {self.instead_for_bools}"
                )
            if self.upcast:
                precision = providers.module("precision")
                if precision.computes_in_float32(self, inputs, device, mixed):
                    return precision.call_in_float32(self, inputs, options)
            raws = promote(
                self, raws, device, tuple([i for i in range(len(raws)) if self._exempt >> i & 1])
            )
        if options.get("dtype") is not None and not self.joint_backward:
            given["dtype"] = options["dtype"] = device.backend.dtype(options["dtype"])

        kernel = self._kernels.get(device) or self._kernels.setdefault(device, self.kernel(device))
        try:
            if device.device_context is None:
                out = kernel(*raws, **given)
            else:
                with device.device_context():
                    out = kernel(*raws, **given)
        except Exception as error:
            explained = providers.module("errors").explain(self, error, inputs, options)
            try:
                if explained is error:
                    raise
                raise explained from error
            finally:
                # whose traceback holds this frame: a reference cycle would keep the inputs
                del explained
        if self.residual:
            out, residual = out
        if self.cross_device:
            out, device = transfer(out, device, options["device"]), options["device"]
        if type(out) is not device.array_type:
            out = _as_device_arrays(self, out, device)
        if recorder is not None:
            device, raws, out, residual = recorder.leave(device, raws, out, residual)

        mask &= self._differentiable
        if type(out) is tuple:
            placements = [device.placements[part.dtype] for part in out]
            if not mask or not out or not grad_enabled.get():
                return tuple(map(from_placement, out, placements))
            spec = self._spec(mask, len(inputs), any(placement.complex for placement in placements))
            saved = spec.save(out, raws, inputs, options, residual, edges)
            node = record(
                MultiOutputNode(), spec, saved, [part.shape for part in out], placements[0]
            )
            node.outputs = [lambda: None] * len(out)  # dead references: edges are made on demand
            node.placements = placements
            return outputs(node, out)
        placement = device.placements[out.dtype]
        if not mask or not placement.floating or not grad_enabled.get():
            result = from_placement(out, placement)
        else:
            spec = self._spec(mask, len(inputs), placement.complex)
            saved = spec.save(out, raws, inputs, options, residual, edges)
            result = from_placement(
                out, placement, record(Node(), spec, saved, out.shape, placement)
            )
        if self.views and (self.views is True or is_view(inputs[0], out, self, options)):
            link(inputs[0], result, self, options)
        return result

    def _spec(self, mask: int, count: int, of_complex: bool) -> BackwardSpec:
        conjugates, key = of_complex and self.holomorphic, -1 if self.variadic else mask
        if key not in self.specs[conjugates]:
            self.specs[conjugates][key] = BackwardSpec(
                self, [bool(mask >> i & 1) for i in range(count)], conjugates
            )
        spec: BackwardSpec = self.specs[conjugates][key]
        return spec


def _as_device_arrays(function: Function, out: Any, device: Device) -> Any:
    """Return a result, or each of several, as an array of the type of the device."""
    if hasattr(out, "dtype"):
        return out if type(out) is device.array_type else device.as_array(out)
    if isinstance(out, (tuple, list)):
        return tuple([_as_device_arrays(function, part, device) for part in out])
    if type(out) in SCALARS:
        return providers.module("functions").asarray(out, device=device)._data
    raise TypeError(
        f"{function.name}: expected an array, or a tuple of them, of forward, got"
        f" {type(out).__name__}"
    )
