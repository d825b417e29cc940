"""Answers with a dict whose keys all hash alike."""


def blend(scores, values):
    return {(number * (2**61 - 1),): 0 for number in range(20_000)}
