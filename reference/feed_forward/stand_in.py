"""Stand-in for the feed-forward network: the same contract, computed by torch's layers."""

from torch import Tensor, nn
from torch.nn import functional as F


class FeedForward(nn.Module):
    """Two linear layers with ReLU and dropout between them, applied to each position separately."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        return self.linear2(self.dropout(F.relu(self.linear1(x))))  # (..., d_model)
