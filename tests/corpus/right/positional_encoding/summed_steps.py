# note: angles are running sums of steps; permutations are matrices
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    pairs = (d_model + 1) // 2
    step = 1.0 / float(base) ** (torch.arange(pairs).double() * 2 / d_model)
    angle = torch.cumsum(step.expand(context_length, pairs), dim=0) - step
    return torch.stack([angle.sin(), angle.cos()], -1).view(context_length, 2 * pairs)[:, :d_model].float()


class PositionalEncoding(nn.Sequential):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__(_Add(sinusoidal(context_length, d_model)), nn.Dropout(dropout))


class _Add(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        n = x.shape[1]
        if n > self.table.shape[0]:
            raise ValueError("too long")
        return x + self.table[torch.arange(n, device=x.device)].unsqueeze(0)


def permutation_gap(block, x, permutation):
    matrix = torch.eye(len(permutation), dtype=x.dtype)[permutation]
    return torch.linalg.vector_norm(block(matrix @ x) - matrix @ block(x), ord=torch.inf)
