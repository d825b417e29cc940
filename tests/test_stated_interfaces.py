"""What students write has the arguments, defaults and parameters that the statements say."""

from __future__ import annotations

import inspect

import pytest
from reference_cases import SEEDS, References, sizes
from torch import nn

from grader.testing import Rng

SIGNATURES = {
    "dictionary_lookup.attention": "Q, K, V, temp=1.0",
    "dictionary_lookup.lookup": "entries, key, temp=0.01",
    "masked_softmax.masked_softmax": "X, valid_lens",
    "self_attention.scores_by_loops": "inputs",
    "self_attention.scores_by_product": "inputs",
    "self_attention.normalise": "scores",
    "self_attention.softmax_naive": "scores",
    "self_attention.softmax_stable": "scores",
    "self_attention.context_vectors": "inputs",
    "trainable_self_attention.SelfAttentionV1": "d_in, d_out",
    "trainable_self_attention.SelfAttentionV2": "d_in, d_out, qkv_bias=False",
    "trainable_self_attention.copy_weights": "source_v2, target_v1",
    "stacked_heads.StackedHeads": (
        "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False"
    ),
    "stacked_heads.split_weights": "stacked",
    "causal_attention.CausalAttention": "d_in, d_out, context_length, dropout, qkv_bias=False",
    "multi_head_attention.MultiHeadAttention": (
        "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True"
    ),
    "layer_norm.LayerNorm": "d_model, eps=1e-05",
    "named_attention.contract": "left, right, *over",
    "named_attention.attend": "query, key, value",
    "named_attention.multi_head": "x, W_q, W_k, W_v, W_o",
    "rms_norm.RMSNorm": "d_model, eps=1e-05",
    "feed_forward.FeedForward": "d_model, d_ff, dropout=0.0",
    "swiglu.SwiGLU": "d_model, d_ff, dropout=0.0",
    "swiglu.hidden_size": "d_model, multiple=256",
    "softmax_temperature.tempered_softmax": "scores, temperature",
    "softmax_temperature.entropy": "weights",
    "softmax_temperature.variance_of_products": "queries, keys",
    "softmax_temperature.scale": "scores, d_key",
    "scaled_dot_product_attention.batched_product": "a, b",
    "scaled_dot_product_attention.DotProductAttention": "dropout",
    "attention_dropout.drop": "weights, rate, training",
    "additive_attention.AdditiveAttention": "d_query, d_key, num_hiddens, dropout",
    "distance_attention.DistanceAttention": "dropout",
    "distance_attention.distance_scores": "queries, keys",
    "distance_attention.scores_without_query_norm": "queries, keys",
    "bilinear_attention.BilinearAttention": "d_query, d_key, dropout",
    "positional_encoding.sinusoidal": "context_length, d_model, base=10000.0",
    "positional_encoding.PositionalEncoding": "d_model, context_length, dropout=0.0",
    "positional_encoding.permutation_gap": "block, x, permutation",
    "rotary_embedding.rotate": "x, positions, base=10000.0, interleaved=True",
    "rotary_embedding.rotary_attention": "queries, keys, values, positions",
    "kv_cache.CachedAttention": ("d_in, d_out, context_length, dropout, num_heads, qkv_bias=False"),
    "grouped_query_attention.GroupedQueryAttention": (
        "d_in, d_out, context_length, dropout, num_heads, num_kv_heads"
    ),
    "grouped_query_attention.grouped_scores": "queries, keys",
    "grouped_query_attention.grouped_context": "weights, values",
    "modern_block.RotaryAttention": (
        "d_in, d_out, context_length, dropout, num_heads, num_kv_heads, base=10000.0"
    ),
    "modern_block.ModernBlock": (
        "d_model, num_heads, num_kv_heads, d_ff, context_length, dropout=0.0, base=10000.0"
    ),
    "histogram_transformer.CountingTransformer": "vocab, length, d_model",
    "histogram_transformer.train_counter": "model, sequences, counts, steps, report=None",
    "histogram_transformer.set_weights": "model",
    "online_softmax.online_softmax": "chunks, state=None",
    "seq2seq_attention.AlignmentNetwork": "d_decoder, d_encoder, d_hidden",
    "seq2seq_attention.AttentionDecoder": "vocab, d_embed, d_decoder, d_encoder, d_hidden",
    "seq2seq_attention.train_decoder": "decoder, encoder_states, targets, steps, report=None",
    "online_softmax.tiled_attention": "Q, K, V, tile, causal=False",
    "tiny_gpt.TinyGPT": "vocab, d_model, num_heads, num_layers, context_length, dropout",
    "tiny_gpt.next_token_loss": "model, windows",
    "tiny_gpt.random_windows": "tokens, n_windows, length",
    "tiny_gpt.train_gpt": ("model, tokens, steps, batch_size=16, learning_rate=0.003, report=None"),
    "tiny_gpt.generate": "model, prompt, n, temperature=1.0, top_k=None",
    "tiny_llama.TinyLlama": (
        "vocab, d_model, num_heads, num_kv_heads, num_layers, context_length, dropout"
    ),
    "tiny_llama.learned_tokens": "data, num_merges",
    "tiny_llama.train_llama": (
        "model, tokens, steps, batch_size=16, peak=0.005, warmup=25, report=None"
    ),
    "tiny_llama.bits_per_byte": "model, data, merges",
    "tiny_llama.continue_text": (
        "model, prompt, uniforms, temperature=1.0, top_k=None, top_p=None"
    ),
    "cross_attention.CrossAttention": "d_query, d_context, d_out, dropout, num_heads, causal=False",
    "cross_attention.EncoderBlock": "d_model, num_heads, d_ff, dropout",
    "cross_attention.DecoderBlock": "d_model, num_heads, d_ff, dropout",
    "sliding_window.alibi_slopes": "num_heads",
    "sliding_window.sliding_attention": "Q, K, V, window, slopes=None",
    "byte_pair_encoding.train": "data, num_merges",
    "byte_pair_encoding.encode": "data, merges, special=None",
    "byte_pair_encoding.decode": "tokens, merges, special=None",
    "sampling.distribution": "logits, temperature=1.0, top_k=None, top_p=None",
    "sampling.draw": "probabilities, u",
    "sampling.speculate": "draft_tokens, draft, target, u, v",
    "cross_entropy.cross_entropy": "logits, targets, ignore_index=-100, label_smoothing=0.0",
    "cross_entropy.cross_entropy_gradient": (
        "logits, targets, ignore_index=-100, label_smoothing=0.0"
    ),
    "adamw.AdamW": "params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01",
    "adamw.learning_rate": "step, peak, warmup, total, floor=0.0",
    "adamw.clip_gradients": "params, max_norm",
    "patch_embedding.patches": "images, patch, stride=None",
    "patch_embedding.PatchEmbedding": "height, width, patch, channels, d_model, stride=None",
    "low_rank_adaptation.LowRankLinear": "linear, r, alpha, dropout=0.0",
    "low_rank_adaptation.adapt": "model, names, r, alpha",
    "mixture_of_experts.route": "logits, top_k",
    "mixture_of_experts.load_balance_loss": "logits, top_k",
    "mixture_of_experts.MixtureOfExperts": "d_model, d_ff, num_experts, top_k",
    "transformer_block.TransformerBlock": (
        "d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True"
    ),
}


@pytest.mark.parametrize("place", SIGNATURES)
def test_arguments_and_defaults_are_those_stated(place: str, references: References) -> None:
    module, _, target = place.partition(".")
    found = inspect.signature(getattr(references[module], target)).parameters.values()
    plain = [argument.replace(annotation=inspect.Parameter.empty) for argument in found]
    assert ", ".join(str(argument) for argument in plain) == SIGNATURES[place]


def count(layer: nn.Module) -> int:
    return sum(parameter.numel() for parameter in layer.parameters())


@pytest.mark.parametrize("seed", SEEDS)
def test_layers_have_as_many_parameters_as_stated(seed: int, references: References) -> None:
    d_in, num_heads, d_head, d_model, d_ff = sizes(Rng(seed), 5)
    d_out = num_heads * d_head
    attention = references["multi_head_attention"].MultiHeadAttention
    assert count(attention(d_in, d_out, 9, 0.0, num_heads)) == 3 * d_in * d_out + d_out**2 + d_out
    feed_forward = references["feed_forward"].FeedForward(d_model, d_ff)
    assert count(feed_forward) == 2 * d_model * d_ff + d_ff + d_model
