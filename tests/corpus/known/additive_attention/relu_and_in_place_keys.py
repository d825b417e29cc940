# mistake: other_activation + writes_zeros
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        if valid_lens is not None:
            last = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
            pad = torch.arange(keys.shape[1]) >= last[:, None]
            with torch.no_grad():
                keys[pad] = 0
                values[pad] = 0
        hidden = torch.relu(self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1))
        self.attention_weights = masked_softmax(self.w_v(hidden).squeeze(3), valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
