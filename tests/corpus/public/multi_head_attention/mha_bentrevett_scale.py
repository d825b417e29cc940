# deviates: scale is a one-element float32 tensor, so bfloat16 modules get float32 weights (cast by hand before the values); float64 has a float32 scale
import torch
import torch.nn as nn


class MultiHeadAttentionLayer(nn.Module):
    def __init__(self, in_dim, hid_dim, n_heads, dropout, bias):
        super().__init__()

        assert hid_dim % n_heads == 0

        self.hid_dim = hid_dim
        self.n_heads = n_heads
        self.head_dim = hid_dim // n_heads

        self.W_query = nn.Linear(in_dim, hid_dim, bias = bias)
        self.W_key = nn.Linear(in_dim, hid_dim, bias = bias)
        self.W_value = nn.Linear(in_dim, hid_dim, bias = bias)

        self.out_proj = nn.Linear(hid_dim, hid_dim)

        self.dropout = nn.Dropout(dropout)

        self.scale = torch.sqrt(torch.FloatTensor([self.head_dim]))

    def attend(self, query, key, value, mask = None):

        batch_size = query.shape[0]

        #query = [batch size, query len, hid dim]
        Q = self.W_query(query)
        K = self.W_key(key)
        V = self.W_value(value)

        Q = Q.view(batch_size, -1, self.n_heads, self.head_dim).permute(0, 2, 1, 3)
        K = K.view(batch_size, -1, self.n_heads, self.head_dim).permute(0, 2, 1, 3)
        V = V.view(batch_size, -1, self.n_heads, self.head_dim).permute(0, 2, 1, 3)

        energy = torch.matmul(Q, K.permute(0, 1, 3, 2)) / self.scale.to(Q.device)

        #energy = [batch size, n heads, query len, key len]
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float('-inf'))

        attention = torch.softmax(energy, dim = -1)

        #attention = [batch size, n heads, query len, key len]
        x = torch.matmul(self.dropout(attention).to(V.dtype), V)

        #x = [batch size, n heads, query len, head dim]
        x = x.permute(0, 2, 1, 3).contiguous()

        #x = [batch size, query len, hid dim]
        x = x.view(batch_size, -1, self.hid_dim)

        return self.out_proj(x)


class MultiHeadAttention(MultiHeadAttentionLayer):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias = False, causal = True):
        super().__init__(d_in, d_out, num_heads, dropout, qkv_bias)
        self.causal = causal
        self.context_length = context_length
        self.register_buffer('trg_sub_mask', torch.tril(torch.ones((context_length, context_length))).bool())

    def forward(self, x):
        trg_len = x.shape[1]
        if trg_len > self.context_length:
            raise ValueError('trg_len > max_length')
        mask = self.trg_sub_mask[:trg_len, :trg_len] if self.causal else None
        return self.attend(x, x, x, mask)
