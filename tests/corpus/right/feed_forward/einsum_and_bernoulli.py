# right: einsum on the layers' weights, clamp as ReLU, dropout by bernoulli
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        assert 0 <= dropout <= 1
        self.linear2 = nn.Linear(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.rate = dropout

    def thin(self, hidden: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return hidden
        if self.rate == 1:
            return hidden * 0
        kept = torch.bernoulli(torch.full(hidden.shape, 1.0 - self.rate, device=hidden.device)).bool()
        return torch.where(kept, hidden / (1 - self.rate), torch.zeros_like(hidden))

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.einsum("...i,hi->...h", x, self.linear1.weight) + self.linear1.bias
        hidden = self.thin(hidden.clamp(min=0))
        return torch.einsum("...h,oh->...o", hidden, self.linear2.weight) + self.linear2.bias
