"""Softmax and temperature, with the logarithm clamped and the variance in two passes."""

import math

import torch
import torch.nn.functional as F


def tempered_softmax(scores, temperature):
    assert temperature > 0, "the temperature must be above 0"
    return F.softmax(scores * (1.0 / temperature), dim=-1)


def entropy(weights):
    terms = weights * torch.log(
        weights.clamp(min=1e-30 if weights.dtype != torch.float16 else 1e-7)
    )
    return terms.sum(-1).neg()


def variance_of_products(queries, keys):
    products = torch.sum(queries * keys, -1)
    mean = torch.mean(products, -1, keepdim=True)
    return torch.mean(torch.square(products - mean), -1)


def scale(scores, d_key):
    return scores / math.sqrt(d_key)
