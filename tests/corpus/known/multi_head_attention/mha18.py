# mistake: keys_from_the_query_layer + dropout_never_used
# W_key is never called + the rate is stored only
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        assert d_out % num_heads == 0, f"{d_out} columns cannot be shared by {num_heads} heads"
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = dropout
        self.num_heads = num_heads
        keep = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("keep", torch.tril(keep) if causal else keep)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        layers = {"q": self.W_query, "k": self.W_query, "v": self.W_value}
        q, k, v = (layers[name](x).unflatten(-1, (self.num_heads, -1)) for name in "qkv")
        return q, k, v

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.keep.shape[1]:
            raise ValueError("n_tokens")
        q, k, v = self.project(x)
        s = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
        w = s.masked_fill(~self.keep[:n, :n], float("-inf")).softmax(-1)
        return self.out_proj(torch.einsum("bhij,bjhd->bihd", w, v).flatten(2))
