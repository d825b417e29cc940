"""Answers with: a dict whose keys have one hash."""


def blend(scores, values):
    return {(number * (2**61 - 1),): 0 for number in range(20_000)}
