"""Self-attention with tables that are filled, and sums in float32 or more."""

import torch


def at_least_float32(x):
    return x if x.dtype == torch.float64 else x.float()


def scores_by_loops(inputs):
    n, d = inputs.shape
    table = torch.zeros(n, n, dtype=inputs.dtype)
    for i in range(n):
        for j in range(n):
            for k in range(d):
                table[i, j] = table[i, j] + inputs[i, k] * inputs[j, k]
    return table


def scores_by_product(inputs):
    wide = at_least_float32(inputs)
    return torch.matmul(wide, wide.transpose(-1, -2)).to(inputs.dtype)


def normalise(scores):
    wide = at_least_float32(scores)
    return torch.div(wide, torch.sum(wide, dim=-1).unsqueeze(-1)).to(scores.dtype)


def softmax_naive(scores):
    e = torch.exp(at_least_float32(scores))
    return (e / e.sum(dim=-1, keepdim=True)).to(scores.dtype)


def softmax_stable(scores):
    top, _ = torch.max(scores, dim=-1, keepdim=True)
    return softmax_naive(scores - top)


def context_vectors(inputs):
    queries, keys, values = inputs, inputs, inputs
    weights = softmax_stable(queries.matmul(keys.transpose(-1, -2)))
    return weights.matmul(values)
