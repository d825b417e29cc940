# broken: "The module does not change, nor does its mode": split_weights puts it in eval mode
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
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
            for _ in range(num_heads)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, num_heads * d_out)."""
        outputs = [head(x) for head in self.heads]
        return torch.cat(outputs, dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    """Return W_query, W_key and W_value of all heads, (num_heads * d_out, d_in) each."""
    if stacked.heads[0].W_query.bias is not None:
        raise ValueError("the heads have biases")
    stacked.eval()
    W_query = torch.cat([head.W_query.weight for head in stacked.heads], dim=0)
    W_key = torch.cat([head.W_key.weight for head in stacked.heads], dim=0)
    W_value = torch.cat([head.W_value.weight for head in stacked.heads], dim=0)
    return W_query, W_key, W_value
