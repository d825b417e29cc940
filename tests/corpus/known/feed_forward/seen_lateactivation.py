# mistake: activation_moved_to_the_end
# seen: goruck/nilm issue 1: the activation stands after the second layer, not between the two.
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.activation = nn.ReLU()
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.linear1(x)
        return self.activation(self.linear2(self.drop(wide)))
