# exercise: layer_norm
import torch
import torch.nn as nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))   # "scale" in the book
        self.beta = nn.Parameter(torch.zeros(d_model))   # "shift"

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        norm_x = (x - mean) / torch.sqrt(var + self.eps)
        return self.gamma * norm_x + self.beta


if __name__ == "__main__":
    torch.manual_seed(123)
    torch.set_printoptions(sci_mode=False)
    batch_example = torch.randn(2, 5)
    ln = LayerNorm(5)
    out_ln = ln(batch_example)
    print("Mean:\n", out_ln.mean(dim=-1, keepdim=True))
    print("Variance:\n", out_ln.var(dim=-1, unbiased=False, keepdim=True))
