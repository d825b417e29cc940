# 手写的带掩码 softmax:数值稳定,长度为 0 的行返回 0
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, k = X.size()
    if valid_lens is None:
        valid_lens = torch.full((b,), k, device=X.device)

    if valid_lens.dim() == 1 and valid_lens.size(0) == b:
        L = valid_lens.unsqueeze(1).expand(b, q)
    elif valid_lens.dim() == 2 and tuple(valid_lens.size()) == (b, q):
        L = valid_lens
    else:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    L = L.double()
    if bool(torch.any(L > k)):
        raise ValueError("length > n_keys")

    keep = torch.arange(k, device=X.device).view(1, 1, k) < L.unsqueeze(-1)

    # 半精度时用 float32 计算
    work = X if X.dtype in (torch.float32, torch.float64) else X.float()
    low = torch.finfo(work.dtype).min
    top = work.detach().masked_fill(~keep, low).amax(-1, keepdim=True)
    # 被遮住的分数换成该行的最大值,这样 exp 不会溢出
    e = torch.exp(torch.where(keep, work, top) - top) * keep
    total = e.sum(-1, keepdim=True)
    # 空行的分母换成 1,避免 0/0
    out = e / total.masked_fill(total == 0, 1)
    return out.to(X.dtype)
