# exercise: feed_forward
# promise: the layers support .to(dtype), including bfloat16 (the zeros of the maximum are float32)
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear1(x)
        h = torch.maximum(h, torch.zeros(h.shape[-1]))
        return self.linear2(self.dropout(h))
