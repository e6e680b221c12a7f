"""What tests may put in the place of something in a module that can be compiled.

Compiled functions call each other directly, and have constants in them: a test that replaces one
of those would go on as if nothing had been replaced, and hold.  So it fails instead; also on the
plain sources, where it is written.
"""

from __future__ import annotations

import pkgutil
from inspect import isbuiltin, isclass, isfunction, ismodule
from typing import Any

import pytest
from tests.compiled.modules import compiled_modules, constants_of


class CompilableMonkeyPatch(pytest.MonkeyPatch):  # type: ignore[misc]  # it is Final
    """What `monkeypatch` is in a test that is not marked as `interpreted`."""

    def setattr(self, target: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(target, str):
            path, _, name = target.rpartition(".")
            problem = _problem(pkgutil.resolve_name(path), name)
        else:
            problem = _problem(target, arguments[0])
        if problem:
            pytest.fail(
                f"{problem}, which compiled code would not notice: replace something else, or mark"
                " the test as `interpreted`"
            )
        super().setattr(target, *arguments, **options)


def _problem(target: Any, name: str) -> str | None:
    """What of a compiled module would be replaced, if it is such."""
    if ismodule(target):
        module = target.__name__
        if module not in compiled_modules():
            return None
        if name in constants_of(module):
            return f"{module}.{name} is Final"
        value = getattr(target, name, None)
        if not (isfunction(value) or isbuiltin(value) or isclass(value)):
            return None
        if value.__module__ not in compiled_modules():
            return None  # it is looked up at every use
        return f"{module}.{name} is of {value.__module__}, which can be compiled"
    owners = (target if isclass(target) else type(target)).__mro__
    owner = next((each for each in owners if name in vars(each)), None)
    if owner is None or owner.__module__ not in compiled_modules():
        return None
    if not isclass(target) and not _is_of_the_class(vars(owner)[name]):
        return None
    return f"{owner.__qualname__}.{name} is of {owner.__module__}, which can be compiled"


def _is_of_the_class(value: Any) -> bool:
    """Whether it is a method or a property, rather than a place for what each object has."""
    return type(value).__name__ not in ("member_descriptor", "getset_descriptor")
