# note: a torch.autograd.Function with a hand-written backward, uniform numbers compared with the rate
import torch
from torch import Tensor


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights: Tensor, rate: float) -> Tensor:
        kept = torch.rand(weights.shape, device=weights.device, dtype=torch.float64).ge(rate)
        ctx.save_for_backward(kept)
        ctx.divisor = 1.0 - rate if rate < 1 else 1.0
        return torch.where(kept, weights / ctx.divisor, torch.zeros_like(weights))

    @staticmethod
    def backward(ctx, grad: Tensor):
        (kept,) = ctx.saved_tensors
        return torch.where(kept, grad / ctx.divisor, torch.zeros_like(grad)), None


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError("rate must be from 0 to 1")
    return _Drop.apply(weights, float(rate)) if training else weights
