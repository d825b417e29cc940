# right
import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

import feed_forward
import layer_norm


def attend(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None, drop: nn.Module) -> Tensor:
    logits = torch.matmul(q.div(q.size(-1) ** 0.5), k.transpose(2, 3))
    if hidden is None:
        return torch.matmul(drop(softmax(logits, dim=-1)), v)
    dead = hidden.all(-1, keepdim=True)
    logits = logits.masked_fill(hidden, -torch.inf).masked_fill(dead, 0.0)
    return torch.matmul(drop(softmax(logits, dim=-1).masked_fill(dead, 0.0)), v)


class CrossAttention(nn.Module):
    def __init__(self, d_query: int, d_context: int, d_out: int, dropout: float, num_heads: int, causal: bool = False):
        super().__init__()
        d_head, rest = divmod(d_out, num_heads)
        if rest != 0:
            raise ValueError(f"{d_out} features cannot be split among {num_heads} heads")
        self.shape = (num_heads, d_head)
        self.causal = causal
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        for name, width in {"W_query": d_query, "W_key": d_context, "W_value": d_context}.items():
            self.add_module(name, nn.Linear(width, d_out, bias=False))

    def forward(self, x: Tensor, context: Tensor | None = None, key_mask: Tensor | None = None) -> Tensor:
        if self.causal and context is not None:
            raise RuntimeError("causal layers take no context")
        keys = x if context is None else context
        hidden = None
        if key_mask is not None:
            padding = key_mask.logical_not()
            keys = keys.masked_fill(padding.unsqueeze(2), 0.0)
            hidden = padding[:, None, None, :].expand(-1, 1, x.size(1), -1)
        if self.causal:
            i = torch.arange(x.size(1), device=x.device)
            future = i[None, :] > i[:, None]
            hidden = future[None, None] if hidden is None else hidden.logical_or(future)
        q, k, v = self.W_query(x), self.W_key(keys), self.W_value(keys)
        q, k, v = (t.unflatten(2, self.shape).movedim(2, 1) for t in (q, k, v))
        return self.out_proj(attend(q, k, v, hidden, self.dropout).movedim(1, 2).flatten(start_dim=2))


class _Sublayers(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float, norms: int):
        super().__init__()
        self.feed_forward = feed_forward.FeedForward(d_model, d_ff, dropout)
        self.drop = nn.Dropout(dropout)
        for i in range(1, norms + 1):
            setattr(self, f"norm{i}", layer_norm.LayerNorm(d_model))


class EncoderBlock(_Sublayers):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0):
        super().__init__(d_model, d_ff, dropout, 2)
        self.attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads)

    def forward(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        after_attention = self.drop(self.attention(self.norm1(x), None, key_mask)) + x
        return self.drop(self.feed_forward(self.norm2(after_attention))) + after_attention


class DecoderBlock(_Sublayers):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0):
        super().__init__(d_model, d_ff, dropout, 3)
        self.self_attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads, True)
        self.cross_attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads, False)

    def forward(self, x: Tensor, memory: Tensor, key_mask: Tensor | None = None, memory_mask: Tensor | None = None) -> Tensor:
        first = self.drop(self.self_attention(self.norm1(x), None, key_mask)) + x
        second = self.drop(self.cross_attention(self.norm2(first), memory, memory_mask)) + first
        return self.drop(self.feed_forward(self.norm3(second))) + second
