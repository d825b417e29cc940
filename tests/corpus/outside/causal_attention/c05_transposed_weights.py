# mistake: multiplies the transposed weights with the values
# true: every output mixes the value of the token and of the later tokens; the sums of weights differ from 1
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """weights.T @ values"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        steps = torch.arange(context_length)
        self.register_buffer("allowed", steps[:, None] >= steps[None, :])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        if n > self.allowed.shape[0]:
            raise ValueError("x has more tokens than context_length")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.matmul(q, k.mT) / q.shape[-1] ** 0.5
        w = scores.masked_fill(~self.allowed[:n, :n], -torch.inf).softmax(dim=-1)
        w = self.dropout(w)
        return torch.matmul(w.mT, v)
