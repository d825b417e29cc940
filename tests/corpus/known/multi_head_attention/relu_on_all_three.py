# mistake: activation_on_projections
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
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        self.context_length = context_length
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.scale = self.d_head**-0.5
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        # True where a query (row) may attend to a key (column), the same for every head.
        every_pair = torch.ones(context_length, context_length)  # (context_length, context_length)
        mask = every_pair.tril() if causal else every_pair  # (context_length, context_length)
        self.register_buffer("mask", mask.bool())  # (context_length, context_length)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out).

        Raises ValueError for more tokens than context_length.
        """
        batch, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens exceed the context of {self.context_length}")

        # Each head is a slice of the last axis. It becomes its own axis, in front of the tokens.
        heads = (batch, n_tokens, self.num_heads, self.d_head)
        queries = torch.relu(self.W_query(x)).view(heads).transpose(1, 2)  # (batch, heads, n_tokens, d_head)
        keys = torch.relu(self.W_key(x)).view(heads).transpose(1, 2)  # (batch, heads, n_tokens, d_head)
        values = torch.relu(self.W_value(x)).view(heads).transpose(1, 2)  # (batch, heads, n_tokens, d_head)

        scores = queries @ keys.transpose(2, 3) * self.scale  # (batch, heads, n_tokens, n_tokens)
        visible = self.mask[:n_tokens, :n_tokens]  # (n_tokens, n_tokens)
        scores = scores.masked_fill(~visible, -torch.inf)  # (batch, heads, n_tokens, n_tokens)
        weights = torch.softmax(scores, dim=-1)  # (batch, heads, n_tokens, n_tokens)
        weights = self.dropout(weights)  # (batch, heads, n_tokens, n_tokens)

        context = weights @ values  # (batch, heads, n_tokens, d_head)
        context = context.transpose(1, 2).flatten(2)  # (batch, n_tokens, d_out), head after head
        return self.out_proj(context)  # (batch, n_tokens, d_out)
