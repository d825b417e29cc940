# right: The formulas one by one, with state filled by update, t as a tensor, moments replaced and not changed in place.
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class AdamW(torch.optim.Optimizer):
    """Adam with decoupled weight decay."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self) -> None:
        with_gradient = (
            (group, p) for group in self.param_groups for p in group["params"] if p.grad is not None
        )
        for options, p in with_gradient:
            memory = self.state[p]
            lr, (b1, b2) = options["lr"], options["betas"]
            t = memory.get("step", torch.zeros(())) + 1
            m = b1 * memory.get("m", 0.0) + (1 - b1) * p.grad
            v = b2 * memory.get("v", 0.0) + (1 - b2) * p.grad**2
            m_hat = m / (1 - b1 ** t.item())
            v_hat = v / (1 - b2 ** t.item())
            decayed = p * (1 - lr * options["weight_decay"])
            p.copy_(decayed - lr * m_hat / (v_hat.sqrt() + options["eps"]))
            memory.update(step=t, m=m, v=v)


def learning_rate(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    if step < warmup:
        return peak * (step / warmup)
    half_wave = math.pi * (step - warmup) / max(total - warmup, 1)
    return floor + (peak - floor) * math.cos(half_wave / 2) ** 2


def clip_gradients(params: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    owners = [p for p in params if p.grad is not None]
    squares = [p.grad.to(torch.promote_types(p.grad.dtype, torch.float32)).square().sum() for p in owners]
    norm = sum(squares, start=torch.zeros(())).sqrt()
    if norm.item() > max_norm:
        for p in owners:
            p.grad = p.grad * (max_norm / norm).to(p.grad.dtype)
    return norm


def run_steps(
    groups: list[dict[str, Any]],
    gradients: list[list[Any]],
    state: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[list[list[Tensor]], dict[str, Any]]:
    """Return the parameters after each step of an AdamW, and its state after the last one.

    groups     as AdamW takes them, such as [{"params": [p, q], "lr": 0.1}]; p and q are copied
    gradients  for each step, a gradient or None for each parameter
    state      returned by an earlier call, which this one goes on from
    """
    copies = [
        {**group, "params": [nn.Parameter(p.detach().clone()) for p in group["params"]]}
        for group in groups
    ]
    params = [p for group in copies for p in group["params"]]
    optimizer = AdamW(copies, **options)
    if state is not None:
        optimizer.load_state_dict(state)
    history = []
    for given in gradients:
        for p, gradient in zip(params, given, strict=True):
            p.grad = gradient
        optimizer.step()
        history.append([p.detach().clone() for p in params])
    return history, optimizer.state_dict()


def clipped(gradients: list[Any], max_norm: float) -> tuple[list[Any], float]:
    """Return copies of gradients after `clip_gradients`, and the norm that it returned."""
    params = []
    for gradient in gradients:
        params.append(nn.Parameter(torch.zeros(()) if gradient is None else gradient.clone()))
        params[-1].grad = None if gradient is None else gradient.clone()
    norm = clip_gradients((p for p in params), max_norm)
    return [p.grad for p in params], float(norm)
