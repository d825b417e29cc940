# mistake: gelu
import torch
from torch import Tensor, nn


class GELU(nn.Module):
    def forward(self, h):
        inner = 0.7978845608028654 * h * (1 + 0.044715 * h * h)
        return 0.5 * h * (1 + torch.tanh(inner))


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        # no further names in the state_dict: neither part has parameters
        self.middle = nn.Sequential(GELU(), nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.middle(self.linear1(x)))
