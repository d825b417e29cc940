# right: einsum, dropout by hand, the padding found by asking masked_softmax with scores of 0
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of each item of a with the same item of b."""
    match (tuple(a.shape), tuple(b.shape)):
        case ((batch, _, m), (batch_b, m_b, _)) if batch == batch_b and m == m_b:
            return torch.einsum("bnm,bmp->bnp", a, b)
        case _:
            raise ValueError("shapes must be (batch, n, m) and (batch, m, p)")


class DotProductAttention(nn.Module):
    """Attention whose scores are scaled dot products."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = dropout

    def drop(self, weights: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return weights
        if self.rate == 1:
            return weights * 0
        kept = torch.rand(weights.shape, device=weights.device) >= self.rate
        return weights * kept / (1 - self.rate)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = keys.size(2)
        scores = batched_product(queries, keys.mT * d_key**-0.5)
        self.attention_weights = masked_softmax(scores, valid_lens)
        even = masked_softmax(torch.zeros_like(scores, dtype=torch.float32), valid_lens)
        seen = even.amax(dim=1) > 0
        clean = torch.where(seen.unsqueeze(2), values, torch.zeros_like(values))
        return batched_product(self.drop(self.attention_weights), clean)
