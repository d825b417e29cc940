# deviates: own helper named scaled_dot_product (a name the statement lists); fill -9e15; imports numpy, seaborn and matplotlib at the top
import math
import os

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn as nn
import torch.nn.functional as F

sns.reset_orig()
# Path to the folder where the pretrained models are saved
CHECKPOINT_PATH = os.environ.get("PATH_CHECKPOINT", "saved_models/Tutorial6/")


def scaled_dot_product(q, k, v, mask=None, drop=None):
    d_k = q.size()[-1]
    attn_logits = torch.matmul(q, k.transpose(-2, -1))
    attn_logits = attn_logits / math.sqrt(d_k)
    if mask is not None:
        attn_logits = attn_logits.masked_fill(mask == 0, -9e15)
    attention = F.softmax(attn_logits, dim=-1)
    if drop is not None:
        attention = drop(attention)
    values = torch.matmul(attention, v)
    return values, attention


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)
        allowed = np.tril(np.ones((context_length, context_length), dtype=np.uint8))
        self.register_buffer("mask", torch.tensor(allowed.tolist()))

    def forward(self, x, return_attention=False):
        batch_size, seq_length, _ = x.size()
        if seq_length > self.mask.size(0):
            raise ValueError("sequence too long")
        values, attention = scaled_dot_product(
            self.W_query(x), self.W_key(x), self.W_value(x),
            mask=self.mask[:seq_length, :seq_length], drop=self.drop,
        )
        if return_attention:
            return values, attention
        return values


def plot_attention_maps(attn_maps):
    fig, ax = plt.subplots()
    ax.imshow(attn_maps[0].detach().tolist(), origin="lower", vmin=0)
    plt.show()
