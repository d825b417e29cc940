# mistake: first_choices_counted
import torch
from swiglu import SwiGLU
from torch import nn
from torch.nn import functional as F


def check(top_k, num_experts):
    if top_k < 1 or top_k > num_experts:
        raise ValueError(f"top_k is {top_k}, with {num_experts} experts")


def route(logits, top_k):
    check(top_k, logits.shape[-1])
    order = logits.sort(dim=-1, descending=True)
    gates = torch.softmax(order.values[..., :top_k].float() if logits.dtype in (torch.float16, torch.bfloat16) else order.values[..., :top_k], dim=-1)
    return gates.to(logits.dtype), order.indices[..., :top_k]


def load_balance_loss(logits, top_k):
    num_experts = logits.shape[-1]
    _, chosen = route(logits, top_k)
    rows = logits.reshape(-1, num_experts)
    if rows.dtype in (torch.float16, torch.bfloat16):
        rows = rows.float()
    share = F.one_hot(chosen[..., 0].reshape(-1), num_experts).to(rows.dtype).mean(dim=0)
    probability = torch.softmax(rows, dim=-1).mean(dim=0)
    return (num_experts * torch.einsum("e,e->", share, probability)).to(logits.dtype)


class MixtureOfExperts(nn.Module):
    def __init__(self, d_model, d_ff, num_experts, top_k):
        super().__init__()
        check(top_k, num_experts)
        self.num_experts = num_experts
        self.top_k = top_k
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList([SwiGLU(d_model, d_ff) for _ in range(num_experts)])

    def forward(self, x):
        logits = torch.einsum("...d,ed->...e", x, self.router.weight)
        gates, chosen = route(logits, self.top_k)
        flat = x.reshape(-1, x.shape[-1])
        weights = torch.einsum("nk,nke->ne", gates.reshape(-1, self.top_k), F.one_hot(chosen.reshape(-1, self.top_k), self.num_experts).to(gates.dtype))
        taken = torch.zeros_like(weights, dtype=torch.bool).scatter(1, chosen.reshape(-1, self.top_k), True)
        output = torch.zeros_like(flat)
        for index, expert in enumerate(self.experts):
            rows = taken[:, index].nonzero().squeeze(1)
            answer = torch.einsum("nd,n->nd", expert(flat[rows]), weights[rows, index])
            output = output.index_add(0, rows, answer)
        return output.view(x.shape), load_balance_loss(logits, self.top_k)
