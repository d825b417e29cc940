import math

import torch

# Each token has d_head / 2 little matrices ((cos, -sin), (sin, cos)), one for each pair.


def _matrices(positions, d_head, base, dtype):
    frequency = torch.exp(
        torch.arange(0, d_head, 2, dtype=torch.float64) * (-math.log(base) / d_head)
    ).to(positions.device)
    angle = positions.double()[:, None] * frequency
    rows = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=-1)
    return rows.view(*angle.shape, 2, 2).to(dtype)


def rotate(x, positions, base=10000.0, interleaved=True):
    n_tokens, d_head = x.size(-3), x.size(-1)
    if d_head % 2 == 1:
        raise ValueError("the columns do not come in pairs")
    if positions.dim() != 1 or positions.size(0) != n_tokens:
        raise ValueError("one position for each token is needed")
    work = torch.promote_types(x.dtype, torch.float32)
    R = _matrices(positions, d_head, base, work)
    x_work = x.to(work)
    if interleaved:
        pairs = x_work.reshape(*x.shape[:-1], d_head // 2, 2)
        out = torch.einsum("tpij,...thpj->...thpi", R, pairs)
    else:
        pairs = x_work.reshape(*x.shape[:-1], 2, d_head // 2)
        out = torch.einsum("tpij,...thjp->...thip", R, pairs)
    return out.reshape(x.shape).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    q = rotate(queries, positions).transpose(-3, -2)
    k = rotate(keys, positions).transpose(-3, -2)
    v = values.transpose(-3, -2)
    table = q.matmul(k.transpose(-2, -1)) * (1.0 / math.sqrt(q.size(-1)))
    return torch.softmax(table, -1).matmul(v).transpose(-3, -2)
