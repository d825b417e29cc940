# exercise: feed_forward
# promise: at rate 1, all hidden units are 0 (0 / 0 gives nan)
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear1(x).relu()
        if self.training and self.dropout > 0:
            keep_prob = 1 - self.dropout
            keep = torch.rand(hidden.shape, device=x.device) < keep_prob
            hidden = hidden * keep.to(hidden.dtype) / keep_prob
        return self.linear2(hidden)
