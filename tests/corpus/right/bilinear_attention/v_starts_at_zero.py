# right: M is registered by register_parameter and starts at zeros (any numbers are allowed), dropout is a mask of 0 and 1 / keep added to the graph by one multiplication
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.register_parameter("M", nn.Parameter(torch.zeros(d_query, d_key)))
        self.off = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        in_key_space = torch.einsum("bqe,ed->bqd", queries, self.M)
        scores = torch.einsum("bqd,bkd->bqk", in_key_space, keys) / math.sqrt(keys.shape[-1])
        w = masked_softmax(scores, valid_lens)
        self.attention_weights = w.detach()
        if self.training:
            gain = torch.zeros(w.shape, device=w.device)
            if self.off < 1:
                gain[torch.rand(w.shape, device=w.device) >= self.off] = 1 / (1 - self.off)
            w = w * gain.to(w.dtype)
        return torch.einsum("bqk,bkv->bqv", w, values)
