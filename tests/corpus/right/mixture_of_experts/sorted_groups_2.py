# right: All choices are sorted by expert and split into groups; results go back through the inverse order, without index_add.
import torch
from swiglu import SwiGLU
from torch import Tensor, nn


def route(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    if not 1 <= top_k <= logits.size(-1):
        raise ValueError(f"top_k is {top_k}")
    order = logits.argsort(dim=-1, descending=True)[..., :top_k]
    return logits.gather(-1, order).softmax(-1), order


def load_balance_loss(logits: Tensor, top_k: int) -> Tensor:
    _, experts = route(logits, top_k)
    size = logits.size(-1)
    wide = logits.flatten(0, -2) if logits.dtype == torch.float64 else logits.flatten(0, -2).float()
    f = torch.bincount(experts.flatten(), minlength=size) / experts.numel()
    return (size * (f.to(wide.dtype) @ wide.softmax(-1).mean(0))).to(logits.dtype)


class MixtureOfExperts(nn.Module):
    def __init__(self, d_model: int, d_ff: int, num_experts: int, top_k: int) -> None:
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList(SwiGLU(d_model, d_ff) for _ in range(num_experts))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x.reshape(-1, x.size(-1))
        logits = self.router(rows)
        gates, experts = route(logits, self.top_k)
        order = experts.flatten().argsort()
        counts = torch.bincount(experts.flatten(), minlength=len(self.experts)).tolist()
        groups = rows[order // self.top_k].split(counts)
        done = torch.cat([expert(group) for expert, group in zip(self.experts, groups) if len(group)])
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=x.device)
        per_choice = done[back].view(len(rows), self.top_k, -1)
        output = torch.einsum("nk,nkd->nd", gates, per_choice)
        return output.view(x.shape), load_balance_loss(logits, self.top_k)
