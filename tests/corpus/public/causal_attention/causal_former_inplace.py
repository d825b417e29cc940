# deviates: layers created key, query, value; scale split over query and key (d ** 1/4); a long input raises AssertionError; no buffer
import torch
import torch.nn.functional as F
from torch import nn


def mask_(matrices, maskval=0.0, mask_diagonal=True):
    """
    Masks out all values in the given batch of matrices where i <= j holds,
    i < j if mask_diagonal is false

    In place operation
    """
    h, w = matrices.size(-2), matrices.size(-1)
    indices = torch.triu_indices(h, w, offset=0 if mask_diagonal else 1)
    matrices[..., indices[0], indices[1]] = maskval


def contains_nan(tensor):
    return bool((tensor != tensor).sum() > 0)


class CausalAttention(nn.Module):
    """
    Canonical implementation of self attention, autoregressive version.
    """

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.emb, self.s, self.max_t = d_in, d_out, context_length

        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.p = dropout

    def forward(self, x):
        b, t, e = x.size()
        assert e == self.emb, f'Input embedding dim ({e}) should match layer embedding dim ({self.emb})'
        assert t <= self.max_t, f'Sequence of {t} tokens, at most {self.max_t}'

        keys    = self.W_key(x)
        queries = self.W_query(x)
        values  = self.W_value(x)

        # Instead of dividing the dot products by sqrt(s), we scale the keys and values.
        # This should be more memory efficient
        queries = queries / (self.s ** (1/4))
        keys    = keys / (self.s ** (1/4))

        dot = torch.bmm(queries, keys.transpose(1, 2))
        assert dot.size() == (b, t, t)

        mask_(dot, maskval=float('-inf'), mask_diagonal=False)

        dot = F.softmax(dot, dim=2)
        dot = F.dropout(dot, p=self.p, training=self.training)

        return torch.bmm(dot, values)
