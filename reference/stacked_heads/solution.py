"""Reference solution: heads of causal attention side by side."""

import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
    """Several causal attentions of size d_out each, whose outputs are joined along the features."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        # --- solution
        # In a plain list, the parameters of the heads would not be found.
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
            for _ in range(num_heads)
        )
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, num_heads * d_out)."""
        # --- solution
        outputs = [head(x) for head in self.heads]  # num_heads times (batch, n_tokens, d_out)
        return torch.cat(outputs, dim=-1)  # (batch, n_tokens, num_heads * d_out)
        # --- end


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    """Return W_query, W_key and W_value of all heads, (num_heads * d_out, d_in) each.

    Raises ValueError if the heads have biases.
    """
    # --- solution
    if any(head.W_query.bias is not None for head in stacked.heads):
        raise ValueError("three matrices cannot hold the biases of the heads")
    # A linear layer has a row for each output feature, so heads are joined along the rows.
    W_query = torch.cat([head.W_query.weight for head in stacked.heads])  # (heads * d_out, d_in)
    W_key = torch.cat([head.W_key.weight for head in stacked.heads])  # (heads * d_out, d_in)
    W_value = torch.cat([head.W_value.weight for head in stacked.heads])  # (heads * d_out, d_in)
    return W_query.detach(), W_key.detach(), W_value.detach()  # (heads * d_out, d_in) each
    # --- end
