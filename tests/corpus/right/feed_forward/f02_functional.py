# exercise: feed_forward
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.p = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.linear1(x), inplace=True)
        hidden = F.dropout(hidden, self.p, self.training)
        return self.linear2(hidden)
