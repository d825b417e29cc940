import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        # log 1 = 0 keeps a score, log 0 = -inf removes it
        self.register_buffer("log_mask", torch.ones(context_length, context_length).tril().log())

    def forward(self, x: Tensor) -> Tensor:
        B, N, _ = x.shape
        if N > self.context_length:
            raise ValueError(f"N={N}")
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)
        S = torch.baddbmm(self.log_mask[:N, :N].expand(B, N, N), Q, K.transpose(1, 2), alpha=Q.size(-1) ** -0.5)
        S = S - S.amax(dim=2, keepdim=True).detach()
        A = torch.exp(S - torch.logsumexp(S, dim=2, keepdim=True))
        return torch.matmul(self.dropout(A), V)
