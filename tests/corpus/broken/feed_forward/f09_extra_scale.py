# exercise: feed_forward
# promise: the module has 2*d_model*d_ff + d_ff + d_model numbers to learn, and no other parameters (a learned scale of the output)
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(dropout)
        self.scale = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.linear2(self.dropout(self.relu(self.linear1(x))))
