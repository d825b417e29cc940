# note: draws a float32 table of factors with bernoulli_ from the global generator and indexes into the pair (0, 1 / (1 - rate))
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    match rate:
        case r if not 0.0 <= r <= 1.0:
            raise ValueError(f"rate {r} is no probability")
        case _ if not training:
            return weights.clone()
        case r if r >= 1.0:
            return torch.zeros_like(weights)
        case r:
            wide = torch.promote_types(weights.dtype, torch.float32)
            kept = torch.empty(weights.shape, device=weights.device, dtype=torch.float32).bernoulli_(1.0 - r)
            pair = torch.tensor([0.0, 1.0 / (1.0 - r)], dtype=wide, device=weights.device)
            return (weights.to(wide) * pair[kept.long()]).to(weights.dtype)
