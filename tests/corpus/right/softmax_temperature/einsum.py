"""Softmax and temperature with exponentials and sums written as einsum."""

import torch


def tempered_softmax(scores, temperature):
    if not temperature > 0:
        raise ValueError("temperature must be positive")
    s = scores / temperature
    e = torch.exp(s - s.detach().amax(-1, keepdim=True))
    return torch.einsum("...k,...->...k", e, 1 / torch.einsum("...k->...", e))


def entropy(weights):
    safe = torch.where(weights == 0, torch.ones_like(weights), weights)
    return -torch.einsum("...k,...k->...", weights, torch.log(safe))


def variance_of_products(queries, keys):
    p = torch.einsum("...nd,...nd->...n", queries, keys)
    centred = p - p.mean(-1, keepdim=True)
    return torch.einsum("...n,...n->...", centred, centred) / p.shape[-1]


def scale(scores, d_key):
    return scores * d_key**-0.5
