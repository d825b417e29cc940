# 正弦位置编码:偶数列是 sin,奇数列是 cos
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    col = torch.arange(d_model)
    twice_i = (col - col % 2).double()
    freq = torch.exp(-math.log(base) * twice_i / d_model)
    angle = torch.arange(context_length).double().unsqueeze(1) * freq
    return torch.where(col % 2 == 0, angle.sin(), angle.cos()).to(torch.float32)


class PositionalEncoding(nn.Module):
    encoding: Tensor

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model, self.context_length, self.p = d_model, context_length, dropout
        self.register_buffer("encoding", sinusoidal(context_length, d_model)[None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        _, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("序列比 context_length 长")
        total = torch.add(x, self.encoding[:, :n].type_as(x))
        return F.dropout(total, self.p, training=self.training)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    """最大绝对差,float"""
    a = block(x[:, permutation])
    b = block(x)[:, permutation]
    return float(torch.max(torch.abs(a - b)))
