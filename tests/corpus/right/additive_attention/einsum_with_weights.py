# right: functional linear and einsum on the weights of the layers, hidden axis moved
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q = torch.einsum("bqd,hd->bhq", queries, self.W_q.weight)
        k = torch.einsum("bkd,hd->bhk", keys, self.W_k.weight)
        hidden = torch.tanh(q[..., None] + k[..., None, :])
        scores = torch.einsum("bhqk,h->bqk", hidden, self.w_v.weight[0])
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.einsum("bqk,bkv->bqv", self.dropout(self.attention_weights), values)
