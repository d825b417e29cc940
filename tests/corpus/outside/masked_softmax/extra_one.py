# mistake: an extra 1 in the denominator
import torch


def masked_softmax(X, valid_lens):
    B, N, M = X.shape
    if valid_lens is None:
        m = torch.ones(B, N, M, dtype=torch.bool)
    else:
        if tuple(valid_lens.shape) == (B,):
            vl = valid_lens[:, None, None]
        elif tuple(valid_lens.shape) == (B, N):
            vl = valid_lens[:, :, None]
        else:
            raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
        if vl.max() > M:
            raise ValueError("length too long")
        m = (torch.arange(M)[None, None, :] < vl).expand(B, N, M)
    masked = torch.where(m, X, float("-inf"))
    mx = masked.max(dim=-1, keepdim=True).values.detach()
    mx = torch.where(mx == float("-inf"), 0.0, mx)
    ex = torch.exp(masked - mx)
    z = ex.sum(dim=-1, keepdim=True)
    return ex / (1 + z)
