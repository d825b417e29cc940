# mistake: activation_behind_the_second_layer
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.p = dropout

    def forward(self, x: Tensor) -> Tensor:
        rates = (self.p, 0.0)
        for layer, rate in zip((self.linear1, self.linear2), rates):
            x = F.dropout(F.relu(layer(x)), rate, self.training)
        return x
