# right: an autograd Function with a backward by hand, multipliers from a torch distribution, the check in a helper class
import torch
from torch import Tensor
from torch.distributions import Bernoulli


class Rate(float):
    def __new__(cls, value):
        if not (value >= 0 and value <= 1):
            raise ValueError("a rate is from 0 to 1")
        return super().__new__(cls, value)

    def factors(self, shape, device) -> Tensor:
        if self == 1.0:
            return torch.zeros(shape, dtype=torch.float64, device=device)
        keep = torch.tensor(1.0 - self, dtype=torch.float64, device=device)
        return Bernoulli(probs=keep).sample(shape) / keep


class Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights: Tensor, factors: Tensor) -> Tensor:
        ctx.save_for_backward(factors)
        return (weights * factors).to(weights.dtype)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (factors,) = ctx.saved_tensors
        return (grad * factors).to(grad.dtype), None


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    rate = Rate(rate)
    if not training:
        return weights.clone()
    return Multiply.apply(weights, rate.factors(weights.shape, weights.device))
