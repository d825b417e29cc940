# mistake: lengths_of_items_on_queries
import torch
from torch import Tensor, nn


def _valid(valid_lens: Tensor, n_queries: int, n_keys: int) -> Tensor:
    dev = valid_lens.device
    if valid_lens.dim() == 2:
        return torch.arange(n_keys, device=dev) < valid_lens.unsqueeze(-1)
    rows = torch.arange(n_queries, device=dev) < valid_lens.unsqueeze(-1)
    return rows.unsqueeze(-1).expand(-1, n_queries, n_keys)


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.empty(d_query, d_key).uniform_(-0.1, 0.1))
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        scores = queries @ self.M @ keys.transpose(1, 2) / keys.shape[2] ** 0.5
        if valid_lens is None:
            weights = torch.softmax(scores, dim=2)
        else:
            keep = _valid(valid_lens, scores.shape[1], scores.shape[2])
            low = torch.finfo(scores.dtype).min
            weights = torch.softmax(torch.where(keep, scores, low), dim=2)
            weights = torch.where(keep, weights, 0.0)
        self.attention_weights = weights
        return self.dropout(weights) @ values
