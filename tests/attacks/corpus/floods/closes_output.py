"""Closes or replaces its output."""

import sys


class Output:
    def write(self, text):
        raise SystemExit("no output")

    flush = isatty = fileno = write


sys.stdout.close()
sys.stdout = Output()


def blend(scores, values):
    sys.stdout = Output()
    sys.__stdout__ = sys.stderr = Output()
    return values
