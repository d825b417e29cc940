"""Answers with a million short strings, a megabyte of names."""


def blend(scores, values):
    return {f"{n}": [str(n)] for n in range(1_000_000)}
