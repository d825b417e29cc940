"""Raises KeyboardInterrupt."""


def blend(scores, values):
    raise KeyboardInterrupt
