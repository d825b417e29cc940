import torch
from torch import Tensor, nn


class MaskedSoftmax(nn.Module):
    """下三角掩码 + 数值稳定的 softmax(没有参数)"""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("future", torch.ones(size, size, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, scores: Tensor) -> Tensor:
        n = scores.size(-1)
        scores = scores.masked_fill(self.future[:n, :n], float("-inf"))
        e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))  # 对角线总是可见的,所以最大值有限
        return e / e.sum(dim=-1, keepdim=True)


class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.attn = MaskedSoftmax(context_length)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.context_length:
            raise ValueError("序列太长")
        q = self.W_query(x) * self.W_query.out_features**-0.5
        s = torch.einsum("bid,bjd->bij", q, self.W_key(x))
        return torch.einsum("bij,bjd->bid", self.drop(self.attn(s)), self.W_value(x))
