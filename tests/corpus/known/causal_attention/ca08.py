# mistake: scaled_by_root_of_n_tokens
# divides by the root of the number of keys
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.weights_dropout = nn.Dropout(dropout)
        i = torch.arange(context_length)
        self.register_buffer("causal", torch.ge(i.unsqueeze(1), i))

    def _scores(self, x: Tensor) -> Tensor:
        queries = self.W_query(x)
        keys_t = self.W_key(x).swapaxes(1, 2)
        return torch.baddbmm(
            torch.zeros((), dtype=x.dtype, device=x.device),
            queries,
            keys_t,
            alpha=float(keys_t.shape[-1]) ** -0.5,
        )

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.causal.shape[0]:
            raise ValueError("too many tokens for this context")
        scores = self._scores(x).masked_fill(~self.causal[:n, :n], float("-inf"))
        return torch.bmm(self.weights_dropout(scores.softmax(2)), self.W_value(x))
