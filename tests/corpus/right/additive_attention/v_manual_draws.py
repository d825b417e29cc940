# right: dropout by hand with uniform numbers in float64 and a multiplication by 0 or 1 / keep, the hidden layer is built by broadcasting
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.keep = 1 - dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        hidden = (self.W_q(queries)[:, :, None] + self.W_k(keys)[:, None]).tanh()
        weights = masked_softmax(self.w_v(hidden)[..., 0], valid_lens)
        self.attention_weights = weights
        if self.training and self.keep < 1:
            draws = torch.rand(weights.shape, dtype=torch.float64, device=weights.device)
            gain = (draws < self.keep).double() / self.keep if self.keep else draws * 0
            weights = weights * gain.to(weights.dtype)
        return weights @ values
