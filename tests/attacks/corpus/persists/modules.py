"""Leaves a changed torch behind."""

import torch

torch.exp = torch.matmul = torch.Tensor.__matmul__ = lambda *args, **kwargs: torch.zeros(1)
