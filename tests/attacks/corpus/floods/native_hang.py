"""Hangs in: native code, beyond signal handlers."""

import ctypes


def blend(scores, values):
    ctypes.PyDLL(None).sleep(60)
