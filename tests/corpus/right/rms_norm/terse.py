# right
import torch as t


class RMSNorm(t.nn.Module):
    def __init__(s, d_model, eps=1e-5):
        super().__init__(); s.e, s.gamma = eps, t.nn.Parameter(t.ones(d_model))
    def forward(s, x):
        return ((y := x.double()) * (y.pow(2).mean(-1, True) + s.e) ** -0.5 * s.gamma).to(x)
