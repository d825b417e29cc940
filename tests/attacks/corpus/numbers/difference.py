"""Answers with: one value so wrong that the difference overflows."""

import torch


def blend(scores, values):
    weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    answer = (weights / weights.sum(dim=-1, keepdim=True)) @ values
    answer = answer.clone()
    answer[0, 0] = -1.7976931348623157e308
    return answer
