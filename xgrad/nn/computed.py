"""Attributes of modules that are computed whenever they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any


class ComputedAttribute:
    """An attribute that is a function of parameters of its module, such as a normalized weight."""

    def value(self, module: Any) -> Any:
        """Return the value of the attribute."""
        raise NotImplementedError

    def assign(self, module: Any, value: Any) -> None:
        """Set the parameters from a value of the attribute."""
        raise NotImplementedError


class ComputedAttributes:
    """The part of a `Module` that reads and assigns its computed attributes."""

    #: By name. The mapping is replaced, never mutated.
    _computed: Mapping[str, ComputedAttribute] = {}

    def _compute(self, name: str, attribute: ComputedAttribute | None) -> None:
        """Let an attribute be computed, or no longer if None."""
        others = {key: value for key, value in self._computed.items() if key != name}
        self._computed = others if attribute is None else {**others, name: attribute}

    if not TYPE_CHECKING:  # type checkers should reject other names

        def __getattr__(self, name: str) -> Any:
            attribute = self._computed.get(name)
            if attribute is None:
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
                )
            return attribute.value(self)
