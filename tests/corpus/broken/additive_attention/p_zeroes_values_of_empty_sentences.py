# promise: The values of sentences of length 0 are overwritten with zeros in the argument.
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        hidden = torch.tanh(self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1))
        weights = masked_softmax(self.w_v(hidden).squeeze(-1), valid_lens)
        if valid_lens is not None and valid_lens.dim() == 1:
            values.detach()[valid_lens == 0] = 0.0
        self.attention_weights = weights.detach()
        return torch.bmm(F.dropout(weights, self.rate, self.training), values)
