"""Calls of modules: hooks, and notes that name the layer in which an error was raised."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from xgrad.nn.backward_hooks import BackwardHooks
from xgrad.support.hints import shown

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class HasForward(Protocol[P, R_co]):
    """A module for type checkers: its call has the parameters and the result of `forward`."""

    _hooks: tuple[Hook, ...]

    def forward(self, *inputs: P.args, **options: P.kwargs) -> R_co: ...
    def named_modules(self) -> Iterator[tuple[str, Any]]: ...
    def _call_with_hooks(self, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any: ...


class Hook(NamedTuple):
    """A hook: its function, when to call it, and whether it takes keyword arguments."""

    function: Callable[..., Any]
    kind: str  # "before", "after" or "backward"
    with_kwargs: bool = False


class ModuleHookHandle:
    """A registered hook, as `Module.register_forward_hook` returns it."""

    def __init__(self, module: CallableModule, hook: Hook) -> None:
        self._module, self._hook = module, hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._module._hooks = tuple(
            [hook for hook in self._module._hooks if hook is not self._hook]
        )


class CallableModule:
    """The part of a `Module` that implements its call, with hooks."""

    #: In the order of calls. The tuple is replaced, never mutated: captured steps compare it by
    #: identity.
    _hooks: tuple[Hook, ...] = ()

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return the result of the module; each subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method forward, found none: define it"
        )

    def named_modules(self) -> Iterator[tuple[str, Any]]:
        raise NotImplementedError

    def __call__(self: HasForward[P, R_co], *inputs: P.args, **options: P.kwargs) -> R_co:
        try:
            if self._hooks:
                return self._call_with_hooks(inputs, options)  # type: ignore[no-any-return]
            return self.forward(*inputs, **options)
        except Exception:
            # No `as error`: `_note_layer` reads the locals of this frame, and the error would be
            # part of a reference cycle.
            _note_layer(self)
            raise

    def _call_with_hooks(self, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        backward = [function for function, kind, _ in self._hooks if kind == "backward"]
        for function, kind, with_kwargs in self._hooks:
            if kind != "before":
                continue
            changed = function(self, inputs, options) if with_kwargs else function(self, inputs)
            if changed is None:
                continue
            if not with_kwargs:
                inputs = changed if isinstance(changed, tuple) else (changed,)
            elif isinstance(changed, tuple) and len(changed) == 2:
                inputs, options = changed
            else:
                raise TypeError(
                    f"{type(self).__name__}: expected None or a pair (args, kwargs) from a forward"
                    f" pre-hook with kwargs, got {shown(changed)}"
                )
        watch = BackwardHooks(self, backward) if backward else None
        inputs, arrays = watch.inputs(inputs) if watch else (inputs, [])
        output = self.forward(*inputs, **options)
        # Read again: `forward` may have added or removed hooks.
        for function, kind, with_kwargs in self._hooks:
            if kind == "after":
                args = (self, inputs, options, output) if with_kwargs else (self, inputs, output)
                changed = function(*args)
                output = output if changed is None else changed
        return watch.output(output, inputs, arrays) if watch else output

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> ModuleHookHandle:
        """Call ``hook(module, args)`` before every call of this module.

        Parameters
        ----------
        hook : callable
            It returns None, or new positional arguments: a tuple, or an object that is the only
            argument.
        prepend : bool, default False
            Whether to call it before the existing hooks instead of after them.
        with_kwargs : bool, default False
            Whether the call is ``hook(module, args, kwargs)``, which returns None or a
            pair (args, kwargs).

        Returns
        -------
        ModuleHookHandle
            Its method ``remove()`` removes the hook.

        Raises
        ------
        TypeError
            If `hook` is not callable; in a call of the module, if a hook with kwargs returns
            neither None nor a pair.

        Examples
        --------
        >>> import xgrad
        >>> layer = xgrad.nn.Identity()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: 2 * args[0])
        >>> layer(xgrad.ones(2))
        Tensor([2., 2.])
        """
        return self._register_hook(
            "register_forward_pre_hook", Hook(hook, "before", with_kwargs), prepend
        )

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> ModuleHookHandle:
        """Call ``hook(module, args, output)`` after every call of this module.

        In a captured step, hooks run during the trace, and their ops are part of the program. A new
        or removed hook causes a new trace.

        Parameters
        ----------
        hook : callable
            It returns None, or a new output.
        prepend : bool, default False
            Whether to call it before the existing hooks instead of after them.
        with_kwargs : bool, default False
            Whether the call is ``hook(module, args, kwargs, output)``.

        Returns
        -------
        ModuleHookHandle
            Its method ``remove()`` removes the hook.

        Raises
        ------
        TypeError
            If `hook` is not callable.

        Examples
        --------
        >>> import xgrad
        >>> net = xgrad.nn.MLP([3, 4, 2])
        >>> shapes = []
        >>> handle = net[0].register_forward_hook(
        ...     lambda module, args, output: shapes.append(output.shape)
        ... )
        >>> out = net(xgrad.ones((5, 3)))
        >>> shapes
        [(5, 4)]
        >>> handle.remove()
        """
        return self._register_hook(
            "register_forward_hook", Hook(hook, "after", with_kwargs), prepend
        )

    def register_full_backward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False
    ) -> ModuleHookHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the input gradients are complete.

        Both gradients are tuples. `grad_input` has one entry for each positional argument of the
        call: None for an argument that requires no gradient. `grad_output` has one entry for the
        output, or for each element of a tuple: zeros for an element that nothing depends on. If no
        argument requires a gradient, the hook is called as soon as `grad_output` is known. The
        result of the hook does not change the gradients of parameters.

        Parameters
        ----------
        hook : callable
            It returns None, or new gradients of the arguments: a tuple like `grad_input`.
        prepend : bool, default False
            Whether to call it before the existing hooks instead of after them.

        Returns
        -------
        ModuleHookHandle
            Its method ``remove()`` removes the hook from later calls of the module.

        Raises
        ------
        TypeError
            If `hook` is not callable; in a backward pass, if it returns neither None nor a tuple
            like `grad_input`.
        ValueError
            In a backward pass, if a gradient has another shape, dtype or device than the argument.
        RuntimeError
            In a call of the module, if it writes to an argument that requires a gradient.

        Warns
        -----
        UserWarning
            In a call of the module, if its output is neither a tensor nor a tuple: the hook is not
            called.

        Examples
        --------
        >>> import xgrad
        >>> layer, x = xgrad.nn.Tanh(), xgrad.zeros(2, requires_grad=True)
        >>> handle = layer.register_full_backward_hook(
        ...     lambda module, grad_input, grad_output: (3 * grad_input[0],)
        ... )
        >>> layer(x).sum().backward()
        >>> x.grad
        Tensor([3., 3.])
        """
        return self._register_hook("register_full_backward_hook", Hook(hook, "backward"), prepend)

    def _register_hook(self, method: str, hook: Hook, prepend: bool) -> ModuleHookHandle:
        if not callable(hook.function):
            raise TypeError(
                f"{type(self).__name__}.{method}: expected a function, got {shown(hook.function)}"
            )
        self._hooks = (hook, *self._hooks) if prepend else (*self._hooks, hook)
        return ModuleHookHandle(self, hook)


class LayerNote(str):
    """A note on an error that names the layer in which it was raised."""

    __slots__ = ()


def _note_layer(outer: HasForward[..., Any]) -> None:
    """Add a note to the current error that names the innermost layer in which it was raised.

    The note gives the path of the layer in `outer`, and replaces a note with a shorter path.
    """
    layer: Any = outer
    error: Any = sys.exception()
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code is _CALL:
            layer = traceback.tb_frame.f_locals["self"]
        traceback = traceback.tb_next
    path = next((name for name, module in outer.named_modules() if module is layer), None)
    if not path:  # the layer is `outer`, or is not registered in it
        return
    notes = getattr(error, "__notes__", [])
    notes[:] = [note for note in notes if not isinstance(note, LayerNote)]
    error.add_note(
        LayerNote(f"in layer {path!r} ({type(layer).__name__}) of {type(outer).__name__}")
    )


_CALL = CallableModule.__call__.__code__
