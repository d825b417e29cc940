# mistake: rows_overwritten
import torch
from swiglu import SwiGLU
from torch import nn


def wide(t):
    return t if t.dtype == torch.float64 else t.float()


def route(logits, top_k):
    if top_k < 1 or top_k > logits.size(-1):
        raise ValueError("top_k has to be between 1 and the number of experts")
    values, experts = torch.topk(wide(logits), top_k, dim=-1)
    exps = (values - values[..., :1]).exp()
    return (exps / exps.sum(-1, keepdim=True)).to(logits.dtype), experts


def load_balance_loss(logits, top_k):
    experts = route(logits, top_k)[1]
    num_experts = logits.size(-1)
    probabilities = torch.softmax(wide(logits), dim=-1)
    total = 0
    for e in range(num_experts):
        share = (experts == e).to(probabilities.dtype).mean()
        total = total + share * probabilities[..., e].mean()
    return (num_experts * total).to(logits.dtype)


class MixtureOfExperts(nn.Module):
    def __init__(self, d_model, d_ff, num_experts, top_k):
        super().__init__()
        if top_k < 1 or top_k > num_experts:
            raise ValueError("top_k has to be between 1 and the number of experts")
        self.top_k = top_k
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList()
        for _ in range(num_experts):
            self.experts.append(SwiGLU(d_model, d_ff))

    def forward(self, x):
        tokens = x.reshape(-1, x.size(-1))
        logits = self.router(tokens)
        gates, experts = route(logits, self.top_k)
        rows, answers = [], []
        for e in range(len(self.experts)):
            token, place = torch.where(experts == e)
            answers.append(self.experts[e](tokens[token]) * gates[token, place].unsqueeze(-1))
            rows.append(token)
        output = torch.zeros_like(tokens)
        for token, answer in zip(rows, answers):
            output[token] = answer
        return output.reshape(x.shape), load_balance_loss(logits, self.top_k)
