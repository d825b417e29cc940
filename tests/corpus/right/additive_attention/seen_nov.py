# right: the twin of one with a mistake, nov
# seen: tensorflow/tensorflow issue 43471 (also 39332). Mistake: the hidden units are simply summed, without the vector w_v that weighs them. (Fixed in this twin.)
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(in_features=d_query, out_features=num_hiddens, bias=False)
        self.W_k = nn.Linear(in_features=d_key, out_features=num_hiddens, bias=False)
        self.w_v = nn.Linear(in_features=num_hiddens, out_features=1, bias=False)
        self.rate = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q = self.W_q(queries)[:, :, None, :]
        k = self.W_k(keys)[:, None, :, :]
        scores = ((q + k).tanh() * self.w_v.weight[0]).sum(dim=-1)
        alpha = masked_softmax(scores, valid_lens)
        self.attention_weights = alpha.detach()
        alpha = F.dropout(alpha, self.rate, self.training)
        return alpha @ values
