import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """Produit q . M k en une seule ligne d'einsum."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        borne = 1 / math.sqrt(d_query)
        self.register_parameter("M", nn.Parameter(torch.rand(d_query, d_key) * 2 * borne - borne))
        self.abandon = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        facteur = keys.size(-1) ** -0.5
        scores = torch.einsum("bqi,ij,bkj->bqk", queries, self.M * facteur, keys)
        poids = masked_softmax(scores, valid_lens)
        self.attention_weights = poids.detach().clone()
        return torch.einsum("bqk,bkv->bqv", self.abandon(poids), values)
