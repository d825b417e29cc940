# mistake: any_top_k
# Only a top_k that is too large is refused; 0 gives a module that does nothing.
import torch
from swiglu import SwiGLU
from torch import nn
from torch.nn import functional as F


def check(top_k, num_experts):
    if top_k > num_experts:
        raise ValueError(f"top_k {top_k} of {num_experts} experts")


def route(logits, top_k):
    check(top_k, logits.shape[-1])
    chosen, selected_experts = torch.topk(logits, top_k, dim=-1)
    chosen = chosen.to(torch.promote_types(logits.dtype, torch.float32))
    routing_weights = (chosen - chosen[..., :1].detach()).exp()  # the first one is the largest
    routing_weights = routing_weights / routing_weights.sum(dim=-1, keepdim=True)
    return routing_weights.to(logits.dtype), selected_experts


def load_balance_loss(logits, top_k):
    num_experts = logits.shape[-1]
    check(top_k, num_experts)
    flat = logits.reshape(-1, num_experts)
    probs = flat.softmax(-1, dtype=torch.promote_types(flat.dtype, torch.float32))
    _, selected = torch.topk(flat, top_k, dim=-1)
    expert_mask = F.one_hot(selected, num_experts).to(probs.dtype)  # n, top_k, experts
    tokens_per_expert = expert_mask.mean(dim=(0, 1))
    router_prob_per_expert = probs.mean(dim=0)
    return (num_experts * torch.sum(tokens_per_expert * router_prob_per_expert)).to(logits.dtype)


class MixtureOfExperts(nn.Module):
    def __init__(self, d_model, d_ff, num_experts, top_k):
        super().__init__()
        check(top_k, num_experts)
        self.num_experts, self.top_k = num_experts, top_k
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList([SwiGLU(d_model, d_ff) for _ in range(num_experts)])

    def forward(self, x):
        hidden_states = x.reshape(-1, x.shape[-1])
        router_logits = self.router(hidden_states)
        routing_weights, selected_experts = route(router_logits, self.top_k)
        final = torch.zeros_like(hidden_states)
        expert_mask = F.one_hot(selected_experts, self.num_experts).permute(2, 1, 0)
        for e in range(self.num_experts):
            idx, top_x = torch.where(expert_mask[e])
            current = self.experts[e](hidden_states[top_x]) * routing_weights[top_x, idx, None]
            final.index_add_(0, top_x, current.to(final.dtype))
        return final.reshape(x.shape), load_balance_loss(router_logits, self.top_k)
