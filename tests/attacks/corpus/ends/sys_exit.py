"""Exits with status 0: by SystemExit in a call."""

import sys


def blend(scores, values):
    sys.exit(0)
