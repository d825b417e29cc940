# exercise: transformer_block
import torch
from torch import nn

try:
    from .feed_forward import FeedForward
    from .layer_norm import LayerNorm
    from .multi_head_attention import MultiHeadAttention
except ImportError:
    from feed_forward import FeedForward
    from layer_norm import LayerNorm
    from multi_head_attention import MultiHeadAttention


class Block(nn.Module):
    """ViT block with the hooks for stochastic depth, which stays off."""

    def __init__(self, dim, num_heads, mlp_hidden, max_len, proj_drop=0., drop_path=0., causal=True):
        super().__init__()
        self.attention = MultiHeadAttention(dim, dim, max_len, proj_drop, num_heads, causal=causal)
        self.feed_forward = FeedForward(dim, mlp_hidden, proj_drop)
        self.norm1 = LayerNorm(dim)
        self.norm2 = LayerNorm(dim)
        self.proj_drop = nn.Dropout(proj_drop)
        self.drop_path1 = nn.Identity() if drop_path == 0. else None
        self.drop_path2 = nn.Identity() if drop_path == 0. else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.drop_path1(self.proj_drop(self.attention(self.norm1(x))))
        x = x + self.drop_path2(self.proj_drop(self.feed_forward(self.norm2(x))))
        return x


class ResPostBlock(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm1(torch.add(x, self.drop_path1(self.proj_drop(self.attention(x)))))
        x = self.norm2(torch.add(x, self.drop_path2(self.proj_drop(self.feed_forward(x)))))
        return x


class TransformerBlock(Block):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__(d_model, num_heads, d_ff, context_length, proj_drop=dropout, causal=causal)
        self.block_cls = Block if norm_first else ResPostBlock

    def forward(self, x):
        return self.block_cls.forward(self, x)
