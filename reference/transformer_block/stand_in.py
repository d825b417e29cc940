"""Stand-in for the Transformer block: the same contract, computed by torch's own encoder layer."""

from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class _Attention(nn.Module):
    """The layers of multi-head attention, by the names that the block's task gives them."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_key = nn.Linear(d_model, d_model, bias=False)
        self.W_value = nn.Linear(d_model, d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model)


class _FeedForward(nn.Module):
    """The layers of the feed-forward network, and the other names of torch's encoder layer."""

    def __init__(self, d_model: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.activation = F.relu


class _Norm(nn.Module):
    """The parameters of a layer norm."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))  # (d_model,)
        self.beta = nn.Parameter(torch.zeros(d_model))  # (d_model,)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (batch, n_tokens, d_model)."""
        return F.layer_norm(x, self.gamma.shape, self.gamma, self.beta)  # shape of x


class TransformerBlock(nn.TransformerEncoderLayer):
    """Torch's own layer with the exercise's interface and parameters."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        context_length: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        causal: bool = True,
    ) -> None:
        nn.Module.__init__(self)  # without the layers of torch's own
        if d_model % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_model = {d_model}")
        self.attention = _Attention(d_model)
        self.feed_forward = _FeedForward(d_model, d_ff, dropout)
        self.norm1 = _Norm(d_model)
        self.norm2 = _Norm(d_model)
        self.num_heads, self.context_length = num_heads, context_length
        self.rate, self.norm_first, self.causal = dropout, norm_first, causal
        # With it, torch's layer takes none of its shortcuts past the methods below.
        self.self_attn = SimpleNamespace(batch_first=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        if x.shape[1] > self.context_length:
            raise ValueError(f"{x.shape[1]} tokens exceed the context of {self.context_length}")
        return super().forward(x)  # (batch, n_tokens, d_model)

    def _sa_block(self, x: Tensor, *masks: None, is_causal: bool) -> Tensor:
        layers = self.attention
        queries, keys, values = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (layers.W_query, layers.W_key, layers.W_value)
        )  # (batch, heads, n_tokens, d_head) each
        rate = self.rate if self.training else 0.0
        output = F.scaled_dot_product_attention(
            queries, keys, values, dropout_p=rate, is_causal=self.causal
        )  # (batch, heads, n_tokens, d_head)
        output = layers.out_proj(output.transpose(1, 2).flatten(2))  # (batch, n_tokens, d_model)
        return F.dropout(output, self.rate, self.training)  # (batch, n_tokens, d_model)

    def _ff_block(self, x: Tensor) -> Tensor:
        return nn.TransformerEncoderLayer._ff_block(self.feed_forward, x)  # shape of x
