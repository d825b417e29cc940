"""Answers with: a plain infinite number, then nan."""


def blend(scores, values):
    return float("inf") if scores.any() else float("nan")
