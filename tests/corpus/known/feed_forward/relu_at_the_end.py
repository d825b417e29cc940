# mistake: activation_moved_to_the_end
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Two linear layers with ReLU and dropout between them, applied to each position separately."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        hidden = self.linear1(x)  # (..., d_ff)
        hidden = self.dropout(hidden)  # (..., d_ff)
        output = torch.relu(self.linear2(hidden))  # (..., d_model)
        return output
