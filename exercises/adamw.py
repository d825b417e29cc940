r"""# AdamW

A gradient says in which direction a parameter should move, but not how far.
AdamW keeps two running means for each number of each parameter, of its
gradients (m) and of their squares (v), and moves it by their ratio. Both begin
at 0, so the first means are too small; m_hat and v_hat correct that. Weight
decay shrinks the parameters apart from this, and does not enter the means.

    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient^2
    m_hat = m / (1 - beta1^t)
    v_hat = v / (1 - beta2^t)
    p = p * (1 - lr * weight_decay)
    p = p - lr * m_hat / (sqrt(v_hat) + eps)

t is 1 in the first step that the parameter takes, 2 in the next.

Write

    class AdamW(torch.optim.Optimizer)

    AdamW(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    step()    takes a step with the gradients p.grad, and changes p in place

    learning_rate(step, peak, warmup, total, floor=0.0)

    returns   a float for step 1, 2 ... total: peak * step / warmup up to step
              warmup, then half a wave of the cosine, from peak at step warmup
              down to floor at step total

    clip_gradients(params, max_norm)

    params    any iterable of parameters, such as model.parameters(), which
              can be read only once
    returns   the norm of all numbers of all gradients together, before the
              call. If it is above max_norm, every p.grad is multiplied by
              max_norm / norm, in place or not

Given below, and left as they are: run_steps and clipped. The tests call AdamW
and clip_gradients through them, because a gradient has no other way to them.

Requirements
  - torch's Optimizer does the rest: its __init__ takes params, a list of
    parameters or of groups (dicts such as {"params": [p], "lr": 0.1}), and the
    defaults of the options. self.param_groups has the options of each group;
    `step` reads them there, because a schedule may have changed them.
  - A parameter without a gradient stays as it is, and so do its m, v and t.
  - All that `step` has to remember is in self.state[p], so that an optimizer
    that loads state_dict() goes on as if it had never stopped.
  - Parameters keep their dtype, and gradients are not written into by `step`.
  - warmup may be 0: the first rate is then on the cosine.
  - clip_gradients changes no gradient if the norm is at most max_norm.
    Parameters without a gradient do not count; without any, the norm is 0.
  - torch's own Adams, schedulers and clip_grad functions are not allowed.

Example

    p = 1., lr = 0.1, weight_decay = 0.5, gradients 0.5, -0.5, 0.1

    t    m        v          m_hat    v_hat    p
    1    0.05     0.000250   0.5000   0.2500   0.8500
    2   -0.0050   0.000500  -0.0263   0.2500   0.8128
    3    0.0055   0.000509   0.0203   0.1699   0.7672

With peak 1, warmup 4, total 12 and floor 0.1, the rates of the steps
1, 4, 8, 10, 12 are 0.25, 1, 0.55, 0.2318, 0.1. The gradients [3.] and [4.] of
two parameters have the norm 5; clipped to 1, they are [0.6] and [0.8].

Write it by hand. These names of torch are not accepted here: optim*Adam,
optim*.adam, optim*lr_scheduler, optim.swa_utils, clip_grad, get_total_norm,
_fused_adam.

What is new: What stands between a gradient and a step: moments, their
correction, decay, a schedule and a limit.

From: Decoupled Weight Decay Regularization (2019)
"""

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
        raise NotImplementedError("fill in adamw")

    @torch.no_grad()
    def step(self) -> None:
        """Take a step with the gradients of the parameters."""
        raise NotImplementedError("fill in adamw")


def learning_rate(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """Return the rate of step 1 to `total`: a line up to `peak`, then a cosine down to `floor`."""
    raise NotImplementedError("fill in adamw")


def clip_gradients(params: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Return the norm of all gradients together; scale them down to `max_norm` if it is larger."""
    raise NotImplementedError("fill in adamw")


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
