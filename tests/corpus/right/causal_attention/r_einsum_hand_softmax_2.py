import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def softmax_a_mano(s: Tensor, visible: Tensor) -> Tensor:
    """Softmax estable; en media precision se calcula en float32."""
    alto = s.double() if s.dtype == torch.float64 else s.float()
    alto = torch.where(visible, alto, -math.inf)
    # la diagonal siempre es visible: el maximo es finito
    alto = torch.exp(alto - alto.amax(dim=-1, keepdim=True).detach())
    return (alto / alto.sum(dim=-1, keepdim=True)).type_as(s)


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.context_length = context_length
        self.p = dropout
        for nombre in ("W_query", "W_key", "W_value"):
            setattr(self, nombre, nn.Linear(d_in, d_out, qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        _, fichas, _ = x.shape
        if fichas > self.context_length:
            raise ValueError("demasiadas fichas")
        orden = torch.arange(fichas, device=x.device)
        visible = orden.unsqueeze(1) >= orden.unsqueeze(0)
        consulta = self.W_query(x) / math.sqrt(self.W_query.out_features)
        puntos = torch.einsum("bid,bjd->bij", consulta, self.W_key(x))
        pesos = F.dropout(softmax_a_mano(puntos, visible), self.p, training=self.training)
        return torch.einsum("bij,bjd->bid", pesos, self.W_value(x))
