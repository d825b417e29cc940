# mistake: renormalised_after_softmax
# the softmax runs over all tokens and the rest is normalised again after masking, so a later token with a huge score changes earlier outputs (0 / 0)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Softmax, then tril, then divide by the sum of the row."""

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
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask_simple", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > len(self.mask_simple):
            raise ValueError("sequence is longer than the context")
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        attn_scores = queries @ keys.transpose(1, 2)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        masked = attn_weights * self.mask_simple[:n, :n]
        masked = masked / masked.sum(dim=-1, keepdim=True)
        return self.dropout(masked) @ values
