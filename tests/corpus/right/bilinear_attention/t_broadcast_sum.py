# right: M is moved to the side of the keys, the scale is put into the queries, products by broadcasting and sum
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        M = torch.empty(d_query, d_key)
        nn.init.xavier_uniform_(M)
        self.M = nn.Parameter(M)
        self.drop = nn.Dropout(dropout, inplace=False)
        self.attention_weights = None

    def forward(self, queries, keys, values, valid_lens=None):
        small = queries * keys.size(-1) ** -0.5
        seen = torch.einsum("qk,bjk->bjq", self.M, keys)
        scores = (small[:, :, None, :] * seen[:, None, :, :]).sum(3)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.drop(self.attention_weights).matmul(values)
