# exercise: feed_forward
# promise: in training, each unit is set to 0 with probability dropout (a unit is dropped for all tokens of a batch at once)
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.linear1(x))
        units = self.drop(h.new_ones(h.shape[-1]))
        return self.linear2(h * units)
