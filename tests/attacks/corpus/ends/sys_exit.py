"""Raises SystemExit(0) in a call."""

import sys


def blend(scores, values):
    sys.exit(0)
