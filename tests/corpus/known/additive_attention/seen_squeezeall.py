# mistake: all_ones_squeezed
# seen: NVIDIA/tacotron2 pull 303 (also sooftware/attentions issue 2). Mistake: squeeze without an axis removes every axis of size 1, so one batch item, query or key breaks it.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def energies(self, queries: Tensor, keys: Tensor) -> Tensor:
        n_queries, n_keys = queries.size(1), keys.size(1)
        processed_query = self.W_q(queries).unsqueeze(2).expand(-1, -1, n_keys, -1)
        processed_key = self.W_k(keys).unsqueeze(1).expand(-1, n_queries, -1, -1)
        energies = self.w_v(torch.tanh(processed_query + processed_key))
        return energies.squeeze()

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(self.energies(queries, keys), valid_lens)
        self.attention_weights = weights
        return torch.matmul(self.dropout(weights), values)
