"""Hangs in: a regular expression."""

import re


def blend(scores, values):
    return re.match("(a+)+$", "a" * 60 + "b")
