# exercise: transformer_block
import torch
import torch.nn as nn

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length,
                 dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        cfg = {
            "emb_dim": d_model,
            "n_heads": num_heads,
            "context_length": context_length,
            "drop_rate": dropout,
            "qkv_bias": False,
        }
        self.attention = MultiHeadAttention(
            d_in=cfg["emb_dim"],
            d_out=cfg["emb_dim"],
            context_length=cfg["context_length"],
            num_heads=cfg["n_heads"],
            dropout=cfg["drop_rate"],
            qkv_bias=cfg["qkv_bias"],
            causal=causal)
        self.feed_forward = FeedForward(cfg["emb_dim"], d_ff, cfg["drop_rate"])
        self.norm1 = LayerNorm(cfg["emb_dim"])
        self.norm2 = LayerNorm(cfg["emb_dim"])
        self.drop_shortcut = nn.Dropout(cfg["drop_rate"])
        self.norm_first = norm_first

    def forward(self, x):
        # Shortcut connection for attention block
        shortcut = x
        if self.norm_first:
            x = self.norm1(x)
        x = self.attention(x)  # Shape [batch_size, num_tokens, emb_size]
        x = self.drop_shortcut(x)
        x = x + shortcut  # Add the original input back
        if not self.norm_first:
            x = self.norm1(x)

        # Shortcut connection for feed forward block
        shortcut = x
        if self.norm_first:
            x = self.norm2(x)
        x = self.feed_forward(x)
        x = self.drop_shortcut(x)
        x = x + shortcut  # Add the original input back
        if not self.norm_first:
            x = self.norm2(x)

        return x


if __name__ == "__main__":
    torch.manual_seed(123)
    x = torch.rand(2, 4, 768)
    block = TransformerBlock(768, 12, 4 * 768, 1024, dropout=0.1)
    print("Input shape:", x.shape)
    print("Output shape:", block(x).shape)
