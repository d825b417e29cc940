# mistake: trained
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    pe = torch.zeros(context_length, d_model)
    pos = torch.arange(context_length).unsqueeze(1).float()
    div = base ** (torch.arange(0, d_model, 2).float() / d_model)
    pe[:, 0::2] = torch.sin(pos / div)
    pe[:, 1::2] = torch.cos(pos / div[: d_model // 2])
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.embedding = nn.Embedding.from_pretrained(sinusoidal(context_length, d_model), freeze=False)

    def forward(self, x):
        n = x.shape[1]
        if n > self.embedding.num_embeddings:
            raise ValueError("too long")
        return self.dropout(x + self.embedding(torch.arange(n, device=x.device)))


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
