# broken: The inputs may be views, such as transposed tensors: valid_lens (batch, n_queries) goes through view(-1), which raises if it is a transposed tensor
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Attention whose scores are w_v . tanh(W_q q + W_k k)."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        projected = self.W_k(keys)
        hidden = torch.tanh(self.W_q(queries).unsqueeze(2) + projected.unsqueeze(1))
        scores = self.w_v(hidden).squeeze(-1)
        if valid_lens is not None and valid_lens.dim() == 2:
            n = scores.shape[0] * scores.shape[1]
            weights = masked_softmax(scores.reshape(n, 1, -1), valid_lens.view(n)).view_as(scores)
        else:
            weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        return self.dropout(weights) @ values
