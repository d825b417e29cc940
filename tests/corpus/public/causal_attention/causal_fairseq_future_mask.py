# deviates: the mask grows as a plain attribute (no buffer, not in the state); softmax in float32, cast back (also from float64)
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def fill_with_neg_inf(t):
    """FP16-compatible function that fills a tensor with -inf."""
    return t.float().fill_(float("-inf")).type_as(t)


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.scaling = d_out ** -0.5
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout_module = nn.Dropout(dropout)
        self.max_target_positions = context_length
        self._future_mask = torch.empty(0)

    def buffered_future_mask(self, tensor: Tensor) -> Tensor:
        dim = tensor.size(1)
        # self._future_mask.device != tensor.device is not working in TorchScript. This is a workaround.
        if (
            self._future_mask.size(0) == 0
            or (not self._future_mask.device == tensor.device)
            or self._future_mask.size(0) < dim
        ):
            self._future_mask = torch.triu(
                fill_with_neg_inf(torch.zeros([dim, dim])), 1
            )
        self._future_mask = self._future_mask.to(tensor)
        return self._future_mask[:dim, :dim]

    def forward(self, x):
        if x.size(1) > self.max_target_positions:
            raise ValueError("sequence exceeds max_target_positions")
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)
        q = q * self.scaling

        attn_weights = torch.bmm(q, k.transpose(1, 2))
        attn_weights = attn_weights + self.buffered_future_mask(x).unsqueeze(0)

        attn_weights_float = F.softmax(attn_weights, dim=-1, dtype=torch.float32)
        attn_weights = attn_weights_float.type_as(attn_weights)
        attn_probs = self.dropout_module(attn_weights)
        return torch.bmm(attn_probs, v)
