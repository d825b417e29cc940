"""Aborts in native code."""

import os


def blend(scores, values):
    os.abort()
