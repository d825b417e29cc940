# mistake: bias_ignored
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
        self.d_out = d_out
        self.num_heads = num_heads
        self.heads = nn.ModuleList()
        for number in range(num_heads):
            self.heads.insert(number, CausalAttention(d_in, d_out, context_length, dropout))

    def forward(self, x: Tensor) -> Tensor:
        batch, n_tokens, _ = x.shape
        out = x.new_empty(batch, n_tokens, self.num_heads * self.d_out)
        for i, head in enumerate(self.heads):
            out[:, :, i * self.d_out : (i + 1) * self.d_out] = head(x)
        return out


@torch.no_grad()
def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    result = []
    for name in ("W_query", "W_key", "W_value"):
        like = getattr(stacked.heads[0], name).weight
        rows, columns = like.shape
        matrix = torch.zeros(
            len(stacked.heads) * rows, columns, dtype=like.dtype, device=like.device
        )
        for i, head in enumerate(stacked.heads):
            layer = getattr(head, name)
            if layer.bias is not None:
                raise ValueError("there is no room for biases")
            matrix[i * rows : (i + 1) * rows] = layer.weight
        result.append(matrix)
    return result[0], result[1], result[2]
