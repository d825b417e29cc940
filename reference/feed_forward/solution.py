"""Reference solution: the position-wise feed-forward network."""

import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Two linear layers with ReLU and dropout between them, applied to each position separately."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        # --- solution
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        # --- solution
        hidden = torch.relu(self.linear1(x))  # (..., d_ff)
        hidden = self.dropout(hidden)  # (..., d_ff)
        output = self.linear2(hidden)  # (..., d_model)
        return output
        # --- end
