"""Answers with: an error whose text is a number too long to print."""


def blend(scores, values):
    return int(1 << 3_000_000) // 0
