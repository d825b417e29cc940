# mistake: scaled_by_root_of_d_out
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
        self.d_head = d_out // num_heads
        self.causal = causal
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        b, num_tokens, _ = x.shape
        if num_tokens > self.context_length:
            raise ValueError(f"{num_tokens} tokens, at most {self.context_length} are allowed")

        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)

        # split the last axis, then (b, num_tokens, num_heads, d_head) -> (b, num_heads, num_tokens, d_head)
        keys = keys.view(b, num_tokens, self.num_heads, self.d_head).transpose(1, 2)
        values = values.view(b, num_tokens, self.num_heads, self.d_head).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.d_head).transpose(1, 2)

        scores = queries @ keys.transpose(2, 3)
        if self.causal:
            mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
            scores = scores.masked_fill(mask_bool, -torch.inf)

        weights = torch.softmax(scores / self.d_out**0.5, dim=-1)
        weights = self.dropout(weights)

        context = (weights @ values).transpose(1, 2)
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context)
