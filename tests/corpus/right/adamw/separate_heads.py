# right: a helper for each part
import math
from typing import Any

import torch
from torch import Tensor, nn


class Moments:
    """What one parameter remembers, kept as plain tensors in the optimizer's state."""

    def __init__(self, state, param):
        self.state = state
        if "exp_avg" not in state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(param, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(param, memory_format=torch.preserve_format)

    def update(self, grad, beta1, beta2):
        self.state["step"] += 1
        self.state["exp_avg"].lerp_(grad, 1 - beta1)
        self.state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)

    def direction(self, beta1, beta2, eps):
        t = self.state["step"]
        mean = self.state["exp_avg"] / (1 - beta1**t)
        square = self.state["exp_avg_sq"] / (1 - beta2**t)
        return mean / (square.sqrt() + eps)


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def _step_one(self, param, group):
        beta1, beta2 = group["betas"]
        moments = Moments(self.state[param], param)
        moments.update(param.grad, beta1, beta2)
        shrink = 1 - group["lr"] * group["weight_decay"]
        move = group["lr"] * moments.direction(beta1, beta2, group["eps"])
        param.data = param.data * shrink - move

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    self._step_one(param, group)
        return loss


def _warm(step, peak, warmup):
    return peak * step / warmup


def _cool(share, peak, floor):
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * share))


def learning_rate(step, peak, warmup, total, floor=0.0):
    if step <= warmup:
        return _warm(step, peak, warmup)
    share = min(1.0, (step - warmup) / (total - warmup))
    return _cool(share, peak, floor)


def clip_gradients(params, max_norm):
    params = [p for p in params if p.grad is not None]
    squares = 0.0
    for p in params:
        squares = squares + p.grad.detach().pow(2).sum()
    norm = squares**0.5
    for p in params:
        if norm > max_norm:
            p.grad = p.grad * (max_norm / norm)
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
