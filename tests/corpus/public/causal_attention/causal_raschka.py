import torch
import torch.nn as nn


class CausalAttention(nn.Module):

    def __init__(self, d_in, d_out, context_length,
                 dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key   = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            'mask', torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        # For inputs where `num_tokens` exceeds `context_length`, the mask slice below would be
        # too small; in practice the LLM crops its inputs before they get here
        if num_tokens > self.mask.shape[0]:
            raise ValueError("Input is longer than the context length")
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)

        attn_scores = queries @ keys.transpose(1, 2)
        attn_scores.masked_fill_(  # trailing underscore: in place
            self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        attn_weights = torch.softmax(
            attn_scores / keys.shape[-1]**0.5, dim=-1
        )
        attn_weights = self.dropout(attn_weights)

        context_vec = attn_weights @ values
        return context_vec


if __name__ == "__main__":
    torch.manual_seed(123)
    inputs = torch.tensor(
        [[0.43, 0.15, 0.89], # Your     (x^1)
         [0.55, 0.87, 0.66], # journey  (x^2)
         [0.57, 0.85, 0.64], # starts   (x^3)
         [0.22, 0.58, 0.33], # with     (x^4)
         [0.77, 0.25, 0.10], # one      (x^5)
         [0.05, 0.80, 0.55]] # step     (x^6)
    )
    batch = torch.stack((inputs, inputs), dim=0)
    ca = CausalAttention(3, 2, batch.shape[1], 0.0)
    context_vecs = ca(batch)
    print("context_vecs.shape:", context_vecs.shape)
