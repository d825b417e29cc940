"""Answers with: fifty million numbers."""


def blend(scores, values):
    return [1] * 50_000_000
