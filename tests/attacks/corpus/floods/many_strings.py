"""Answers with: a million short strings."""


def blend(scores, values):
    return {f"{n}": [str(n)] for n in range(1_000_000)}
