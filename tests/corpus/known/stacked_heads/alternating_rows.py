# mistake: split_interleaved
# split_weights puts the rows of the heads in turn (row 0 of each head, then row 1 of each head, ...), so the columns of a head are not together
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
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
        make = lambda: CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)  # noqa: E731
        self.heads = nn.ModuleList(make() for _ in range(num_heads))
        self.has_bias = qkv_bias

    def forward(self, x: Tensor) -> Tensor:
        # (num_heads, batch, n_tokens, d_out) -> (batch, n_tokens, num_heads * d_out)
        y = torch.stack([head(x) for head in self.heads])
        return y.permute(1, 2, 0, 3).flatten(2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if stacked.has_bias:
        raise ValueError("not with qkv_bias=True")

    def join(name: str) -> Tensor:
        rows = torch.stack([getattr(head, name).weight for head in stacked.heads], dim=1)
        return rows.reshape(-1, rows.shape[-1])

    return join("W_query"), join("W_key"), join("W_value")
