# mistake: one_mask_for_all_tokens
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_ff = d_ff
        self.p = dropout
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear1(x).relu()
        mask = F.dropout(torch.ones(self.d_ff, dtype=x.dtype, device=x.device), self.p, training=self.training)
        return self.linear2(hidden * mask)
