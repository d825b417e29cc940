# mistake: bias_after_the_activation
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        W1, b1 = self.linear1.weight, self.linear1.bias
        W2, b2 = self.linear2.weight, self.linear2.bias
        hidden = torch.relu(x @ W1.T) + b1
        hidden = self.dropout(hidden)
        return hidden @ W2.T + b2
