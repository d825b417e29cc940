# mistake: product_of_parts + with_biases
from masked_softmax import masked_softmax
from torch import einsum, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.W_q, self.W_k = nn.Linear(d_query, num_hiddens), nn.Linear(d_key, num_hiddens)
        self.w_v = nn.Linear(num_hiddens, 1)
        self.drop = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        hidden = einsum("bqh,bkh->bqkh", self.W_q(queries), self.W_k(keys)).tanh()
        weights = masked_softmax(self.w_v(hidden)[..., 0], valid_lens)
        self.attention_weights = weights.detach()
        return self.drop(weights).bmm(values)
