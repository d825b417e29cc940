# note: the queries of a group are stacked as rows of one matrix per key head for bmm; both products share one helper, and the mask is a non-persistent buffer
import torch
from torch import Tensor, nn


def _rows_times(left: Tensor, right: Tensor) -> Tensor:
    """left (batch, heads, rows, inner) by right (batch, kv_heads, inner, outer), in groups."""
    b, heads, rows, inner = left.shape
    kv = right.shape[1]
    if kv == 0 or heads % kv != 0:
        raise ValueError(f"kv heads {kv} do not divide heads {heads}")
    stacked = left.reshape(b * kv, heads // kv * rows, inner)
    product = torch.bmm(stacked, right.reshape(b * kv, inner, -1))
    return product.reshape(b, heads, rows, right.shape[-1])


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return _rows_times(queries, keys.mT) * queries.shape[-1] ** -0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    return _rows_times(weights, values)


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
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        if num_heads % num_kv_heads:
            raise ValueError("num_kv_heads must divide num_heads")
        self.split = {"q": num_heads, "kv": num_kv_heads}
        d_kv = d_out // num_heads * num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, False)
        self.W_key, self.W_value = nn.Linear(d_in, d_kv, False), nn.Linear(d_in, d_kv, False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        order = torch.arange(context_length)
        self.register_buffer("future", order > order[:, None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.future.shape[0]:
            raise ValueError("x is too long")
        q = self.W_query(x).view(b, n, self.split["q"], -1).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.split["kv"], -1).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.split["kv"], -1).transpose(1, 2)
        scores = torch.where(self.future[:n, :n], float("-inf"), grouped_scores(q, k))
        heads = grouped_context(self.drop(torch.softmax(scores, -1)), v)
        return self.out_proj(heads.permute(0, 2, 1, 3).reshape(b, n, -1))
