"""The calls that the judge of mutants asks of each exercise, drawn at random.

A function for each exercise draws sizes (equal ones and ones too), dtypes, lengths, flags, modes,
gradients, arguments afterwards, misuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mutants import asking, core, modern, scores, sequences, training

from grader.grading.rng import Rng

CALLS: dict[str, Callable[[Any, Rng], Iterator[asking.Question]]] = {
    call.__name__: call
    for call in (
        *(core.dictionary_lookup, core.masked_softmax, core.causal_attention),
        *(core.multi_head_attention, core.layer_norm, core.feed_forward, core.transformer_block),
        *(scores.self_attention, scores.softmax_temperature, scores.trainable_self_attention),
        *(scores.scaled_dot_product_attention, scores.attention_dropout),
        *(scores.additive_attention, scores.distance_attention, scores.bilinear_attention),
        *(scores.stacked_heads, scores.named_attention),
        *(sequences.positional_encoding, sequences.kv_cache, sequences.rotary_embedding),
        *(sequences.grouped_query_attention, sequences.online_softmax),
        *(sequences.cross_attention, sequences.sliding_window),
        *(modern.rms_norm, modern.swiglu, modern.modern_block, modern.byte_pair_encoding),
        *(modern.cross_entropy, modern.adamw, modern.sampling, modern.low_rank_adaptation),
        *(modern.patch_embedding, modern.mixture_of_experts),
        *(training.seq2seq_attention, training.histogram_transformer, training.tiny_gpt),
        training.tiny_llama,
    )
}
