"""Hangs in native code that no signal handler reaches."""

import ctypes


def blend(scores, values):
    ctypes.PyDLL(None).sleep(60)
