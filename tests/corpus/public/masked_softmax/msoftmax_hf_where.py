# deviates: the softmax is computed in float32 and cast back, also for float64 (error about 1e-8)
import torch
from torch import nn


def masked_softmax(X, valid_lens):
    attn_weights = X
    attention_mask = None
    if valid_lens is not None:
        bsz, q_len, kv_len = attn_weights.shape
        if valid_lens.shape not in [(bsz,), (bsz, q_len)]:
            raise ValueError(
                f"Lengths should be of size {(bsz,)} or {(bsz, q_len)}, but are {tuple(valid_lens.shape)}"
            )
        if torch.any(valid_lens > kv_len):
            raise ValueError(f"Lengths should be at most {kv_len}")
        if valid_lens.ndim == 1:
            valid_lens = valid_lens[:, None].expand(bsz, q_len)
        cache_position = torch.arange(kv_len, device=X.device)
        attention_mask = cache_position.view(1, 1, -1) < valid_lens[..., None]
        mask_value = torch.finfo(attn_weights.dtype).min
        # Need to be a tensor of the same dtype, otherwise where() complains or upcasts
        mask_value = torch.full([], mask_value, dtype=attn_weights.dtype, device=attn_weights.device)
        attn_weights = torch.where(attention_mask, attn_weights, mask_value)

    # upcast attention to fp32
    attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32).to(X.dtype)
    if attention_mask is not None:
        # not a product: the fp64 minimum is -inf in fp32, and rows without keys are nan here
        attn_weights = torch.where(attention_mask, attn_weights, torch.zeros_like(mask_value))
    return attn_weights
