# deviates: IGNORE (a scalar) is the only buffer; the triangle is made in forward
from dataclasses import dataclass

import torch as t
from torch import Tensor, nn

device = t.device("cpu")


@dataclass
class Config:
    d_model: int
    n_ctx: int
    d_head: int
    n_heads: int
    pdrop: float


class MultiHeadAttention(nn.Module):
    IGNORE: Tensor

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        assert d_out % num_heads == 0
        self.cfg = Config(d_in, context_length, d_out // num_heads, num_heads, dropout)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.causal = causal
        self.hook_pattern = nn.Identity()
        self.pattern_dropout = nn.Dropout(dropout)
        self.register_buffer("IGNORE", t.tensor(float("-inf"), dtype=t.float32, device=device))

    def heads(self, lin: nn.Linear):
        """W (n_heads, d_head, d_model) and b (n_heads, d_head) of a projection"""
        W = lin.weight.unflatten(0, (self.cfg.n_heads, self.cfg.d_head))
        b = 0 if lin.bias is None else lin.bias.unflatten(0, (self.cfg.n_heads, self.cfg.d_head))
        return W, b

    def project(self, lin, normalized_resid_pre):
        W, b = self.heads(lin)
        return t.einsum("bpm,nhm->bpnh", normalized_resid_pre, W) + b

    def apply_causal_mask(self, attn_scores: Tensor) -> Tensor:
        """
        Applies a causal mask to attention scores, and returns masked scores.
        """
        all_ones = t.ones(attn_scores.size(-2), attn_scores.size(-1), device=attn_scores.device)
        mask = t.triu(all_ones, diagonal=1).bool()
        return attn_scores.masked_fill(mask, self.IGNORE)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.cfg.n_ctx:
            raise ValueError(f"n_ctx is {self.cfg.n_ctx}")
        q = self.project(self.W_query, x)
        k = self.project(self.W_key, x)
        v = self.project(self.W_value, x)

        attn_scores = t.einsum("bqnh,bknh->bnqk", q, k) / self.cfg.d_head**0.5
        if self.causal:
            attn_scores = self.apply_causal_mask(attn_scores)
        attn_pattern = self.hook_pattern(self.pattern_dropout(attn_scores.softmax(-1)))
        z = t.einsum("bnqk,bknh->bqnh", attn_pattern, v)

        # out_proj, per head and summed
        W_O = self.out_proj.weight.unflatten(1, (self.cfg.n_heads, self.cfg.d_head))
        return t.einsum("bqnh,mnh->bqm", z, W_O) + self.out_proj.bias
