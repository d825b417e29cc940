"""Answers with: thousands of tensors that need gradients."""

import torch


def blend(scores, values):
    return [torch.zeros((), requires_grad=True) for _ in range(20_000)]
