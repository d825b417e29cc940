"""Values at the module level of suites, which are the same for every student."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest
from torch import Tensor, nn

from grader.errors import CourseError

MUTABLE = (Tensor, nn.Module, list, dict, set, bytearray)
CONTAINERS = (list, tuple, set, frozenset)


class SuiteGlobals:
    """The values, at collection, of the module-level names that a test can change."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        modules = {module.__name__: module for item in items if (module := _module(item))}
        self._values: dict[str, dict[str, Any]] = {}
        for name, module in modules.items():
            found = {key: value for key, value in _own(module) if _holds(value, MUTABLE)}
            try:
                self._values[name] = copy.deepcopy(found)
            except Exception as error:
                message = f"{module.__file__} keeps values at module level that cannot be copied"
                raise CourseError(f"{message}: {error}", "grader validate") from error

    def restore(self, items: Sequence[pytest.Item]) -> None:
        """Restore the values of the items' modules, as copies."""
        for module in {id(m): m for item in items if (m := _module(item))}.values():
            vars(module).update(copy.deepcopy(self._values.get(module.__name__, {})))


def tensors_at_module_level(items: Sequence[pytest.Item]) -> list[str]:
    """Return the module-level names of the items' suites that hold tensors or modules."""
    modules = {id(m): m for item in items if (m := _module(item))}.values()
    found = {name for m in modules for name, v in _own(m) if _holds(v, (Tensor, nn.Module))}
    return sorted(found)


def _module(item: pytest.Item) -> ModuleType | None:
    return getattr(item, "module", None)


def _own(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the module's own names and values, without those that Python or pytest put there."""
    for name, value in vars(module).items():
        if not name.startswith("__") and name != "pytestmark":
            yield name, value


def _holds(value: Any, kinds: tuple[type, ...], depth: int = 8) -> bool:
    if isinstance(value, kinds):
        return True
    if not depth:
        return True  # not searched any deeper: better refused than missed
    inside: Sequence[Any] = ()
    if isinstance(value, dict):
        inside = (*value.keys(), *value.values())
    elif isinstance(value, CONTAINERS):
        inside = tuple(value)
    return any(_holds(item, kinds, depth - 1) for item in inside)
