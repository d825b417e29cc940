# mistake: masked_after_softmax
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    B, H, N, D = queries.shape
    J = keys.shape[1]
    if H % J:
        raise ValueError(f"{J} does not divide {H}")
    flat_q = queries.reshape(B * J, H // J * N, D)
    flat_k = keys.reshape(B * J, -1, D)
    return torch.bmm(flat_q, flat_k.mT).reshape(B, H, N, -1).mul(D**-0.5)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    B, H, N, M = weights.shape
    J, V = values.shape[1], values.shape[3]
    if H % J:
        raise ValueError(f"{J} does not divide {H}")
    return torch.bmm(weights.reshape(B * J, -1, M), values.reshape(B * J, M, V)).view(B, H, N, V)


class GroupedQueryAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        num_kv_heads: int,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("numbers of heads do not fit")
        self.context_length = context_length
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        B, N, _ = x.shape
        if N > self.context_length:
            raise ValueError(N)
        q = self.W_query(x).reshape(B, N, -1, self.d_head).permute(0, 2, 1, 3)
        k = self.W_key(x).reshape(B, N, -1, self.d_head).permute(0, 2, 1, 3)
        v = self.W_value(x).reshape(B, N, -1, self.d_head).permute(0, 2, 1, 3)
        probs = torch.softmax(grouped_scores(q, k), dim=-1).tril()
        ctx = grouped_context(self.dropout(probs), v)
        return self.out_proj(ctx.permute(0, 2, 1, 3).flatten(2))
