import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]


class CachedAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        self.context_length = context_length
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def _koepfe(self, t: Tensor) -> Tensor:
        return t.unflatten(2, (self.num_heads, self.d_head)).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        neu_k, neu_v = self._koepfe(self.W_key(x)), self._koepfe(self.W_value(x))
        if cache is None:
            # leerer Speicher: dann gibt es nur einen Weg durch den Code
            cache = (neu_k[:, :, :0], neu_v[:, :, :0])
        alt = cache[0].shape[2]
        gesamt = alt + x.shape[1]
        if gesamt > self.context_length:
            raise ValueError("der Text ist zu lang")
        K = torch.cat([cache[0], neu_k], dim=-2)
        V = torch.cat([cache[1], neu_v], dim=-2)
        Q = self._koepfe(self.W_query(x)).mul(self.d_head**-0.5)

        sichtbar = torch.ones(x.shape[1], gesamt, dtype=torch.bool, device=x.device).tril(alt)
        punkte = torch.einsum("bhqd,bhkd->bhqk", Q, K)
        punkte = torch.where(sichtbar, punkte, torch.full_like(punkte, float("-inf")))
        gewichte = self.dropout(torch.softmax(punkte, dim=3))
        kontext = torch.einsum("bhqk,bhkd->bqhd", gewichte, V).flatten(-2)
        return self.out_proj(kontext), (K, V)
