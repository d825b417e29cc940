# mistake: float32_mask + mask_in_training_only
# the scale is a one-element float32 tensor that is never converted + no mask in eval
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.scale = torch.sqrt(torch.FloatTensor([d_out]))
        self.register_buffer("mask", torch.ones(context_length, context_length).tril().bool())

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        if length > self.mask.shape[0]:
            raise ValueError("the sequence does not fit in the context")
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)
        energy = torch.matmul(Q, K.permute(0, 2, 1)) / self.scale
        if self.training:
            energy = energy.masked_fill(self.mask[:length, :length] == 0, -torch.inf)
        attention = torch.softmax(energy, dim=-1)
        return torch.matmul(self.dropout(attention), V)
