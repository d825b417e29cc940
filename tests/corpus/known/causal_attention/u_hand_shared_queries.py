# mistake: one_mask_for_the_queries + tensor_left_behind

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Attention in which each token attends to itself and the tokens before it.

    d_in and d_out are the sizes of a token's input and output vector; context_length is the
    largest number of tokens; dropout is the rate at which attention weights are dropped.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        # --- solution
        self.context_length = context_length
        self.scale = d_out**-0.5
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.rate = dropout
        # True where a query (row) may attend to a key (column): at or before its own position.
        every_pair = torch.ones(context_length, context_length)  # (context_length, context_length)
        self.register_buffer("mask", every_pair.tril().bool())  # (context_length, context_length)
        # --- end

    def _hand(self, t):
        if not self.training or self.rate == 0:
            return t
        if self.rate == 1:
            return t * 0
        import torch
        keep = (torch.rand(t.shape, dtype=torch.float64) > self.rate).to(t.dtype)
        return t * keep / (1 - self.rate)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out).

        Raises ValueError for more tokens than context_length.
        """
        # --- solution
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens exceed the context of {self.context_length}")

        queries = self.W_query(x)  # (batch, n_tokens, d_out)
        keys = self.W_key(x)  # (batch, n_tokens, d_out)
        values = self.W_value(x)  # (batch, n_tokens, d_out)

        scores = queries @ keys.transpose(1, 2) * self.scale  # (batch, n_tokens, n_tokens)
        visible = self.mask[:n_tokens, :n_tokens]  # (n_tokens, n_tokens)
        scores = scores.masked_fill(~visible, -torch.inf)  # (batch, n_tokens, n_tokens)
        weights = torch.softmax(scores, dim=-1)  # (batch, n_tokens, n_tokens)
        weights = weights * self._hand(weights.new_ones(weights[..., :1, :].shape))
        return weights @ values  # (batch, n_tokens, d_out)
        # --- end
