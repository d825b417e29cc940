"""Answers with: lists a hundred thousand deep."""


def blend(scores, values):
    answer = []
    for _ in range(100_000):
        answer = [answer]
    return answer
