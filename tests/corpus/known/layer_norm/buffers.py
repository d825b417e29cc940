# mistake: buffers_for_parameters
import torch


def standardize(x, eps):
    centered = x - torch.mean(x, -1, True)
    variance = torch.mean(centered * centered, -1, True)
    return centered / torch.pow(variance + eps, 0.5)


class LayerNorm(torch.nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        weight = torch.full((d_model,), 1.0)
        bias = torch.full((d_model,), 0.0)
        self.register_buffer("gamma", weight)
        self.register_buffer("beta", bias)

    def forward(self, x):
        return torch.addcmul(self.beta, self.gamma, standardize(x, self.eps))
