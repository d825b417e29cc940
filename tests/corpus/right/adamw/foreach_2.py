# right: The lists of a group are stepped at once with torch._foreach functions; t is kept as an int for each parameter.
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class AdamW(torch.optim.Optimizer):
    def __init__(self, params: Any, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01) -> None:
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay})

    def _state(self, p):
        if p not in self.state:
            self.state[p] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
        self.state[p]["t"] += 1
        return self.state[p]

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            ps = [p for p in group["params"] if p.grad is not None]
            if not ps:
                continue
            gs = [p.grad for p in ps]
            states = [self._state(p) for p in ps]
            ms, vs = [s["m"] for s in states], [s["v"] for s in states]
            b1, b2 = group["betas"]
            torch._foreach_mul_(ms, b1)
            torch._foreach_add_(ms, gs, alpha=1 - b1)
            torch._foreach_mul_(vs, b2)
            torch._foreach_addcmul_(vs, gs, gs, value=1 - b2)
            roots = torch._foreach_sqrt(vs)
            torch._foreach_div_(roots, [math.sqrt(1 - b2 ** s["t"]) for s in states])
            torch._foreach_add_(roots, group["eps"])
            steps = torch._foreach_div(ms, roots)
            torch._foreach_mul_(steps, [group["lr"] / (1 - b1 ** s["t"]) for s in states])
            torch._foreach_mul_(ps, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_sub_(ps, steps)


def learning_rate(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    return (
        step / warmup * peak
        if warmup and step <= warmup
        else (peak + floor) / 2 + (peak - floor) / 2 * math.cos(math.pi * (step - warmup) / (total - warmup))
    )


def clip_gradients(params: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    gradients = [p.grad for p in list(params) if p.grad is not None]
    norm = torch.tensor([g.double().norm() for g in gradients], dtype=torch.float64).norm()
    factor = max_norm / norm if norm > max_norm else 1.0
    if factor != 1.0:
        for g in gradients:
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
