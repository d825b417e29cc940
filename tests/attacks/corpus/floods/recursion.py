"""Recurses without end."""

import sys

sys.setrecursionlimit(10**9)


def blend(scores, values):
    return blend(scores, values)
