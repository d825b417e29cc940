"""Loops for ever."""


def blend(scores, values):
    while True:
        pass
