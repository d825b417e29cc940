# mistake: one_mask_for_all_tokens
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear1(x).relu()
        noise = F.dropout(torch.ones_like(h.narrow(-2, 0, 1)), self.rate, self.training)
        return self.linear2(h * noise)
