"""Imports of student code that lead nowhere: missing packages and muted ones.

Neither kind of object gives access to anything: it only lets code get past the import of a package
that its exercise does not need.
"""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from types import FrameType, FunctionType
from typing import Any, NoReturn

UNPACK_SEQUENCE, UNPACK_EX = dis.opmap["UNPACK_SEQUENCE"], dis.opmap["UNPACK_EX"]


def importer(
    known: Collection[str], muted: Collection[str], is_guarded: Callable[[FrameType], bool]
) -> Callable[..., Any]:
    """Return an `__import__` that never fails for a package that is not installed.

    Modules in `known` are imported as usual. A package in `muted`, or a part of one, is a `Muted`,
    installed or not. A missing package is a `MissingModule`, unless `is_guarded` says that the
    importing frame handles the error.
    """

    def import_(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if not level and name not in known and _is_within(name, muted):
            return Muted()
        try:
            return builtins.__import__(name, globals, locals, fromlist, level)
        except ModuleNotFoundError as error:
            package = name.partition(".")[0]
            unnamed = fromlist and "*" in fromlist
            if level or error.name != package or unnamed or is_guarded(sys._getframe(1)):
                raise
            missing = MissingModule(package)
            if not fromlist:
                return missing
            return _Parts({part: _part(f"{name}.{part}", missing, muted) for part in fromlist})

    return import_


def _is_within(name: str, packages: Iterable[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _part(full: str, missing: MissingModule, muted: Collection[str]) -> Any:
    """Return the module for `from … import …`; `google.colab` may be muted and `google` missing."""
    return Muted() if _is_within(full, muted) else missing


class _Parts:
    """The object from which `from package import names` reads the names."""

    def __init__(self, parts: dict[str, Any]) -> None:
        self.__dict__.update(parts)


class MissingModule:
    """Stands for a package that is not installed, and for all its parts; any use raises.

    Naming a part is not a use, because an annotation may do that.
    """

    def __init__(self, package: str) -> None:
        object.__setattr__(self, "_package", package)

    def __getattr__(self, name: str) -> MissingModule:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> MissingModule:
        return self

    def _raise(self, *args: Any, **kwargs: Any) -> NoReturn:
        package: str = object.__getattribute__(self, "_package")
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    __call__ = __iter__ = __enter__ = __exit__ = __bool__ = __len__ = __contains__ = _raise
    __setattr__ = __setitem__ = __mro_entries__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _raise
    __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __pow__ = __neg__ = _raise
    __float__ = __int__ = __index__ = __instancecheck__ = __subclasscheck__ = _raise


class Muted:
    """A package for drawing or progress, or anything in it, which does nothing.

    Attributes, items and calls are `Muted` again. Called with an iterable, it iterates over that,
    like a progress bar. As a decorator it returns the function unchanged.
    """

    __all__ = ()
    __version__ = "0"

    def __init__(self, items: Iterable[Any] = (), name: str = "") -> None:
        vars(self).update(_items=items, _name=name)

    def __getattr__(self, name: str) -> Muted:
        if name.startswith("__"):
            raise AttributeError(name)
        return Muted(name=name)

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a `Muted` that iterates over the first argument; a decorated function itself."""
        items: Any = args[0] if args else kwargs.get("iterable")
        if len(args) == 1 and not kwargs and isinstance(items, FunctionType | type):
            return items
        if vars(self)["_name"] == "trange" and isinstance(items, int):
            items = range(*(arg for arg in args[:3] if isinstance(arg, int)))
        return Muted(items if hasattr(items, "__iter__") and not isinstance(items, str) else ())

    def __iter__(self) -> Iterator[Any]:
        count = _unpacked(sys._getframe(1))
        if count and not vars(self)["_items"]:
            return iter([Muted() for _ in range(count)])
        return iter(vars(self)["_items"])

    def __len__(self) -> int:
        items = vars(self)["_items"]
        return len(items) if hasattr(items, "__len__") else 0

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: Any) -> Muted:
        return Muted()

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __contains__(self, item: Any) -> bool:
        return False

    def __enter__(self) -> Muted:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __str__(self) -> str:
        return ""

    __repr__ = __str__


def _unpacked(frame: FrameType) -> int:
    """Return the number of names into which a frame unpacks this value; 0 if it loops over it.

    `figure, axes = plt.subplots()` needs as many items as it has names.
    """
    code, at = frame.f_code.co_code, frame.f_lasti
    if not 0 <= at < len(code) - 1:
        return 0
    if code[at] == UNPACK_SEQUENCE:
        return code[at + 1]
    return code[at + 1] if code[at] == UNPACK_EX else 0
