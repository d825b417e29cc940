# mistake: any_top_k
import torch
from swiglu import SwiGLU
from torch import nn


def route(logits, top_k):
    if not 1 <= top_k <= logits.shape[-1]:
        raise ValueError("top_k")
    best, experts = logits.topk(top_k, dim=-1)
    return best.softmax(-1, dtype=torch.promote_types(best.dtype, torch.float32)).to(logits.dtype), experts


def load_balance_loss(logits, top_k):
    if not 1 <= top_k <= logits.shape[-1]:
        raise ValueError("top_k")
    n = logits.shape[-1]
    wide = logits.reshape(-1, n).to(torch.promote_types(logits.dtype, torch.float32))
    f = torch.bincount(wide.topk(top_k).indices.flatten(), minlength=n) / (len(wide) * top_k)
    return (n * f.to(wide) @ wide.softmax(-1).mean(0)).to(logits.dtype)


class MixtureOfExperts(nn.Module):
    def __init__(self, d_model, d_ff, num_experts, top_k):
        super().__init__()
        top_k = min(top_k, num_experts)
        self.top_k, self.router = top_k, nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList(SwiGLU(d_model, d_ff) for _ in range(num_experts))

    def forward(self, x):
        logits = self.router(x)
        gates, chosen = route(logits, self.top_k)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            *where, slot = (chosen == i).nonzero(as_tuple=True)
            out = out.index_put(tuple(where), expert(x[tuple(where)]) * gates[(*where, slot)][:, None], accumulate=True)
        return out, load_balance_loss(logits, self.top_k)
