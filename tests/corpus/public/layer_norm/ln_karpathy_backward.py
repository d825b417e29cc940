# exercise: layer_norm
# deviates: own backward (autograd.Function), no second derivatives
"""
Layernorm with the backward pass by hand, in the spirit of the llm.c notes.
"""
import torch
import torch.nn as nn

eps_default = 1e-5


class LayerNormFunction(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, w, b, eps):
        C = x.size(-1)
        mean = x.sum(-1, keepdim=True) / C # B,T,1
        xshift = x - mean # B,T,C
        var = (xshift**2).sum(-1, keepdim=True) / C # B,T,1
        rstd = (var + eps) ** -0.5 # B,T,1
        norm = xshift * rstd # B,T,C
        out = norm * w + b # B,T,C

        ctx.save_for_backward(norm, w, rstd)
        return out

    @staticmethod
    def backward(ctx, dout):
        norm, w, rstd = ctx.saved_tensors
        rows = tuple(range(dout.dim() - 1))
        db = dout.sum(rows)
        dw = (dout * norm).sum(rows)
        # backprop into x, with the mean and the variance in one go
        dnorm = dout * w
        dx = dnorm - dnorm.mean(-1, keepdim=True) - norm * (dnorm * norm).mean(-1, keepdim=True)
        dx *= rstd
        return dx, dw, db, None


class LayerNorm(nn.Module):

    def __init__(self, d_model, eps=eps_default):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        return LayerNormFunction.apply(x, self.gamma, self.beta, self.eps)


if __name__ == "__main__":
    # check against autograd
    B, T, C = 2, 3, 4
    x = torch.randn(B, T, C, requires_grad=True, dtype=torch.double)
    layer = LayerNorm(C).double()
    print("gradcheck:", torch.autograd.gradcheck(layer, (x,)))
