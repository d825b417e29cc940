# promise: forward flattens x with view, which fails for an x that is not contiguous.
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Two linear layers with ReLU and dropout between them, applied to each position separately."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model = d_model
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        shape = x.shape
        flat = x.view(-1, self.d_model)  # all positions of all sentences
        hidden = torch.relu(self.linear1(flat))
        out = self.linear2(self.dropout(hidden))
        return out.view(shape)
