"""Masked softmax written out: exponentials of max-subtracted scores, summed with einsum."""

import torch


def masked_softmax(X, valid_lens):
    b, q, k = X.shape
    if valid_lens is None:
        keep = torch.ones(k, dtype=torch.bool, device=X.device).expand(b, q, k)
    else:
        n = torch.as_tensor(valid_lens, device=X.device)
        if tuple(n.shape) not in {(b,), (b, q)}:
            raise ValueError(f"valid_lens has shape {tuple(n.shape)}, expected {(b,)} or {(b, q)}")
        if torch.any(n > k):
            raise ValueError(f"a valid length is larger than the number of keys, {k}")
        if n.dim() == 1:
            n = n[:, None].expand(b, q)
        # outer comparison: position on the key axis against length of the query
        keep = torch.arange(k, device=X.device)[None, None, :] < n[:, :, None]

    s = torch.where(keep, X, -torch.inf)
    top = s.detach().amax(-1, keepdim=True)
    top = torch.where(torch.isneginf(top), torch.zeros_like(top), top)
    e = torch.exp(s - top)
    z = torch.einsum("bqk->bq", e)
    z = torch.where(z > 0, z, torch.ones_like(z))
    return torch.einsum("bqk,bq->bqk", e, 1 / z)
