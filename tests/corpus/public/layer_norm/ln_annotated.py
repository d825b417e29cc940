# exercise: layer_norm
# deviates: default eps is 1e-6
import torch
import torch.nn as nn


class LayerNorm(nn.Module):
    "Construct a layernorm module (See citation for details)."

    def __init__(self, d_model, eps=1e-6):
        super(LayerNorm, self).__init__()
        # a_2 and b_2 in the notebook
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        # the notebook has x.std() + eps, which is neither biased nor under the root
        std = (x.var(-1, keepdim=True, correction=0) + self.eps).sqrt()
        return self.gamma * (x - mean) / std + self.beta
