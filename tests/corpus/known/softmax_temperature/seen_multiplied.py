# mistake: multiplied_by_temperature
# seen: bowang-lab/BLEEP issue 5: the scores are multiplied by the temperature instead of divided by it (same at temperature 1).
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(f"the temperature must be positive, not {temperature}")
    return torch.softmax(scores * temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    safe = weights.masked_fill(weights == 0, 1.0)
    return -(weights * safe.log()).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    wide = torch.promote_types(queries.dtype, torch.float32)
    products = (queries.to(wide) * keys.to(wide)).sum(dim=-1)
    centred = products - products.mean(dim=-1, keepdim=True)
    return centred.square().mean(dim=-1).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
