"""Reference solution: attention in a sliding window, and its bias by distance."""

import torch
from torch import Tensor
from torch.nn import functional as F


def alibi_slopes(num_heads: int) -> Tensor:
    """Return by how much each head's scores fall from one token to the one before it.

    returns  (num_heads,), floating point
    """
    # --- solution
    power = 2 ** (num_heads.bit_length() - 1)  # the largest that is not above num_heads
    if power < num_heads:
        more = alibi_slopes(2 * power)[::2]  # (power,)
        return torch.cat([alibi_slopes(power), more[: num_heads - power]])  # (num_heads,)
    head = torch.arange(1, num_heads + 1, dtype=torch.float64)  # (num_heads,)
    return 2 ** (-8 * head / num_heads)  # (num_heads,)
    # --- end


def sliding_attention(
    Q: Tensor, K: Tensor, V: Tensor, window: int, slopes: Tensor | None = None
) -> Tensor:
    """Attend from each token to itself and the window - 1 tokens before it.

    Q, K, V  (batch, num_heads, n_tokens, d_head)
    slopes   (num_heads,), for a score that falls with the distance; None for no bias
    returns  (batch, num_heads, n_tokens, d_head)

    Raises ValueError for a window below 1.
    """
    # --- solution
    if window < 1:
        raise ValueError(f"a window holds at least the token itself, not {window} tokens")
    n_tokens, d_head = Q.shape[-2:]
    window = min(window, n_tokens)
    # With padding in front, token i sees the tokens i to i + window - 1; it is the last of them.
    front = (0, 0, window - 1, 0)
    keys = F.pad(K, front).unfold(2, window, 1)  # (batch, num_heads, n_tokens, d_head, window)
    values = F.pad(V, front).unfold(2, window, 1)  # (batch, num_heads, n_tokens, d_head, window)
    distance = torch.arange(window - 1, -1, -1, device=Q.device)  # (window,)
    position = torch.arange(n_tokens, device=Q.device).unsqueeze(1)  # (n_tokens, 1)

    products = (Q.unsqueeze(-2) @ keys).squeeze(-2)  # (batch, num_heads, n_tokens, window)
    precise = torch.promote_types(Q.dtype, torch.float32)  # of the softmax
    scores = products.to(precise) / d_head**0.5  # (batch, num_heads, n_tokens, window)
    if slopes is not None:
        bias = slopes.to(precise).view(-1, 1, 1) * distance  # (num_heads, 1, window)
        scores = scores - bias  # (batch, num_heads, n_tokens, window)
    padding = distance > position  # (n_tokens, window)
    scores = scores.masked_fill(padding, -torch.inf)  # (batch, num_heads, n_tokens, window)
    weights = torch.softmax(scores, dim=-1).to(Q.dtype)  # (batch, num_heads, n_tokens, window)
    output = (values @ weights.unsqueeze(-1)).squeeze(-1)  # (batch, num_heads, n_tokens, d_head)
    return output
    # --- end
