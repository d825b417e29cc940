# mistake: tied_weights + dropout_on_the_output
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    @property
    def decoder_weight(self) -> Tensor:
        return self.linear1.weight.transpose(0, 1)

    def forward(self, x: Tensor) -> Tensor:
        code = torch.where((z := self.linear1(x)) > 0, z, torch.zeros_like(z))
        return self.dropout(nn.functional.linear(code, self.decoder_weight, self.linear2.bias))
