"""Prints: surrogates, controls, nulls and a million lines."""

import sys


def blend(scores, values):
    print("\ud800\x00\x1b[2J\u202e" * 100)
    print("x\n" * 1_000_000)
    sys.stdout = sys.stderr = None
    print("after")
    return values
