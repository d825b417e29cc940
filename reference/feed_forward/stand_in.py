"""Stand-in for the feed-forward network: that part of torch's own encoder layer."""

from torch import Tensor, nn
from torch.nn import functional as F


class FeedForward(nn.Module):
    """Two linear layers with ReLU and dropout between them, applied to each position separately."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.activation, self.dropout2 = F.relu, nn.Identity()  # by the names of the encoder layer

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        return nn.TransformerEncoderLayer._ff_block(self, x)  # (..., d_model)
