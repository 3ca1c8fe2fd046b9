"""Every public name is in the reference, with documentation and a typed signature.

The pages are read from ``docs/sphinx/reference_pages.py``, without Sphinx.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from types import ModuleType
from typing import Any

import public_names
import reference_pages
import xgrad
from xgrad import Function

PAGES = {page.title: page for page in reference_pages.pages()}
NAMES = reference_pages.documented_names()
DOCUMENTED = {f"{module}.{name}" for module, name in NAMES}
#: Parameters that need no section: their names and the summary say all.
OBVIOUS = {
    *"self cls xp other x x1 x2 args options kwargs inputs named_inputs exc_info exponent".split(),
    *"state_dict state tensor tensors value device dtype".split(),
}


def value_of(module: str, name: str) -> Any:
    """Return a public object, or a member of a class without binding."""
    kind, _, member = name.partition(".")
    value = getattr(import_module(module), kind)
    return inspect.getattr_static(value, member) if member else value


def doc_of(module: str, name: str) -> str:
    """Return the documentation of a public object or member; of an override, the base's too."""
    kind, _, member = name.partition(".")
    value = value_of(module, name)
    if not member:
        return public_names.doc_of(f"{module}.{name}", value)
    return inspect.getdoc(getattr(value_of(module, kind), member)) or inspect.getdoc(value) or ""


def function_behind(x: Any) -> Any:
    """Return the function that a source file defines: of an op its rule, of a property its getter.

    None for a value.
    """
    op = getattr(x, "function", None)
    x = op.forward if isinstance(op, Function) else public_names.function_of(x) or x
    return inspect.unwrap(x) if inspect.isroutine(x) else None


def test_every_public_name_is_on_a_page() -> None:
    missing = []
    for module in reference_pages.public_modules():
        if module == "xgrad.ops":
            continue
        for name in reference_pages.public_names(module):
            value = getattr(import_module(module), name)
            if not isinstance(value, ModuleType) and f"{module}.{name}" not in DOCUMENTED:
                missing.append(f"{module}.{name}")
    assert not missing
    assert len(DOCUMENTED) > 1200


def test_functions_of_ops_are_on_its_page_or_have_the_names_of_xgrad() -> None:
    for name in reference_pages.public_names("xgrad.ops"):
        same = getattr(xgrad, name, None) is getattr(xgrad.ops, name)
        assert same != (f"xgrad.ops.{name}" in DOCUMENTED), name


def test_every_module_with_public_names_has_a_page() -> None:
    """The modules that ``__all__`` of `xgrad` leads to, and those that are imported by name."""
    modules = {word for page in PAGES.values() for word in page.modules.split()}
    assert modules == set(reference_pages.public_modules())


def test_every_page_has_names_and_each_section_too() -> None:
    for title, sections in reference_pages.entries().items():
        assert all(sections.values()), title
    assert len({page.name for page in PAGES.values()}) == len(PAGES)


def test_every_method_of_tensors_has_a_kind() -> None:
    listed = " ".join(reference_pages.TENSOR_METHODS.values()).split()
    assert len(listed) == len(set(listed))
    assert set(listed) == {name for name in dir(xgrad.Tensor) if name[0] != "_"}
    assert len(listed) > 230


def test_operators_of_tensors_name_public_functions() -> None:
    for said in reference_pages.OPERATORS.values():
        for name in re.findall(r"`(xgrad\.\w+)`", said):
            assert name in DOCUMENTED


def test_internal_members_exist() -> None:
    """A member that was renamed or removed leaves the list, with its reason."""
    classes = reference_pages.documented_classes()
    members = {
        name
        for kind in classes
        for member in public_names.members(kind, classes)
        for name in (member, f"{kind.__name__}.{member}")
    }
    assert set(reference_pages.INTERNAL) <= members


def test_every_public_name_has_a_sentence_of_documentation() -> None:
    summaries = {name: public_names.summary(doc_of(*name)) for name in NAMES}
    assert [name for name, said in summaries.items() if not said.endswith((".", ":"))] == []


def test_every_public_function_explains_its_parameters() -> None:
    """By a section, in the text of it or of its class, or by the method that has them."""
    faults = []
    for module, name in NAMES:
        value, doc = value_of(module, name), doc_of(module, name)
        function = function_behind(value)
        if function is None or re.search("Parameters\n---|parameters are|see `", doc):
            continue
        text = doc + doc_of(module, name.partition(".")[0])
        names = set(inspect.signature(function).parameters) - OBVIOUS
        unexplained = [n for n in names if not re.search(rf"`\**{n}\b|^{n} : ", text, re.MULTILINE)]
        if unexplained:
            faults.append(f"{module}.{name}: {sorted(unexplained)}")
    assert faults == []


def test_every_public_function_has_types() -> None:
    faults = []
    for module, name in NAMES:
        function = function_behind(value_of(module, name))
        if function is not None:
            signature = inspect.signature(function)
            first = ["self", "cls"]
            untyped = [
                p.name
                for p in signature.parameters.values()
                if p.annotation is p.empty and p.name not in first
            ]
            if untyped or signature.return_annotation is signature.empty:
                faults.append(f"{module}.{name}: {untyped or 'the result'}")
    assert faults == []


def test_names_of_methods_are_names_in_the_source() -> None:
    """``help(xgrad.Tensor.float)`` shows the name of the method, not ``<lambda>``."""
    for name in " ".join(reference_pages.TENSOR_METHODS.values()).split():
        method = reference_pages.tensor_method(name)
        if not isinstance(method, property):
            assert method.__name__.isidentifier()
            assert hasattr(xgrad.Tensor, method.__name__) or hasattr(xgrad, method.__name__)


def test_values_are_documented_below_their_assignment() -> None:
    assert public_names.doc_of_value("xgrad", "float32").startswith("Floating-point numbers")
    assert public_names.doc_of_value("xgrad", "Tensor") == ""  # a class, which is no value
