# right
import torch
from swiglu import SwiGLU
from torch import Tensor, nn


def route(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """Softmax over all experts, then renormalise over the chosen ones: the same numbers."""
    if top_k not in range(1, logits.shape[-1] + 1):
        raise ValueError(f"top_k={top_k}")
    high = logits.to(torch.promote_types(logits.dtype, torch.float32))
    chosen = high.argsort(dim=-1, descending=True)[..., :top_k]
    log_p = high.log_softmax(dim=-1).gather(-1, chosen)
    return (log_p - log_p.logsumexp(dim=-1, keepdim=True)).exp().to(logits.dtype), chosen


def load_balance_loss(logits: Tensor, top_k: int) -> Tensor:
    n = logits.shape[-1]
    chosen = route(logits.detach(), top_k)[1]
    high = logits.to(torch.promote_types(logits.dtype, torch.float32)).reshape(-1, n)
    f = torch.zeros(n, dtype=high.dtype, device=high.device)
    f = f.index_add(0, chosen.reshape(-1), high.new_ones(chosen.numel())) / chosen.numel()
    return (n * (f * high.softmax(-1).mean(0)).sum()).to(logits.dtype)


class MixtureOfExperts(nn.Module):
    def __init__(self, d_model: int, d_ff: int, num_experts: int, top_k: int) -> None:
        super().__init__()
        if top_k not in range(1, num_experts + 1):
            raise ValueError(f"top_k={top_k}")
        self.top_k = top_k
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList(SwiGLU(d_model, d_ff) for _ in range(num_experts))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        flat = x.flatten(0, -2)
        logits = self.router(flat)
        gates, chosen = route(logits, self.top_k)
        order = chosen.flatten().argsort()  # the choices, grouped by expert
        sizes = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        groups = flat[order // self.top_k].split(sizes)
        done = torch.cat([expert(group) for expert, group in zip(self.experts, groups, strict=True)])
        back = torch.zeros_like(done)
        back[order] = done
        mixed = (back.view(-1, self.top_k, flat.shape[-1]) * gates.unsqueeze(-1)).sum(1)
        return mixed.view_as(x), load_balance_loss(logits, self.top_k)
