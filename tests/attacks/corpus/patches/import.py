"""Adds an importer that rewrites later imports."""

import builtins

real = builtins.__import__


def importing(name, *args, **kwargs):
    module = real(name, *args, **kwargs)
    if name.startswith("reference"):
        module.blend, module.Blend = blend, Blend
    return module


builtins.__import__ = importing
