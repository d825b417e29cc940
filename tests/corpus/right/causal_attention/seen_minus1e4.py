# right: the twin of one with a mistake, minus1e4
# seen: lucidrains/nGPT-pytorch issue 11 (constant of -10 doubted), openai/gpt-2 pull 122 (1e4). Mistake: later keys are hidden by subtracting 1e4 from their score, which a large enough score outweighs. (Fixed in this twin.)
import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.drop = nn.Dropout(p=dropout)

    @staticmethod
    def hide_future(scores: Tensor) -> Tensor:
        n = scores.size(-1)
        place = torch.arange(n, device=scores.device)
        past = place[:, None] >= place[None, :]
        return torch.where(past, scores, torch.full_like(scores, -math.inf))

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.context_length:
            raise ValueError("more tokens than context_length")
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(self.d_out)
        weights = torch.softmax(self.hide_future(scores), dim=2)
        return torch.bmm(self.drop(weights), values)
