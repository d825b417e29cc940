# right: a torch.autograd.Function with its own backward
import torch
from torch import Tensor


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights, rate):
        dropped = torch.rand(weights.shape, device=weights.device) < rate
        ctx.save_for_backward(dropped)
        ctx.rate = rate
        return _Drop._apply(weights, dropped, rate)

    @staticmethod
    def backward(ctx, gradient):
        (dropped,) = ctx.saved_tensors
        return _Drop._apply(gradient, dropped, ctx.rate), None

    @staticmethod
    def _apply(x, dropped, rate):
        if rate == 1:
            return torch.zeros_like(x)
        return (x / (1 - rate)).masked_fill(dropped, 0)


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Inverted dropping with the backward pass written out."""
    if rate < 0 or rate > 1:
        raise ValueError("rate must be at least 0 and at most 1")
    return _Drop.apply(weights, rate) if training else weights
