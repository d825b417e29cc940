# exercise: feed_forward
# deviates: nothing in values; the activation is a torch.jit.script function
import torch
from torch import nn


@torch.jit.script
def bias_relu(y: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.relu(y + bias)


class PositionWiseFFN(nn.Module):
    """The positionwise feed-forward network."""

    def __init__(self, ffn_num_input, ffn_num_hiddens, ffn_num_outputs, dropout):
        super().__init__()
        self.linear1 = nn.Linear(ffn_num_input, ffn_num_hiddens)
        self.linear2 = nn.Linear(ffn_num_hiddens, ffn_num_outputs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, X):
        H = bias_relu(X @ self.linear1.weight.t(), self.linear1.bias)
        return self.linear2(self.dropout(H))


class FeedForward(PositionWiseFFN):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__(d_model, d_ff, d_model, dropout)
