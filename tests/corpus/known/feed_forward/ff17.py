# mistake: no_biases + dropout_in_eval
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff, bias=False)
        self.linear2 = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.linear1(x))
        h = F.dropout(h, self.dropout, training=True)
        return self.linear2(h)
