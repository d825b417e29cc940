"""Random inputs for tests: the same for the same seed, on every platform."""

from __future__ import annotations

import torch
from torch import Tensor


class Rng:
    """Random inputs of one test, drawn from that test's seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed)

    def randn(self, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """Return standard normal values of shape `shape`."""
        return torch.randn(shape, dtype=torch.float64, generator=self.generator).to(dtype)

    def rand(self, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """Return uniform values in [0, 1) of shape `shape`."""
        return torch.rand(shape, dtype=torch.float64, generator=self.generator).to(dtype)

    def randint(self, low: int, high: int, *shape: int) -> Tensor:
        """Return integers in [low, high) of shape `shape`, int64."""
        return torch.randint(low, high, shape, generator=self.generator)

    def permutation(self, n: int) -> Tensor:
        """Return the numbers 0 … n-1 in random order, never in ascending order."""
        while True:
            order = torch.randperm(n, generator=self.generator)
            if n < 2 or not torch.equal(order, torch.arange(n)):
                return order
