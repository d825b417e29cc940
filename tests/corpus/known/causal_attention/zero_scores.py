# mistake: multiplied_by_mask
# the scores of later tokens are set to 0 and not to minus infinity, so later tokens still get weight
import torch
from torch import Tensor, nn


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
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.size(1)
        if n_tokens > self.tril.size(0):
            raise ValueError(f"at most {self.tril.size(0)} tokens")
        scores = torch.einsum("bid,bjd->bij", self.W_query(x), self.W_key(x))
        scores = scores / self.W_key.out_features**0.5
        scores = scores * self.tril[:n_tokens, :n_tokens]
        weights = self.drop(scores.softmax(dim=-1))
        return torch.einsum("bij,bjd->bid", weights, self.W_value(x))
