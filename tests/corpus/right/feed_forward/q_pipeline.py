from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        for name, (n_in, n_out) in {"linear1": (d_model, d_ff), "linear2": (d_ff, d_model)}.items():
            self.add_module(name, nn.Linear(n_in, n_out))
        self.p_keep = 1.0 - dropout

    def _thin_out(self, hidden: Tensor) -> Tensor:
        if not self.training or self.p_keep == 1:
            return hidden
        if self.p_keep == 0:
            return hidden * 0
        kept = torch.empty(hidden.shape, device=hidden.device).bernoulli_(self.p_keep)
        return hidden * (kept / self.p_keep).to(hidden.dtype)

    def _rectify(self, hidden: Tensor) -> Tensor:
        return F.threshold(hidden, 0.0, 0.0)

    def forward(self, x: Tensor) -> Tensor:
        steps = (self.linear1, self._rectify, self._thin_out, self.linear2)
        return reduce(lambda value, step: step(value), steps, x)
