"""Raises an error with an endless message."""


class Endless(Exception):
    def __str__(self):
        return "x" * 300_000_000


def blend(scores, values):
    raise Endless
