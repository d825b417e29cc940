# mistake: not in the catalogue: the median is subtracted, not the mean
import torch


def standardize(x, eps):
    d = x - torch.median(x, -1, True).values
    s2 = torch.mean(d * d, -1, True)
    return d / torch.pow(s2 + eps, 0.5)


class LayerNorm(torch.nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        weight = torch.full((d_model,), 1.0)
        bias = torch.full((d_model,), 0.0)
        self.register_parameter("gamma", torch.nn.Parameter(weight))
        self.register_parameter("beta", torch.nn.Parameter(bias))

    def forward(self, x):
        return torch.addcmul(self.beta, self.gamma, standardize(x, self.eps))
