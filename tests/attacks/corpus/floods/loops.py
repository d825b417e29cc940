"""Loops for ever: in a call."""


def blend(scores, values):
    while True:
        pass
