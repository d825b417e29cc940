# mistake: softmax_over_queries + no_scale
from masked_softmax import masked_softmax
from torch import nn, randn, zeros_like


class BilinearAttention(nn.Module):
    def __init__(self, d_query, d_key, dropout):
        super().__init__()
        self.M = nn.Parameter(randn(d_query, d_key))
        self.drop = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        scores = queries.matmul(self.M).matmul(keys.mT)
        visible = masked_softmax(zeros_like(scores), valid_lens).gt(0)
        weights = scores.softmax(1) * visible
        self.attention_weights = weights
        return self.drop(weights).matmul(values)
