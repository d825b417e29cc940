# right: own names in the state
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer


class AdamW(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        Optimizer.__init__(self, params, locals_to_defaults(lr, betas, eps, weight_decay))

    def step(self, closure=None):
        value = None if closure is None else closure()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                memory = self.state[param]
                grad = param.grad.detach()
                t = memory.get("t", 0) + 1
                decay_m, decay_v = group["betas"]
                old_m = memory.get("m", torch.zeros_like(grad))
                old_v = memory.get("v", torch.zeros_like(grad))
                new_m = decay_m * old_m + (1.0 - decay_m) * grad
                new_v = decay_v * old_v + (1.0 - decay_v) * grad.pow(2)
                memory["t"], memory["m"], memory["v"] = t, new_m, new_v
                unbiased_m = new_m / (1.0 - math.pow(decay_m, t))
                unbiased_v = new_v / (1.0 - math.pow(decay_v, t))
                param.data.mul_(1.0 - group["lr"] * group["weight_decay"])
                param.data.sub_(group["lr"] * unbiased_m / (unbiased_v.sqrt() + group["eps"]))
        return value


def locals_to_defaults(lr, betas, eps, weight_decay):
    return {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}


def learning_rate(step, peak, warmup, total, floor=0.0):
    if step <= warmup and warmup > 0:
        rate = peak * step / warmup
    elif step < total:
        done = (step - warmup) / (total - warmup)
        rate = floor + (peak - floor) * math.cos(math.pi * done / 2) ** 2
    else:
        rate = floor
    return rate


def clip_gradients(params, max_norm):
    params = list(params)
    norm = sum((p.grad.double().square().sum() for p in params if p.grad is not None), torch.zeros((), dtype=torch.float64)).sqrt()
    if norm.item() > max_norm:
        for p in params:
            if p.grad is not None:
                p.grad.mul_(max_norm / norm.item())
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
