# mistake: softmax_over_heads_and_keys
# seen: facebookresearch/detr issue 247 (segmentation.py). Mistake: the softmax runs over heads and keys together, so the weights of all heads of a query sum to 1.
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if num_heads < 1 or d_out % num_heads != 0:
            raise ValueError(f"d_out={d_out} cannot be split into {num_heads} heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.normalize_fact = float(d_out // num_heads) ** -0.5
        seen = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("seen", seen.tril() if causal else seen)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.seen.shape[0]:
            raise ValueError("context_length exceeded")
        qh = self.W_query(x).unflatten(-1, (self.num_heads, -1))
        kh = self.W_key(x).unflatten(-1, (self.num_heads, -1))
        vh = self.W_value(x).unflatten(-1, (self.num_heads, -1))

        scores = torch.einsum("bqnc,bknc->bqnk", qh * self.normalize_fact, kh)
        scores = scores.masked_fill(~self.seen[:n, None, :n], float("-inf"))
        weights = scores.flatten(2).softmax(dim=-1).view(scores.size())
        mixed = torch.einsum("bqnk,bknc->bqnc", self.dropout(weights), vh)
        return self.out_proj(mixed.flatten(2))
