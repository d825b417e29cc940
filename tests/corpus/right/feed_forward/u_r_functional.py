# right: functional style with F.linear on the weights, torch.maximum for the ReLU and a dropout function.
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear2 = nn.Linear(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        pre = F.linear(x, self.linear1.weight, self.linear1.bias)
        hidden = torch.maximum(pre, pre.new_zeros(()))
        hidden = F.dropout(hidden, self.rate, self.training)
        return F.linear(hidden, self.linear2.weight, self.linear2.bias)
