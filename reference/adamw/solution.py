"""Reference solution: AdamW, its learning rates, and the clipping of gradients."""

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
        # --- solution
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)
        # --- end

    @torch.no_grad()
    def step(self) -> None:
        """Take a step with the gradients of the parameters."""
        # --- solution
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["t"] += 1
                m = state["m"].lerp_(p.grad, 1 - beta1)  # the shape of p
                v = state["v"].lerp_(p.grad.square(), 1 - beta2)  # the shape of p
                m_hat = m / (1 - beta1 ** state["t"])  # the shape of p
                v_hat = v / (1 - beta2 ** state["t"])  # the shape of p
                p.mul_(1 - lr * group["weight_decay"])
                p.sub_(lr * m_hat / (v_hat.sqrt() + group["eps"]))
        # --- end


def learning_rate(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """Return the rate of step 1 to `total`: a line up to `peak`, then a cosine down to `floor`."""
    # --- solution
    if step <= warmup:
        return peak * step / warmup
    progress = (step - warmup) / (total - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2
    # --- end


def clip_gradients(params: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Return the norm of all gradients together; scale them down to `max_norm` if it is larger."""
    # --- solution
    gradients = [p.grad for p in params if p.grad is not None]
    if not gradients:
        return torch.zeros(())  # ()
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()  # ()
    if norm > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / norm)
    return norm
    # --- end


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
