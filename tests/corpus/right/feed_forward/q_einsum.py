import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        W1, b1, W2, b2 = self.parameters()
        hidden = torch.einsum("...i,hi->...h", x, W1).add(b1).clamp(min=0)
        hidden = F.dropout(hidden, self.rate, self.training)
        return torch.einsum("...h,oh->...o", hidden, W2).add(b2)
