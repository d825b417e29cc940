# right: a class with static methods on rows flattened to two axes by reshape, torch.std_mean-free, float32/64 inside
import torch
from torch import Tensor


class _Rows:
    """Static helpers; every function flattens its leading axes to one and restores them."""

    @staticmethod
    def precise(x: Tensor) -> Tensor:
        return x.to(torch.float64)

    @staticmethod
    def softmax(rows: Tensor, temperature: float) -> Tensor:
        best, _ = torch.max(rows, dim=1, keepdim=True)
        return torch.nn.functional.softmax((rows - best) / temperature, dim=1)

    @staticmethod
    def information(rows: Tensor) -> Tensor:
        logs = torch.where(rows == 0, 1.0, rows).log()
        return torch.bmm(rows.unsqueeze(1), logs.unsqueeze(2)).reshape(-1).neg()


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError(f"temperature {temperature!r} must be above 0")
    rows = _Rows.precise(scores).reshape(-1, scores.shape[-1])
    return _Rows.softmax(rows, temperature).reshape(scores.shape).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    rows = _Rows.precise(weights).reshape(-1, weights.shape[-1])
    return _Rows.information(rows).reshape(weights.shape[:-1]).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    *lead, n, d_key = queries.shape
    q = _Rows.precise(queries).reshape(-1, 1, d_key)
    k = _Rows.precise(keys).reshape(-1, d_key, 1)
    table = torch.bmm(q, k).reshape(*lead, n)
    ones = table.new_ones(n)
    mean = table @ ones / n
    return ((table - mean.unsqueeze(-1)) ** 2 @ ones / n).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    root = torch.tensor(float(d_key), dtype=torch.float64, device=scores.device).sqrt()
    return (_Rows.precise(scores) / root).to(scores.dtype)
