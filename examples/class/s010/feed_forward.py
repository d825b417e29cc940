import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = torch.relu(self.linear1(x))
        print("hidden", hidden.shape)
        for row in hidden.reshape(-1, hidden.shape[-1]).tolist():
            print(row)
        return self.linear2(self.dropout(hidden))
