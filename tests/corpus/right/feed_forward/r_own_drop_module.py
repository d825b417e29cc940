import torch
from torch import Tensor, nn


class Ausfall(nn.Module):
    """Setzt im Training zufällige Einheiten auf 0 und vergrößert die anderen."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, h: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return h
        if self.p == 1:
            return torch.zeros_like(h)
        weg = torch.rand(h.shape, device=h.device) < self.p
        return h.masked_fill(weg, 0) / (1 - self.p)


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        # nur zum Aufrufen: die Schichten bleiben unter ihren Namen registriert
        self.ausfall = Ausfall(dropout)

    def forward(self, x: Tensor) -> Tensor:
        vorher = self.linear1(x)
        versteckt = torch.where(vorher > 0, vorher, 0.0)
        return self.linear2(self.ausfall(versteckt))
