import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Works on columns: each token is a column of its matrix, as in a textbook's W x + b."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear2 = nn.Linear(d_ff, d_model, bias=True)
        self.linear1 = nn.Linear(d_model, d_ff, bias=True)
        self.dropout = nn.Dropout(p=dropout)

    @staticmethod
    def _apply_to_columns(layer: nn.Linear, columns: Tensor) -> Tensor:
        return layer.weight @ columns + layer.bias[:, None]

    def forward(self, x: Tensor) -> Tensor:
        columns = x.transpose(-1, -2)
        hidden = self._apply_to_columns(self.linear1, columns)
        hidden = torch.where(hidden > 0, hidden, torch.zeros_like(hidden))
        return self._apply_to_columns(self.linear2, self.dropout(hidden)).transpose(-1, -2)
