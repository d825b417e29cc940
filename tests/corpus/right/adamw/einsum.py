# right: both moments in one tensor, updated by einsum
import math
from typing import Any

import torch
from torch import Tensor, nn


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if len(s) == 0:
                    # the two moments live in one tensor: row 0 the mean, row 1 the mean square
                    s["step"] = torch.zeros(())
                    s["moments"] = torch.zeros(2, *p.shape, dtype=p.dtype, device=p.device)
                s["step"] += 1
                t = int(s["step"])
                betas = torch.tensor([b1, b2], dtype=torch.float64)
                betas, rest = betas.to(p), (1 - betas).to(p)
                g = torch.stack([p.grad, torch.einsum("...,...->...", p.grad, p.grad)])
                s["moments"].copy_(
                    torch.einsum("k,k...->k...", betas, s["moments"])
                    + torch.einsum("k,k...->k...", rest, g)
                )
                # the corrections are computed in Python floats
                m = s["moments"][0] / (1 - b1**t)
                v = s["moments"][1] / (1 - b2**t)
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(m / (v.sqrt() + group["eps"]), alpha=-group["lr"])
        return loss


def learning_rate(step, peak, warmup, total, floor=0.0):
    if warmup and step < warmup:
        return peak * step / warmup
    if step >= total:
        return floor if total > warmup or step > total else peak
    return floor + (peak - floor) * (1 + math.cos(math.pi * (step - warmup) / (total - warmup))) / 2


def clip_gradients(params, max_norm):
    params = [params] if isinstance(params, torch.Tensor) else list(params)
    grads = [p.grad.detach() for p in params if p.grad is not None]
    if not grads:
        return torch.zeros(())
    flat = torch.cat([g.reshape(-1) for g in grads])
    norm = torch.einsum("i,i->", flat, flat).sqrt()
    scale = torch.clamp(max_norm / (norm + 1e-300 if norm.dtype == torch.float64 else norm + 1e-30), max=1.0)
    for g in grads:
        g.copy_(torch.einsum("...,->...", g, scale.to(g)))
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
