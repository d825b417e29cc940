# broken: The loss is computed in the dtype of the logits, so bfloat16 rounds at every step.
import torch
import torch.nn as nn
from swiglu import SwiGLU
from torch.nn import functional as F


def route(logits, top_k):
    if top_k not in range(1, logits.shape[-1] + 1):
        raise ValueError("top_k")
    top_k_logits, indices = logits.topk(top_k, dim=-1)
    return F.softmax(top_k_logits, dim=-1), indices


def load_balance_loss(logits, top_k):
    E = logits.shape[-1]
    z = logits.reshape(-1, E)
    _, indices = route(z, top_k)
    chosen = torch.zeros_like(z).scatter(1, indices, 1.0)
    f = chosen.sum(0) / chosen.sum()
    P = torch.softmax(z, 1).mean(0)
    return (E * torch.dot(f, P)).to(logits.dtype)


class MixtureOfExperts(nn.Module):
    def __init__(self, d_model, d_ff, num_experts, top_k):
        super().__init__()
        if not 0 < top_k <= num_experts:
            raise ValueError("top_k")
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList([SwiGLU(d_model, d_ff) for _ in range(num_experts)])
        self.top_k = top_k

    def forward(self, x):
        logits = self.router(x)
        gates, indices = route(logits, self.top_k)
        flat_x = x.reshape(-1, x.size(-1))
        table = torch.zeros_like(logits).scatter(-1, indices, gates).flatten(0, -2)
        used = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, indices, True).flatten(0, -2)
        final_output = torch.zeros_like(flat_x)
        for i, expert in enumerate(self.experts):
            rows = used[:, i].nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            expert_output = expert(flat_x[rows])
            final_output[rows] += expert_output * table[rows, i].unsqueeze(1)
        return final_output.reshape(x.shape), load_balance_loss(logits, self.top_k)
