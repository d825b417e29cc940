# mistake: dropout_on_the_input
# true: right in eval mode and at rate 0; in training the weights are complete and the inputs are dropped
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.input_dropout = nn.Dropout(dropout)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.register_buffer("causal_mask", torch.ones((context_length, context_length), dtype=torch.bool).tril_())

    def forward(self, x: Tensor) -> Tensor:
        seq = x.size(1)
        if seq > self.causal_mask.size(0):
            raise ValueError("sequence too long")
        x = self.input_dropout(x)
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)
        logits = torch.einsum("bqc,bkc->bqk", q, k).div(q.size(2) ** 0.5)
        logits = logits.masked_fill(self.causal_mask[:seq, :seq].logical_not(), float("-inf"))
        return torch.einsum("bqk,bkc->bqc", logits.softmax(2), v)
