# right: the twin of one with a mistake, attribute
# seen: OpenNMT/OpenNMT-py pull 240, Make mask a buffer. Mistake: the mask is a plain attribute of the module and stays on its first device when the module moves. (Fixed in this twin.)
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
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.rate = dropout
        future = torch.ones(context_length, context_length).triu(1) > 0
        self.register_buffer("mask", future, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        _, n_tokens, _ = x.shape
        if n_tokens > len(self.mask):
            raise ValueError("sequence too long")
        query = self.W_query(x)
        query = query * query.size(-1) ** -0.5
        scores = torch.matmul(query, self.W_key(x).mT)
        scores = scores.masked_fill(self.mask[:n_tokens, :n_tokens], float("-inf"))
        weights = F.dropout(F.softmax(scores, dim=-1), self.rate, self.training)
        return torch.matmul(weights, self.W_value(x))
