# mistake: query_rows_masked
# in words: the lengths hide query rows and every key stays visible
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    B, Nq, Nk = X.shape
    if valid_lens.shape != (B,) and valid_lens.shape != (B, Nq):
        raise ValueError("valid_lens should be (batch,) or (batch, n_queries)")
    if valid_lens.max() > Nk:
        raise ValueError("valid_lens should not exceed n_keys")
    lens = valid_lens if valid_lens.dim() == 2 else valid_lens[:, None].expand(B, Nq)
    alive = torch.arange(Nq, device=X.device).unsqueeze(0) < lens
    scores = X.masked_fill(~alive[:, :, None], float("-inf"))
    attn = torch.softmax(scores, dim=-1)
    return torch.where(alive[:, :, None], attn, torch.zeros_like(attn))
