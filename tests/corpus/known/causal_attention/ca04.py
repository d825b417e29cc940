# mistake: mask_in_training_only
# the future is hidden in training mode only
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)
        bias = torch.zeros(context_length, context_length)
        bias[torch.ones_like(bias).triu(1).bool()] = float("-inf")
        self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.bias.shape[-1]:
            raise ValueError("context_length exceeded")
        q = self.W_query(x)
        k = self.W_key(x)
        scores = q.matmul(k.transpose(-2, -1)) / k.size(-1) ** 0.5
        bias = self.bias[:n, :n]
        if not self.training:
            # at inference the tokens have all been generated already
            bias = torch.zeros_like(bias)
        weights = self.drop((scores + bias).softmax(dim=-1))
        return weights.matmul(self.W_value(x))
