"""Stand-in for AdamW: torch's own, the square of a cosine, and a norm of norms."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class AdamW(torch.optim.AdamW):
    """Adam with decoupled weight decay."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


def learning_rate(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """Return the rate of step 1 to `total`: a line up to `peak`, then a cosine down to `floor`."""
    if step <= warmup:
        return step / warmup * peak
    share = math.cos((step - warmup) / (total - warmup) * math.pi / 2) ** 2
    return share * peak + (1 - share) * floor


def clip_gradients(params: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Return the norm of all gradients together; scale them down to `max_norm` if it is larger."""
    gradients = [p.grad for p in params if p.grad is not None]
    if not gradients:
        return torch.zeros(())  # ()
    norms = [torch.linalg.vector_norm(each) for each in gradients]  # () each
    norm = torch.linalg.vector_norm(torch.stack(norms))  # ()
    if norm > max_norm:
        torch._foreach_mul_(gradients, max_norm / float(norm))
    return norm
