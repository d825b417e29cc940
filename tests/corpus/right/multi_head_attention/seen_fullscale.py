# right: the twin of one with a mistake, fullscale
# seen: lucidrains/vit-pytorch issue 65. Mistake: the scores are scaled by the root of the whole width in place of the size of one head. (Fixed in this twin.)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        dim_head, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError("d_out is no multiple of num_heads")
        self.heads = num_heads
        self.dim_head = dim_head
        self.scale = dim_head**-0.5
        self.causal = causal
        self.context_length = context_length

        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attend_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("x has more tokens than context_length")

        def split(t: Tensor) -> Tensor:
            return t.view(b, n, self.heads, self.dim_head).permute(0, 2, 1, 3)

        q, k, v = map(split, (self.W_query(x), self.W_key(x), self.W_value(x)))
        dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        if self.causal:
            i = torch.arange(n, device=x.device)
            dots = torch.where(i[:, None] < i, float("-inf"), dots)
        attn = self.attend_dropout(dots.softmax(dim=-1))
        out = torch.matmul(attn, v).permute(0, 2, 1, 3).reshape(b, n, -1)
        return self.out_proj(out)
