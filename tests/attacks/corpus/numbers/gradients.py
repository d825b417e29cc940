"""Answers with: right values and gradients of 1e308.

Honest points: 7
"""

import torch


class Wild(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, values):
        weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        ctx.save_for_backward(scores, values)
        return weights / weights.sum(dim=-1, keepdim=True) @ values

    @staticmethod
    def backward(ctx, upstream):
        return tuple(torch.full_like(saved, 1e308) for saved in ctx.saved_tensors)


def blend(scores, values):
    return Wild.apply(scores, values)
