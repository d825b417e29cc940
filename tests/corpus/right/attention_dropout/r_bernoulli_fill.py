# 以概率 rate 把权重设为 0,其余的除以 1 - rate
import torch
from torch import Tensor


def _check(rate: float) -> float:
    if rate < 0 or rate > 1 or rate != rate:
        raise ValueError("rate 必须在 0 和 1 之间")
    return float(rate)


def _lost(shape: torch.Size, rate: float, device: torch.device) -> Tensor:
    """每个位置各自抽签:True 表示丢弃"""
    return torch.empty(shape, device=device).bernoulli_(rate).bool()


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    rate = _check(rate)
    if training:
        kept = 1.0 - rate
        out = weights.masked_fill(_lost(weights.shape, rate, weights.device), 0)
        return out / kept if kept > 0 else out
    return weights.clone()
