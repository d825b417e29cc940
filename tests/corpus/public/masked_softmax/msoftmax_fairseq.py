import logging

import torch
import torch.nn.functional as F

logger = logging.getLogger(__name__)


def softmax(x, dim: int, onnx_trace: bool = False):
    if x.dtype in (torch.float16, torch.bfloat16):
        return F.softmax(x, dim=dim, dtype=torch.float32)
    return F.softmax(x, dim=dim)


def lengths_to_padding_mask(lens, max_len):
    """True where the element is padding (lens: ... -> ... x max_len)"""
    return torch.arange(max_len, device=lens.device).expand(*lens.shape, max_len) >= lens.unsqueeze(-1)


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return softmax(X, dim=-1).type_as(X)
    bsz, tgt_len, src_len = X.size()
    if list(valid_lens.size()) == [bsz]:
        padding_mask = lengths_to_padding_mask(valid_lens, src_len).unsqueeze(1)
    elif list(valid_lens.size()) == [bsz, tgt_len]:
        padding_mask = lengths_to_padding_mask(valid_lens, src_len)
    else:
        raise ValueError("valid_lens has size %s" % (valid_lens.size(),))
    if bool(valid_lens.gt(src_len).any()):
        raise ValueError("valid_lens > src_len")

    attn_weights = X.masked_fill(padding_mask, float("-inf"))
    attn_weights_float = softmax(attn_weights, dim=-1)
    # rows that are padding altogether are nan by now
    attn_weights_float = torch.nan_to_num(attn_weights_float, nan=0.0)
    return attn_weights_float.type_as(X)
