"""What `make wheel` compiles is such that it does the same when it is compiled.

Two things of mypyc (2.4) are to be known.  Types are kept as names alone, so msgspec could not
make records of classes that it has compiled.  And an exception that is being handled while a
coroutine waits is taken for one that is still on its way when the next one is over.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from tests.compiled.modules import compiled_modules, source_of

from cairnfs import namesystem
from cairnfs.store.sqlite_change import Change
from cairnfs.transaction import records
from cairnfs.transaction.calls import Operation


def decoded_types() -> Iterator[Any]:
    """What rows, stored replies and the journal are read as."""
    yield Change
    for module in pkgutil.iter_modules(namesystem.__path__, "cairnfs.namesystem."):
        for operation in vars(importlib.import_module(module.name)).values():
            if isinstance(operation, Operation) and operation.at_most_once:
                yield operation.reply_type
    for decoder in records._decoders.values():
        yield decoder.__self__.type  # type: ignore[attr-defined]


def classes_in(types: Iterable[Any]) -> set[type]:
    found: set[type] = set()

    def look(type_info: Any) -> None:
        cls = getattr(type_info, "cls", None)
        if cls is not None:
            if cls in found:
                return
            found.add(cls)
        for field in type_info.__struct_fields__ if hasattr(type_info, "__struct_fields__") else ():
            value = getattr(type_info, field)
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, msgspec.inspect.Field):
                    look(each.type)
                elif isinstance(each, msgspec.inspect.Type):
                    look(each)

    for each in types:
        look(msgspec.inspect.type_info(each))
    return found


def test_every_module_is_there() -> None:
    for name in compiled_modules():
        assert source_of(name).exists(), name


def test_records_that_are_decoded_are_in_modules_of_their_own() -> None:
    """Compiled modules keep the names of types alone, by which msgspec cannot tell them."""
    classes = {cls for cls in classes_in(decoded_types()) if cls.__module__.startswith("cairnfs.")}
    assert len(classes) > 30
    assert {cls for cls in classes if cls.__module__ in compiled_modules()} == set()


def waits(node: ast.AST) -> bool:
    kinds = ast.Await | ast.Yield | ast.YieldFrom | ast.AsyncWith | ast.AsyncFor
    return any(isinstance(each, kinds) for each in ast.walk(node))


def test_nothing_waits_while_an_exception_is_handled() -> None:
    for name in compiled_modules():
        for node in ast.walk(ast.parse(source_of(name).read_text())):
            where = f"{name}, line {getattr(node, 'lineno', 0)}"
            assert not isinstance(node, ast.AsyncWith | ast.AsyncFor), where
            if isinstance(node, ast.Try):
                assert not any(waits(part) for part in (*node.handlers, *node.finalbody)), where
