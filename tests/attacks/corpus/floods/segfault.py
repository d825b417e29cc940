"""Reads an invalid address."""

import ctypes


def blend(scores, values):
    return ctypes.string_at(0)
