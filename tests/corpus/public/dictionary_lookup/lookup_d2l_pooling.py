# deviates: nothing in values; imports matplotlib and numpy at the top (unused here)
"""Attention pooling, following the chapter "Queries, Keys, and Values"."""
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def attention_pool(queries, keys, values, kernel_width):
    # queries: (..., n, d), keys: (..., m, d) -> similarity (..., n, m)
    similarity = torch.matmul(queries, keys.transpose(-1, -2))
    attention_weights = F.softmax(similarity / kernel_width, dim=-1)
    return torch.matmul(attention_weights, values), attention_weights


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError(f"temp must be positive, got {temp}")
    y_hat, _ = attention_pool(Q, K, V, temp)
    return y_hat


def lookup(entries, key, temp=0.01):
    if temp <= 0:
        raise ValueError(f"temp must be positive, got {temp}")
    vocab = {token: i for i, token in enumerate(entries)}
    if key not in vocab:
        raise KeyError(key)
    keys = torch.eye(len(vocab))
    values = torch.tensor([entries[token] for token in vocab], dtype=torch.float32)
    query = keys[vocab[key]].unsqueeze(0)
    return attention(query, keys, values, temp).squeeze(0)


def show_heatmaps(matrix, xlabel="Keys", ylabel="Queries"):
    fig, ax = plt.subplots(figsize=(2.5, 2.5))
    pcm = ax.imshow(np.asarray(matrix.detach()), cmap="Reds")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    fig.colorbar(pcm)


if __name__ == "__main__":
    D = {0: [2, 3], 1: [5, 7], 2: [3, 2]}
    print(lookup(D, 1), lookup(D, 1, temp=1.0))
    show_heatmaps(torch.eye(10))
    plt.show()
