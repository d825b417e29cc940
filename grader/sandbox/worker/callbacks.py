"""Functions such as `map`, which call another one for each element, in Python so that calls show.

Python does not report the calls of one C function by another. Nothing here keeps the C function
that it replaces, because student code would find it as a base, in a closure or as an attribute.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

NUMPYS = ("frompyfunc", "apply_along_axis", "apply_over_axes")
_NOTHING: Any = object()


def seen(function: Any) -> Any:
    """Return a function whose calls are counted, by any caller."""
    if not callable(function):
        return function

    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return called


CALLED = seen(len).__code__


def opaque(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a C function that calls this one without revealing it."""
    cached: Any = functools._lru_cache_wrapper
    held: Any = cached(function, 0, False, tuple)  # a cache of size 0 keeps no results
    held.__name__ = held.__qualname__ = function.__name__
    return held  # type: ignore[no-any-return]


def count_callbacks() -> None:
    """Make calls by C functions for each element visible; run before any student code.

    The C functions are replaced in every module, under any name.
    """
    originals = {"reduce": functools.reduce}
    originals |= {name: getattr(builtins, name) for name in ("map", "filter")}
    originals |= {name: getattr(itertools, name) for name in _MADE if name not in originals}
    replaced = {id(original): _like(name) for name, original in originals.items()}
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", {})
        is_numpy = str(space.get("__name__")).partition(".")[0] == "numpy"
        for name, value in list(space.items()) if type(space) is dict else ():
            if id(value) in replaced:
                space[name] = replaced[id(value)]
            elif is_numpy and name in NUMPYS:
                space[name] = _taking(value)


def _like(name: str) -> Any:
    """Return the replacement for a type of iterators, or for `reduce`."""
    made = _MADE[name]
    if name == "reduce":
        # Unless the signature is this one, torch compares it with its own.
        return lambda *args, **kwargs: made(*args, **kwargs)  # noqa: PLW0108
    # A class, as before, but its objects are plain generators.
    new = {"__new__": lambda cls, *args, **kwargs: made(*args, **kwargs), "__module__": "builtins"}
    return type(name, (), new)


def _taking(function: Any) -> Any:
    """Return a function that counts the calls of its first argument."""

    def taking(called: Any, *args: Any, **kwargs: Any) -> Any:
        return function(seen(called), *args, **kwargs)

    taking.__name__ = function.__name__
    return opaque(taking)


def _map(function: Any, iterable: Iterable[Any], /, *more: Iterable[Any]) -> Iterator[Any]:
    called, iterators = seen(function), [iter(each) for each in (iterable, *more)]
    return (called(*items) for items in zip(*iterators))


def _filter(function: Any, iterable: Iterable[Any], /) -> Iterator[Any]:
    holds = bool if function is None else seen(function)
    return (item for item in iterable if holds(item))


def _filterfalse(function: Any, iterable: Iterable[Any], /) -> Iterator[Any]:
    holds = bool if function is None else seen(function)
    return (item for item in iterable if not holds(item))


def _starmap(function: Any, iterable: Iterable[Any], /) -> Iterator[Any]:
    called = seen(function)
    return (called(*items) for items in iterable)


def _takewhile(predicate: Any, iterable: Iterable[Any], /) -> Iterator[Any]:
    holds = seen(predicate)
    for item in iterable:
        if not holds(item):
            return
        yield item


def _dropwhile(predicate: Any, iterable: Iterable[Any], /) -> Iterator[Any]:
    holds, iterator = seen(predicate), iter(iterable)
    for item in iterator:
        if not holds(item):
            yield item
            break
    yield from iterator


def _accumulate(iterable: Iterable[Any], func: Any = None, *, initial: Any = None) -> Iterator[Any]:
    joined, iterator = operator.add if func is None else seen(func), iter(iterable)
    total = next(iterator, _NOTHING) if initial is None else initial
    if total is _NOTHING:
        return
    yield total
    for item in iterator:
        total = joined(total, item)
        yield total


def _groupby(iterable: Iterable[Any], key: Any = None) -> Iterator[Any]:
    key_of, iterator = (lambda item: item) if key is None else seen(key), iter(iterable)
    if (item := next(iterator, _NOTHING)) is _NOTHING:
        return
    present, is_over = key_of(item), False

    def group(own: Any) -> Iterator[Any]:
        nonlocal item, present, is_over
        yield item
        for item in iterator:
            present = key_of(item)
            if present != own:
                return
            yield item
        is_over = True

    while not is_over:
        own = present
        items = group(own)
        yield own, items
        if present == own:
            for _ in items:
                pass


def _reduce(function: Any, iterable: Iterable[Any], initial: Any = _NOTHING, /) -> Any:
    joined, iterator = seen(function), iter(iterable)
    total = next(iterator, _NOTHING) if initial is _NOTHING else initial
    if total is _NOTHING:
        raise TypeError("reduce() of empty iterable with no initial value")
    for item in iterator:
        total = joined(total, item)
    return total


_MADE: dict[str, Callable[..., Any]] = {
    "map": _map,
    "filter": _filter,
    "filterfalse": _filterfalse,
    "starmap": _starmap,
    "takewhile": _takewhile,
    "dropwhile": _dropwhile,
    "accumulate": _accumulate,
    "groupby": _groupby,
    "reduce": _reduce,
}
