# right: in few lines
import math
from typing import Any

import torch
from torch import Tensor, nn


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure and torch.enable_grad()(closure)()
        for o in self.param_groups:
            a, b = o["betas"]
            for p in o["params"]:
                if (g := p.grad) is None:
                    continue
                s = self.state[p]
                s["t"] = t = s.get("t", 0) + 1
                s["m"] = m = a * s.get("m", 0 * p) + (1 - a) * g
                s["v"] = v = b * s.get("v", 0 * p) + (1 - b) * g * g
                h = (m / (1 - a**t)) / ((v / (1 - b**t)).sqrt() + o["eps"])
                p.copy_(p * (1 - o["lr"] * o["weight_decay"]) - o["lr"] * h)
        return loss


def learning_rate(step, peak, warmup, total, floor=0.0):
    x = min(1, max(0, step - warmup) / max(1, total - warmup))
    return peak * step / warmup if step < warmup else floor + (peak - floor) * (1 + math.cos(math.pi * x)) / 2


def clip_gradients(params, max_norm):
    gs = [p.grad for p in params if p.grad is not None]
    n = torch.stack([g.norm() for g in gs]).norm() if gs else torch.tensor(0.0)
    [g.mul_(min(1.0, max_norm / n.item())) for g in gs if n > 0]
    return n


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
