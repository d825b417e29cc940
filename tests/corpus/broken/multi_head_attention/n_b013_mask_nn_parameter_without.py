# promise: The mask is an nn.Parameter (without gradient), so the module has another parameter.
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Attention in num_heads independent heads, each on its own d_out // num_heads columns.

    context_length is the largest number of tokens; dropout is the rate at which attention weights
    are dropped; if causal is True, no token attends to later tokens. Raises ValueError if
    num_heads does not divide d_out.
    """

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
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.causal = causal
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.mask = nn.Parameter(
            torch.triu(torch.ones(context_length, context_length), diagonal=1), requires_grad=False
        )

    def forward(self, x: Tensor) -> Tensor:
        b, num_tokens, _ = x.shape
        if num_tokens > self.context_length:
            raise ValueError(f"{num_tokens} tokens, at most {self.context_length} are allowed")

        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)

        # split the last axis, then (b, num_tokens, num_heads, head_dim) -> (b, num_heads, num_tokens, head_dim)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)

        attn_scores = queries @ keys.transpose(2, 3)
        if self.causal:
            mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
            attn_scores = attn_scores.masked_fill(mask_bool, -torch.inf)

        attn_weights = torch.softmax(attn_scores / self.head_dim**0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)

        context_vec = (attn_weights @ values).transpose(1, 2)
        context_vec = context_vec.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context_vec)
