# mistake: eps_argument_ignored
import torch


def standardize(x):
    xm = x - torch.mean(x, -1, True)
    v = torch.mean(xm * xm, -1, True)
    return xm / torch.pow(v + 1e-12, 0.5)


class LayerNorm(torch.nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.e = eps
        weight = torch.full((d_model,), 1.0)
        bias = torch.full((d_model,), 0.0)
        self.register_parameter("gamma", torch.nn.Parameter(weight))
        self.register_parameter("beta", torch.nn.Parameter(bias))

    def forward(self, x):
        return torch.addcmul(self.beta, self.gamma, standardize(x))
