# mistake: dropped_twice
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def thin(w: Tensor, p: float) -> Tensor:
    if p == 0:
        return w
    kept = torch.rand(w.shape, device=w.device) >= p
    return (w * kept).div(1 - p) if p < 1 else torch.zeros_like(w)


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.read = nn.Dropout(dropout)

    def weigh(self, queries: Tensor, keys: Tensor, valid_lens: Tensor | None) -> Tensor:
        hidden = self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1)
        w = masked_softmax(self.w_v(hidden.tanh()).squeeze(-1), valid_lens)
        self.attention_weights = w
        return thin(w, self.read.p) if self.training else w

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        return torch.matmul(self.read(self.weigh(queries, keys, valid_lens)), values)
