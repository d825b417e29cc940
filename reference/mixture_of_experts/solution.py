"""Reference solution: a mixture of experts without a capacity."""

import torch
from swiglu import SwiGLU
from torch import Tensor, nn
from torch.nn import functional as F


def route(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """Return the gates and the indices of the chosen experts, (..., top_k) each.

    logits are (..., num_experts). Raises ValueError for a top_k outside 1 ... num_experts.
    """
    # --- solution
    if not 1 <= top_k <= logits.shape[-1]:
        raise ValueError(f"top_k is {top_k}, where there are {logits.shape[-1]} experts")
    largest, experts = logits.topk(top_k, dim=-1)  # (..., top_k) each
    gates = torch.softmax(largest, dim=-1)  # (..., top_k)
    return gates, experts
    # --- end


def load_balance_loss(logits: Tensor, top_k: int) -> Tensor:
    """Return num_experts times the sum of f * P, of logits (..., num_experts); 1 if balanced."""
    # --- solution
    num_experts = logits.shape[-1]
    rows = logits.reshape(-1, num_experts)  # (n, num_experts)
    _, experts = route(rows, top_k)  # (n, top_k)
    wide = rows.to(torch.promote_types(rows.dtype, torch.float32))  # (n, num_experts)
    probabilities = torch.softmax(wide, dim=-1)  # (n, num_experts)
    choices = F.one_hot(experts, num_experts).to(probabilities)  # (n, top_k, num_experts)
    f = choices.mean(dim=(0, 1))  # (num_experts,)
    P = probabilities.mean(dim=0)  # (num_experts,)
    return (num_experts * (f * P).sum()).to(logits.dtype)  # ()
    # --- end


class MixtureOfExperts(nn.Module):
    """Feed-forward networks of which each token uses the top_k that a router chooses."""

    def __init__(self, d_model: int, d_ff: int, num_experts: int, top_k: int) -> None:
        super().__init__()
        # --- solution
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList([SwiGLU(d_model, d_ff) for _ in range(num_experts)])
        self.top_k = top_k
        # --- end

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map x (..., d_model) to an output of the same shape, and the loss of all tokens."""
        # --- solution
        rows = x.reshape(-1, x.shape[-1])  # (n, d_model)
        logits = self.router(rows)  # (n, num_experts)
        gates, chosen = route(logits, self.top_k)  # (n, top_k) each
        output = torch.zeros_like(rows)  # (n, d_model)
        for number, expert in enumerate(self.experts):
            tokens, places = (chosen == number).nonzero(as_tuple=True)  # (n_chosen,) each
            weights = gates[tokens, places].unsqueeze(-1)  # (n_chosen, 1)
            share = weights * expert(rows[tokens])  # (n_chosen, d_model)
            output = output.index_add(0, tokens, share)  # (n, d_model)
        return output.view(x.shape), load_balance_loss(logits, self.top_k)  # (..., d_model), ()
        # --- end
