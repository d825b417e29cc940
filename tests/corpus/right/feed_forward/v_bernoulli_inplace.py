# right: the mask is drawn in place with bernoulli_, scaled in place, and multiplied once; the layers are written as matrix products with their parameters
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.register_buffer("keep", torch.tensor(1.0 - dropout, dtype=torch.float64), persistent=False)
        self.keep_number = 1.0 - dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = (x @ self.linear1.weight.T + self.linear1.bias).relu()
        if self.training:
            mask = torch.empty(hidden.shape, device=hidden.device).bernoulli_(self.keep_number)
            if self.keep_number > 0:
                mask.div_(self.keep_number)
            hidden = hidden * mask.type_as(hidden)
        return hidden @ self.linear2.weight.T + self.linear2.bias
