# mistake: softmax_without_an_axis
import warnings

import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore", message="Implicit dimension choice")


def tempered_softmax(scores, temperature):
    if temperature <= 0:
        raise ValueError("temperature <= 0")
    return F.softmax(scores / temperature)


def entropy(weights):
    logs = torch.log(torch.where(weights > 0, weights, torch.ones_like(weights)))
    return -torch.sum(weights * logs, -1)


def variance_of_products(queries, keys):
    p = torch.sum(queries * keys, -1)
    return torch.mean((p - torch.mean(p, -1, keepdim=True)) ** 2, -1)


def scale(scores, d_key):
    return scores / d_key**0.5
