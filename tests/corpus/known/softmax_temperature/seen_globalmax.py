# mistake: one_global_maximum
# seen: manassharma07/crysx_nn issue 7: the largest score of all rows together is subtracted instead of that of each row, so rows far below it underflow to 0 / 0.
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("only temperatures above 0")
    scaled = scores / temperature
    largest = scaled.detach().max()
    powers = (scaled - largest).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


def entropy(weights: Tensor) -> Tensor:
    return -(weights * torch.where(weights > 0, weights, 1.0).log()).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    wide = torch.promote_types(queries.dtype, torch.float32)
    products = (queries.to(wide)[..., None, :] @ keys.to(wide)[..., :, None])[..., 0, 0]
    deviation = products - products.mean(dim=-1, keepdim=True)
    return (deviation * deviation).mean(dim=-1).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores.div(d_key**0.5)
