import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskedSelfAttention(nn.Module):

    def __init__(self, d_model=2, d_head=2, bias=False, row_dim=-2, col_dim=-1):
        super().__init__()

        self.W_query = nn.Linear(in_features=d_model, out_features=d_head, bias=bias)
        self.W_key = nn.Linear(in_features=d_model, out_features=d_head, bias=bias)
        self.W_value = nn.Linear(in_features=d_model, out_features=d_head, bias=bias)

        self.row_dim = row_dim
        self.col_dim = col_dim

    def similarities(self, token_encodings, mask=None):
        q = self.W_query(token_encodings)
        k = self.W_key(token_encodings)
        v = self.W_value(token_encodings)

        sims = torch.matmul(q, k.transpose(dim0=self.row_dim, dim1=self.col_dim))
        scaled_sims = sims / k.size(self.col_dim)**0.5

        if mask is not None:
            ## Here we are masking out things we don't want to pay attention to:
            ## True = "this token comes later, so don't look"
            scaled_sims = scaled_sims.masked_fill(mask=mask, value=float("-inf"))

        return F.softmax(scaled_sims, dim=self.col_dim), v


class CausalAttention(MaskedSelfAttention):

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__(d_model=d_in, d_head=d_out, bias=qkv_bias)
        mask = torch.tril(torch.ones(context_length, context_length))
        mask = mask == 0
        self.register_buffer("mask", mask)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x):
        n = x.size(dim=1)
        if n > self.mask.size(dim=0):
            raise ValueError(f"{n} tokens, but the mask was made for {self.mask.size(dim=0)}")
        attention_percents, v = self.similarities(x, self.mask[:n, :n])
        return torch.matmul(self.dropout(attention_percents), v)
