# mistake: dropout_before_softmax
# dropout is applied to the scores before the softmax, so in training weights are never dropped and still sum to 1
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
        self.context_length = context_length
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, n_tokens, d_in = x.shape
        if n_tokens > self.context_length:
            raise ValueError("n_tokens > context_length")
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)
        scores = self.dropout(torch.bmm(queries, keys.transpose(1, 2)) / queries.size(-1) ** 0.5)
        i = torch.arange(n_tokens, device=x.device)
        scores = scores.masked_fill(i[None, :] > i[:, None], float("-inf"))
        return torch.bmm(torch.softmax(scores, dim=2), values)
