# right: the twin of one with a mistake, bias
# seen: OpenNMT/OpenNMT-py issue 892. Mistake: the layer of the queries has a bias, which the formula does not have. (Fixed in this twin.)
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.drop = nn.Dropout(p=dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        wq, uh = self.W_q(queries), self.W_k(keys)
        wquh = torch.tanh(torch.unsqueeze(wq, -2) + torch.unsqueeze(uh, -3))
        align = torch.einsum("bqkh,oh->bqk", wquh, self.w_v.weight)
        self.attention_weights = masked_softmax(align, valid_lens)
        return torch.einsum("bqk,bkd->bqd", self.drop(self.attention_weights), values)
