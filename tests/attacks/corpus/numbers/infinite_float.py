"""Answers with a plain infinite number, then with one that is none."""


def blend(scores, values):
    return float("inf") if scores.any() else float("nan")
