# right: the corrections folded into the rate
import math
from typing import Any

import torch
from torch import Tensor, nn


class AdamW(torch.optim.Optimizer):
    """The corrections are folded into the step's size, as the paper's last remark on efficiency does."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def step(self, closure=None):
        loss = None
        if closure is not None:
            loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                b1, b2 = group["betas"]
                for p in filter(lambda q: q.grad is not None, group["params"]):
                    state = self.state[p]
                    if "count" not in state:
                        state.update(count=0, first=torch.zeros_like(p), second=torch.zeros_like(p))
                    state["count"] += 1
                    c1 = 1 - b1 ** state["count"]
                    c2 = math.sqrt(1 - b2 ** state["count"])
                    state["first"].mul_(b1).add_(p.grad, alpha=1 - b1)
                    state["second"].mul_(b2).add_(p.grad.square(), alpha=1 - b2)
                    # v-hat's root is root(v)/c2, eps stays outside of the correction
                    root = state["second"].sqrt().div_(c2).add_(group["eps"])
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.addcdiv_(state["first"], root, value=-group["lr"] / c1)
        return loss


def learning_rate(step, peak, warmup, total, floor=0.0):
    if step < warmup:
        return peak * step / warmup
    angle = math.pi * min(step - warmup, total - warmup) / max(total - warmup, 1)
    return peak * (weight := 0.5 + 0.5 * math.cos(angle)) + floor * (1 - weight)


def clip_gradients(params, max_norm):
    grads = []
    for p in params:
        if p.grad is not None:
            grads.append(p.grad)
    total = math.sqrt(sum(float((g.double() ** 2).sum()) for g in grads))
    if total > max_norm:
        for g in grads:
            g.div_(total / max_norm)
    return torch.tensor(total)


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
