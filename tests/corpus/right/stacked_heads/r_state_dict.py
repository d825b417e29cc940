# 各个头并排,输出沿特征轴拼接
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
        settings = dict(d_in=d_in, d_out=d_out, context_length=context_length, dropout=dropout, qkv_bias=qkv_bias)
        self.heads = nn.ModuleList(CausalAttention(**settings) for _ in range(num_heads))

    def forward(self, x: Tensor) -> Tensor:
        outputs = map(lambda head: head(x), self.heads)
        return torch.hstack([o.transpose(1, 2) for o in outputs]).transpose(1, 2)


@torch.no_grad()
def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    own = dict(stacked.named_parameters())
    if any(name.endswith(".bias") for name in own):
        raise ValueError("有偏置的模块不能拆成三个矩阵")
    h = len(stacked.heads)
    q, k, v = (
        torch.vstack([own[f"heads.{i}.{layer}.weight"] for i in range(h)])
        for layer in ("W_query", "W_key", "W_value")
    )
    return q, k, v
