# mistake: one_mean_for_the_batch
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("no such temperature")
    z = scores / temperature
    z = torch.exp(z - z.amax(dim=-1, keepdim=True))
    return z / z.sum(dim=-1, keepdim=True)


def entropy(weights: Tensor) -> Tensor:
    return -torch.special.xlogy(weights, torch.where(weights == 0, torch.ones_like(weights), weights)).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = torch.sum(queries * keys, dim=-1)
    mean = products.mean()
    return torch.mean((products - mean) ** 2, dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    root = torch.tensor(float(d_key)).sqrt().item()
    return scores / root
