# mistake: biases_dropped
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
        self.heads = nn.ModuleList(
            [
                CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
                for _ in range(num_heads)
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, num_heads * d_out)."""
        return torch.cat([head(x) for head in self.heads], dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    """Return W_query, W_key and W_value of all heads, (num_heads * d_out, d_in) each."""
    with torch.no_grad():
        W_query = torch.cat([h.W_query.weight for h in stacked.heads])
        W_key = torch.cat([h.W_key.weight for h in stacked.heads])
        W_value = torch.cat([h.W_value.weight for h in stacked.heads])
    return W_query, W_key, W_value
