# mistake: the mask keeps only a token and its direct predecessor
# true: the first two tokens are right, later ones ignore everything but the token before them
import math
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        make = lambda: nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = make()
        self.W_key = make()
        self.W_value = make()
        self.context_length = context_length
        band = torch.tril(torch.ones(context_length, context_length))
        band = torch.triu(band, diagonal=-1)
        self.register_buffer("band", band.bool())
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("sequence longer than context")
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)
        S = torch.bmm(Q, K.transpose(1, 2)) / math.sqrt(K.shape[-1])
        S = torch.where(self.band[:n, :n], S, torch.tensor(float("-inf"), dtype=S.dtype, device=S.device))
        A = self.dropout(torch.softmax(S, dim=-1))
        return torch.bmm(A, V)
