# right: torch's functions for lists of tensors
from math import cos, pi
from typing import Any

import torch
from torch import Tensor, nn


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        if lr < 0 or eps < 0 or weight_decay < 0:
            raise ValueError("negative settings")
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            grads = [p.grad for p in params]
            for p in params:
                if p not in self.state:
                    self.state[p] = {"step": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
                self.state[p]["step"] += 1
            b1, b2 = group["betas"]
            ms = [self.state[p]["m"] for p in params]
            vs = [self.state[p]["v"] for p in params]
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_lerp_(ms, grads, 1 - b1)
            torch._foreach_mul_(vs, b2)
            torch._foreach_addcmul_(vs, grads, grads, 1 - b2)
            for p, m, v in zip(params, ms, vs):
                t = self.state[p]["step"]
                p -= group["lr"] * (m / (1 - b1**t)) / ((v / (1 - b2**t)) ** 0.5 + group["eps"])
        return loss


def learning_rate(step, peak, warmup, total, floor=0.0):
    progress = (step - warmup) / (total - warmup) if total > warmup else 1.0
    if step < warmup:
        return peak * (step / warmup)
    progress = max(0.0, min(1.0, progress))
    return peak - (peak - floor) * (1 - cos(pi * progress)) / 2


def clip_gradients(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    norms = torch._foreach_norm(grads) if grads else []
    norm = torch.linalg.vector_norm(torch.stack(norms)) if grads else torch.tensor(0.0)
    factor = torch.clamp(max_norm / norm, max=1.0).nan_to_num(1.0)
    for g in grads:
        g *= factor
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
