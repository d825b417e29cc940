# right: a small pipeline class of its own over the layers, leading axes flattened and restored
from torch import Tensor, nn


class Pipeline:
    def __init__(self, *stages) -> None:
        self.stages = stages

    def __call__(self, value: Tensor) -> Tensor:
        for stage in self.stages:
            value = stage(value)
        return value


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.thin, self.bend = nn.Dropout(p=dropout), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        run = Pipeline(self.linear1, self.bend, self.thin, self.linear2)
        return run(x.flatten(0, -2)).unflatten(0, x.shape[:-1])
