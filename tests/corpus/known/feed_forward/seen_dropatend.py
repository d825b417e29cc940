# mistake: dropout_on_the_output
# seen: lucidrains perceiver-pytorch issue 57 and tensorflow swift-models issue 104: dropout is at another place than in the original: on the output of the second layer instead of on the hidden units.
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.linear1(x))
        x = self.linear2(x)
        x = self.dropout(x)
        return x
