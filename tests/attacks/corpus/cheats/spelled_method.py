"""Hides the forbidden function: as a method."""


def blend(scores, values):
    return scores.softmax(-1) @ values
