# mistake: tiled_groups
import torch
from torch import Tensor, nn


# letters:  b batch   k key/value head   g place in the group   q query   s key   d feature
def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, q, d = queries.shape
    k = keys.shape[1]
    if h % k:
        raise ValueError(f"{h} heads cannot share {k} heads of keys")
    queries = queries.unflatten(1, (h // k, k)).transpose(1, 2)
    scores = torch.einsum("bkgqd,bksd->bkgqs", queries, keys)
    return scores.transpose(1, 2).flatten(1, 2) * d**-0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    h, k = weights.shape[1], values.shape[1]
    if h % k:
        raise ValueError(f"{h} heads cannot share {k} heads of values")
    weights = weights.unflatten(1, (h // k, k)).transpose(1, 2)
    return torch.einsum("bkgqs,bksd->bkgqd", weights, values).transpose(1, 2).flatten(1, 2)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("the numbers of heads do not fit")
        d_head = d_out // num_heads
        self.heads, self.kv_heads = num_heads, num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        visible = torch.tril(torch.ones(context_length, context_length, dtype=torch.bool))
        self.register_buffer("visible", visible, persistent=False)

    def split(self, t: Tensor, heads: int) -> Tensor:
        return t.unflatten(-1, (heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > len(self.visible):
            raise ValueError("too many tokens")
        s = grouped_scores(self.split(self.W_query(x), self.heads), self.split(self.W_key(x), self.kv_heads))
        s = s.masked_fill(~self.visible[:n, :n], -torch.inf)
        w = self.drop(s.softmax(-1))
        c = grouped_context(w, self.split(self.W_value(x), self.kv_heads))
        return self.out_proj(c.transpose(1, 2).flatten(2))
