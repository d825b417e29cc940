r"""Segment softmax, as graph libraries do it: every valid (query, key) pair is an edge, and the
edges of one query form a segment."""
import torch


def segment_softmax(src, index, num_segments):
    src_max = src.new_full((num_segments,), float("-inf"))
    src_max = src_max.scatter_reduce(0, index, src.detach(), reduce="amax")
    out = (src - src_max[index]).exp()
    out_sum = out.new_zeros(num_segments).index_add(0, index, out)
    return out / out_sum[index]


def masked_softmax(X, valid_lens):
    B, Nq, Nk = X.shape
    if valid_lens is None:
        lens = torch.full((B, Nq), Nk, device=X.device)
    else:
        if valid_lens.shape != (B,) and valid_lens.shape != (B, Nq):
            raise ValueError("valid_lens: expected (batch,) or (batch, n_queries)")
        if valid_lens.gt(Nk).any():
            raise ValueError("valid_lens: longer than the keys")
        lens = valid_lens if valid_lens.dim() == 2 else valid_lens.view(B, 1).expand(B, Nq)

    adj = torch.arange(Nk, device=X.device).view(1, 1, Nk) < lens.unsqueeze(-1)
    row, col = adj.reshape(B * Nq, Nk).nonzero(as_tuple=True)
    edge_score = X.reshape(B * Nq, Nk)[row, col]
    alpha = segment_softmax(edge_score, row, B * Nq)
    dense = X.new_zeros(B * Nq, Nk).index_put((row, col), alpha)
    return dense.view(B, Nq, Nk)
