# mistake: scaled_by_root_of_d_key
# the scores are also divided by the square root of d_key, as in scaled attention, so all weights are too even
import math

import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0.0:
        raise ValueError("temp must be > 0")
    d_k = Q.size(-1)
    attn_scores = Q @ K.transpose(-2, -1) / math.sqrt(d_k)
    attn_scores = attn_scores - attn_scores.max(dim=-1, keepdim=True)[0]
    attn_weights = torch.softmax(attn_scores / temp, dim=-1)
    return attn_weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    positions = {k: i for i, k in enumerate(entries)}
    row = positions[key]
    eye = torch.eye(len(entries), dtype=torch.float32)
    V = torch.stack([torch.tensor(v, dtype=torch.float32) for v in entries.values()])
    return attention(eye[[row]], eye, V, temp)[0]
