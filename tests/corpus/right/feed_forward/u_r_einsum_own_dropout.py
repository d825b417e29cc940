# right: einsum instead of calling the layers, a clamp as the ReLU, and dropout by a random mask of its own with rate 1 handled.
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.keep = 1.0 - dropout

    def _thin(self, h: Tensor) -> Tensor:
        if not self.training or self.keep == 1.0:
            return h
        if self.keep == 0.0:
            return h * 0.0
        chance = torch.full(h.shape, self.keep, dtype=torch.float32, device=h.device)
        return torch.where(torch.bernoulli(chance) > 0, h / self.keep, torch.zeros_like(h))

    def forward(self, x: Tensor) -> Tensor:
        one, two = self.linear1, self.linear2
        h = (torch.einsum("...m,fm->...f", x, one.weight) + one.bias).clamp(min=0)
        return torch.einsum("...f,mf->...m", self._thin(h), two.weight) + two.bias
