# mistake: dropout_on_features
# dropout acts on the tanh features before they are scored, and not on the weights
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.rate = dropout
        self.W_q, self.W_k = (nn.Linear(d, num_hiddens, bias=False) for d in (d_query, d_key))
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        feats = torch.tanh(self.W_q(queries)[:, :, None, :] + self.W_k(keys)[:, None, :, :])
        feats = F.dropout(feats, self.rate, training=self.training)
        weights = masked_softmax(self.w_v(feats).squeeze(3), valid_lens)
        self.attention_weights = weights
        return weights @ values
