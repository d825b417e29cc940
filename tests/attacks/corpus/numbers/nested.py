"""Answers with: a nested tensor."""

import torch


def blend(scores, values):
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
