# mistake: dropout_on_queries_or_keys + tensor_left_behind

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the scores of every query head with the keys of its group.

    Queries (batch, num_heads, n_queries, d_head) and keys (batch, num_kv_heads, n_keys, d_head)
    give (batch, num_heads, n_queries, n_keys), divided by sqrt(d_head). Raises ValueError if
    num_kv_heads does not divide num_heads.
    """
    # --- solution
    batch, num_heads, n_queries, d_head = queries.shape
    num_kv_heads = keys.shape[1]
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} heads of keys do not divide {num_heads} heads")
    # The queries of a group are one long list, which meets the keys of the group in one product.
    rows = num_heads // num_kv_heads * n_queries
    listed = queries.reshape(batch, num_kv_heads, rows, d_head)  # (batch, kv_heads, rows, d_head)
    products = listed @ keys.transpose(2, 3)  # (batch, kv_heads, rows, n_keys)
    scores = products * d_head**-0.5  # (batch, kv_heads, rows, n_keys)
    return scores.view(batch, num_heads, n_queries, -1)  # (batch, num_heads, n_queries, n_keys)
    # --- end


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    """Return the values of every head's group, added up with the weights of the head.

    Weights (batch, num_heads, n_queries, n_keys) and values (batch, num_kv_heads, n_keys, d_value)
    give (batch, num_heads, n_queries, d_value). Raises ValueError if num_kv_heads does not divide
    num_heads.
    """
    # --- solution
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv_heads = values.shape[1]
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} heads of values do not divide {num_heads} heads")
    rows = num_heads // num_kv_heads * n_queries
    listed = weights.reshape(batch, num_kv_heads, rows, n_keys)  # (batch, kv_heads, rows, n_keys)
    context = listed @ values  # (batch, kv_heads, rows, d_value)
    return context.view(batch, num_heads, n_queries, -1)  # (batch, num_heads, n_queries, d_value)
    # --- end


class GroupedQueryAttention(nn.Module):
    """Causal attention with num_heads heads of queries and num_kv_heads heads of keys and values.

    context_length is the largest number of tokens; dropout is the rate at which attention weights
    are dropped. Raises ValueError if num_heads does not divide d_out, or num_kv_heads num_heads.
    """

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
        # --- solution
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_kv_heads} heads of keys do not divide {num_heads} heads")
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.rate = dropout
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
        batch, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens exceed the context of {self.context_length}")

        heads = (batch, n_tokens, self.num_heads, self.d_head)
        kv_heads = (batch, n_tokens, self.num_kv_heads, self.d_head)
        queries = self.W_query(x).view(heads).transpose(1, 2)  # (batch, heads, n_tokens, d_head)
        keys = self.W_key(x).view(kv_heads).transpose(1, 2)  # (batch, kv_heads, n_tokens, d_head)
        values = self.W_value(x).view(kv_heads).transpose(1, 2)  # as keys

        keys = self._hand(keys)
        scores = grouped_scores(queries, keys)  # (batch, heads, n_tokens, n_tokens)
        visible = x.new_ones(n_tokens, n_tokens).tril().bool()  # (n_tokens, n_tokens)
        scores = scores.masked_fill(~visible, -torch.inf)  # (batch, heads, n_tokens, n_tokens)
        weights = torch.softmax(scores, dim=-1)  # (batch, heads, n_tokens, n_tokens)

        context = grouped_context(weights, values)  # (batch, heads, n_tokens, d_head)
        context = context.transpose(1, 2).flatten(2)  # (batch, n_tokens, d_out), head after head
        return self.out_proj(context)  # (batch, n_tokens, d_out)
        # --- end
