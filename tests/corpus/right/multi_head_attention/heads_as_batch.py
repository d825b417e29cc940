# right: heads folded into the batch for bmm by split and cat, logsumexp softmax, helper class for the mask
import torch
from torch import Tensor, nn


class Lookahead(nn.Module):
    def __init__(self, context_length: int, causal: bool) -> None:
        super().__init__()
        self.context_length = context_length
        grid = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("allowed", grid.tril() if causal else grid, persistent=False)

    def forward(self, scores: Tensor) -> Tensor:
        n = scores.shape[-1]
        if n > self.context_length:
            raise ValueError("more tokens than context_length")
        return scores.masked_fill(~self.allowed[:n, :n], -torch.inf)


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
        if d_out // num_heads * num_heads != d_out:
            raise ValueError("d_out is not a multiple of num_heads")
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.look = Lookahead(context_length, causal)
        self.drop = nn.Dropout(dropout)

    def fold(self, t: Tensor) -> Tensor:
        return torch.cat(t.split(self.d_head, dim=2), dim=0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.fold(self.W_query(x)), self.fold(self.W_key(x)), self.fold(self.W_value(x))
        scores = self.look(torch.bmm(q / self.d_head**0.5, k.transpose(1, 2)))
        weights = torch.exp(scores - torch.logsumexp(scores, dim=2, keepdim=True))
        heads = torch.bmm(self.drop(weights), v)
        num_heads = self.W_query.out_features // self.d_head
        return self.out_proj(torch.cat(heads.tensor_split(num_heads, dim=0), dim=2))
