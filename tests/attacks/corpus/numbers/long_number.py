"""Answers with: a number of a million digits."""


def blend(scores, values):
    return 1 << 3_000_000
