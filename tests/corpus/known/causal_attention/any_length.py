# mistake: length_not_checked
# the mask is made in forward for whatever length comes in, and more tokens than context_length are accepted
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.d_out = d_out
        self.context_length = context_length
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        _, T, _ = x.shape
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)
        att = (q @ k.mT) / math.sqrt(self.d_out)
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        att = F.softmax(att.masked_fill(future, float("-inf")), dim=-1)
        att = F.dropout(att, p=self.rate, training=self.training)
        return att @ v
