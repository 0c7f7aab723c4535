"""A tiny random model of every family and what it computes, by `transformers` in float64: the definition of each.

    python tests/reference/make_families.py [family …]      # needs torch and transformers

Writes tests/reference/families/NAME: config.json, model.safetensors (float32, every weight drawn, norm gains and biases
too) and expected.safetensors (tokens, patterns, the stream behind the blocks, logits, greedy continuation). Settings are
unusual on purpose: odd numbers of heads, windows shorter than the text, biases on and off, caps and multipliers that
bend. What is written here and read there has nothing in common with the C++ but the file format.
"""

import copy
import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from reference_model import write_safetensors

HERE = pathlib.Path(__file__).parent / "families"
TEXT = [3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3]
STEPS = 6

usual = dict(vocab_size=43, num_hidden_layers=2, max_position_embeddings=40, bos_token_id=1, eos_token_id=2)
llama_like = usual | dict(hidden_size=18, num_attention_heads=3, num_key_value_heads=1, intermediate_size=22)
rope = lambda base=100.0, **more: dict(rope_parameters=dict(rope_type="default", rope_theta=base) | more)
encoder = dict(vocab_size=43, num_hidden_layers=2, max_position_embeddings=40, hidden_size=18, num_attention_heads=3,
               intermediate_size=22, pad_token_id=0)
# No sparse layer, whatever the experts: those are first_k_dense_replace and after.
latent = usual | dict(hidden_size=18, num_attention_heads=3, num_key_value_heads=3, intermediate_size=22, q_lora_rank=7,
                      kv_lora_rank=5, qk_nope_head_dim=6, qk_rope_head_dim=8, v_head_dim=4)

states = dict(vocab_size=43, num_hidden_layers=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)

# name → (config class, settings)
FAMILIES = {
    "qwen2": ("Qwen2Config", llama_like | rope() | dict(
        num_hidden_layers=3, use_sliding_window=True, sliding_window=5, max_window_layers=1, tie_word_embeddings=True)),
    "qwen2-r1": ("Qwen2Config", llama_like | rope() | dict(num_key_value_heads=3, tie_word_embeddings=False)),
    "qwen3": ("Qwen3Config", llama_like | rope() | dict(head_dim=8, num_attention_heads=6, num_key_value_heads=2)),
    "mistral": ("MistralConfig", llama_like | rope() | dict(head_dim=8, sliding_window=4)),
    "gpt_neox": ("GPTNeoXConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, intermediate_size=20, attention_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.75))),
    "gpt_neox-serial": ("GPTNeoXConfig", usual | dict(
        hidden_size=20, num_attention_heads=5, intermediate_size=20, attention_bias=False, use_parallel_residual=False,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=1.0))),
    "gpt_neo": ("GPTNeoConfig", dict(
        vocab_size=43, num_layers=3, num_heads=3, hidden_size=18, intermediate_size=20, max_position_embeddings=40,
        window_size=5,
        attention_types=[[["global", "local"], 1], [["local"], 1]], bos_token_id=1, eos_token_id=2)),
    "gemma": ("GemmaConfig", llama_like | rope() | dict(head_dim=8)),
    "gemma2": ("Gemma2Config", llama_like | rope() | dict(
        num_hidden_layers=3, head_dim=8, query_pre_attn_scalar=5, sliding_window=4, attn_logit_softcapping=1.5,
        final_logit_softcapping=2.0)),
    "gemma3_text": ("Gemma3TextConfig", llama_like | dict(
        num_hidden_layers=3, head_dim=8, query_pre_attn_scalar=11, sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters=dict(full_attention=dict(rope_type="linear", factor=3.0, rope_theta=1000.0),
                             sliding_attention=dict(rope_type="default", rope_theta=50.0)))),
    "phi": ("PhiConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=1, intermediate_size=20, qk_layernorm=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    "phi3": ("Phi3Config", llama_like | rope() | dict(sliding_window=6, pad_token_id=0)),
    "olmo": ("OlmoConfig", llama_like | rope() | dict(clip_qkv=0.6, attention_bias=True)),
    "olmo2": ("Olmo2Config", llama_like | rope() | dict(num_attention_heads=6, hidden_size=24, num_key_value_heads=2)),
    "olmo3": ("Olmo3Config", llama_like | rope() | dict(
        sliding_window=4, layer_types=["sliding_attention", "full_attention"])),
    "smollm3": ("SmolLM3Config", llama_like | rope() | dict(
        num_hidden_layers=3, no_rope_layers=[1, 0, 1], pad_token_id=0, attention_bias=True)),
    "stablelm": ("StableLmConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=1, intermediate_size=20, use_qkv_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.75))),
    "stablelm-parallel": ("StableLmConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=3, intermediate_size=20, use_parallel_residual=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    # Gains of every head, stored apart.
    "stablelm-heads": ("StableLmConfig", usual | dict(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=20, qk_layernorm=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    "opt": ("OPTConfig", dict(
        vocab_size=43, hidden_size=18, num_hidden_layers=2, num_attention_heads=3, ffn_dim=22,
        max_position_embeddings=40, word_embed_proj_dim=18, bos_token_id=1, eos_token_id=2)),
    "opt-350m": ("OPTConfig", dict(
        vocab_size=43, hidden_size=18, num_hidden_layers=2, num_attention_heads=3, ffn_dim=22, do_layer_norm_before=False,
        max_position_embeddings=40, word_embed_proj_dim=11, bos_token_id=1, eos_token_id=2)),
    "bloom": ("BloomConfig", dict(vocab_size=43, hidden_size=18, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=2)),
    "falcon": ("FalconConfig", usual | rope() | dict(hidden_size=18, num_attention_heads=3, bias=False)),
    "falcon-new": ("FalconConfig", usual | rope() | dict(
        hidden_size=24, num_attention_heads=6, num_kv_heads=2, new_decoder_architecture=True, bias=True)),
    "falcon-serial": ("FalconConfig", usual | rope() | dict(
        hidden_size=18, num_attention_heads=3, multi_query=False, parallel_attn=False, bias=True)),
    # Slopes that bfloat16 has not, times positions: the rounding counts.
    "falcon-alibi": ("FalconConfig", usual | dict(
        hidden_size=18, num_attention_heads=9, multi_query=False, parallel_attn=False, bias=True, alibi=True)),
    "gptj": ("GPTJConfig", dict(
        vocab_size=43, n_positions=40, n_embd=18, n_layer=2, n_inner=20, n_head=3, rotary_dim=4, bos_token_id=1, eos_token_id=2)),
    "codegen": ("CodeGenConfig", dict(
        vocab_size=43, n_positions=40, n_ctx=40, n_embd=24, n_layer=2, n_inner=20, n_head=4, rotary_dim=4, bos_token_id=1,
        eos_token_id=2)),
    "mpt": ("MptConfig", dict(
        vocab_size=43, d_model=18, n_heads=6, n_layers=2, max_seq_len=40,
        attn_config=dict(alibi=True, clip_qkv=0.8, softmax_scale=0.6), bos_token_id=1,
        eos_token_id=2)),
    "cohere": ("CohereConfig", llama_like | rope() | dict(logit_scale=0.3, use_qk_norm=True, pad_token_id=0)),
    "granite": ("GraniteConfig", llama_like | rope() | dict(
        embedding_multiplier=3.0, logits_scaling=0.7, residual_multiplier=0.4, attention_multiplier=0.3,
        attention_bias=True, mlp_bias=True)),
    "gpt_bigcode": ("GPTBigCodeConfig", dict(
        vocab_size=43, n_positions=40, n_embd=18, n_layer=2, n_inner=20, n_head=3, bos_token_id=1, eos_token_id=2)),
    "gpt_bigcode-heads": ("GPTBigCodeConfig", dict(
        vocab_size=43, n_positions=40, n_embd=18, n_layer=2, n_inner=20, n_head=3, multi_query=False, bos_token_id=1,
        eos_token_id=2)),
    "apertus": ("ApertusConfig", llama_like | dict(hidden_size=24, pad_token_id=0, rope_parameters=dict(
        rope_type="llama3", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16, low_freq_factor=1.0,
        high_freq_factor=3.0))),
    "apertus-silu": ("ApertusConfig", llama_like | rope() | dict(
        num_key_value_heads=3, pad_token_id=0, attention_bias=True, hidden_act="silu", tie_word_embeddings=True)),
    "deepseek_v2": ("DeepseekV2Config", latent | rope() | dict(first_k_dense_replace=2, mlp_bias=True)),
    "deepseek_v2-lite": ("DeepseekV2Config", latent | dict(
        q_lora_rank=None, first_k_dense_replace=9, rope_parameters=dict(
            rope_type="yarn", rope_theta=100.0, factor=5.0, original_max_position_embeddings=8, beta_fast=1.5,
            beta_slow=0.1, mscale=0.9, mscale_all_dim=0.5))),
    "deepseek_v3": ("DeepseekV3Config", latent | dict(
        attention_bias=True, rms_norm_eps=0.02, first_k_dense_replace=2, rope_parameters=dict(
            rope_type="yarn", rope_theta=80.0, factor=4.0, original_max_position_embeddings=10, beta_fast=2.0,
            beta_slow=0.25, mscale=1.0, mscale_all_dim=0.8))),
    "deepseek_v3-halves": ("DeepseekV3Config", latent | dict(
        q_lora_rank=None, v_head_dim=9, rope_interleave=False, first_k_dense_replace=2, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=50.0, factor=3.0, original_max_position_embeddings=9,
                             truncate=False, attention_factor=1.3))),
    "deepseek_v2-moe": ("DeepseekV2Config", latent | rope() | dict(
        num_hidden_layers=3, first_k_dense_replace=1, mlp_bias=True, attention_bias=True, moe_intermediate_size=5,
        n_routed_experts=9, n_shared_experts=3, num_experts_per_tok=3, topk_method="group_limited_greedy", n_group=3,
        topk_group=2, routed_scaling_factor=1.7)),
    "deepseek_v2-greedy": ("DeepseekV2Config", latent | rope() | dict(
        first_k_dense_replace=0, q_lora_rank=None, moe_intermediate_size=6, n_routed_experts=4, n_shared_experts=1,
        num_experts_per_tok=2, n_group=1, topk_group=1)),
    "deepseek_v3-moe": ("DeepseekV3Config", latent | rope() | dict(
        num_hidden_layers=3, first_k_dense_replace=1, moe_intermediate_size=5, n_routed_experts=12, n_shared_experts=2,
        num_experts_per_tok=3, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=1.6)),
    "deepseek_v3-whole": ("DeepseekV3Config", latent | rope() | dict(
        first_k_dense_replace=1, moe_intermediate_size=7, n_routed_experts=5, n_shared_experts=1, num_experts_per_tok=2,
        n_group=1, topk_group=1, norm_topk_prob=False, routed_scaling_factor=0.8)),
    "llama-yarn": ("LlamaConfig", llama_like | dict(head_dim=8, rope_parameters=dict(
        rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=30, beta_fast=2.0, beta_slow=0.3,
        truncate=False))),
    "llama-dynamic": ("LlamaConfig", llama_like | dict(rope_parameters=dict(rope_type="dynamic", rope_theta=100.0, factor=3.0))),
    "qwen2-yarn": ("Qwen2Config", llama_like | dict(num_key_value_heads=3, use_sliding_window=False, rope_parameters=dict(
        rope_type="yarn", rope_theta=200.0, factor=4.0, original_max_position_embeddings=10))),
    # The greedy continuation reaches the 16th token, from which on the other list holds.
    "phi3-longrope": ("Phi3Config", llama_like | dict(
        hidden_size=24, pad_token_id=0, original_max_position_embeddings=15, rope_parameters=dict(
            rope_type="longrope", rope_theta=100.0, original_max_position_embeddings=15, short_factor=[1.0, 1.125, 1.25, 1.75],
            long_factor=[1.5, 2.5, 4.0, 6.5]))),
    # As Phi 4 mini: a part of each head turns; a text that is long from the start.
    "phi3-long": ("Phi3Config", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=1, intermediate_size=22, pad_token_id=0,
        original_max_position_embeddings=5, tie_word_embeddings=True, rope_parameters=dict(
            rope_type="longrope", rope_theta=100.0, partial_rotary_factor=0.75, original_max_position_embeddings=5,
            short_factor=[1.0, 1.125, 1.25], long_factor=[1.25, 3.0, 7.0]))),
    "starcoder2": ("Starcoder2Config", llama_like | rope() | dict(sliding_window=5, tie_word_embeddings=True)),
    "mixtral": ("MixtralConfig", llama_like | rope() | dict(
        head_dim=8, num_local_experts=5, num_experts_per_tok=2, sliding_window=6)),
    "qwen3_moe": ("Qwen3MoeConfig", llama_like | rope() | dict(
        num_hidden_layers=4, head_dim=8, num_attention_heads=6, num_key_value_heads=2, moe_intermediate_size=10,
        num_experts=7, num_experts_per_tok=3, norm_topk_prob=True, mlp_only_layers=[2], attention_bias=True)),
    "qwen3_moe-step": ("Qwen3MoeConfig", llama_like | rope() | dict(
        num_hidden_layers=3, moe_intermediate_size=10, num_experts=4, num_experts_per_tok=1, decoder_sparse_step=2,
        tie_word_embeddings=True)),
    "olmoe": ("OlmoeConfig", llama_like | rope() | dict(
        num_experts=6, num_experts_per_tok=2, norm_topk_prob=False, clip_qkv=0.9, pad_token_id=0)),
    "olmoe-norm": ("OlmoeConfig", llama_like | rope() | dict(
        num_experts=6, num_experts_per_tok=4, norm_topk_prob=True, num_key_value_heads=3, pad_token_id=0)),
    "gpt_oss": ("GptOssConfig", llama_like | rope() | dict(
        num_hidden_layers=3, head_dim=8, num_attention_heads=6, num_key_value_heads=2, num_local_experts=5,
        num_experts_per_tok=2, sliding_window=4, swiglu_limit=0.8, swiglu_alpha=1.3)),
    "gpt_oss-bare": ("GptOssConfig", llama_like | rope() | dict(
        head_dim=6, num_local_experts=4, num_experts_per_tok=3, sliding_window=6, attention_bias=False,
        layer_types=["full_attention", "sliding_attention"])),
    "gpt_oss-mxfp4": ("GptOssConfig", usual | rope() | dict(
        hidden_size=32, num_attention_heads=3, num_key_value_heads=1, intermediate_size=32, head_dim=6,
        num_local_experts=3, num_experts_per_tok=2, sliding_window=5)),
    # State spaces: channels (36 of them in 6 groups, 42 in 7), and heads.
    "mamba": ("MambaConfig", states | dict(
        hidden_size=18, state_size=5, conv_kernel=3, time_step_rank=4, use_bias=True, tie_word_embeddings=False)),
    "mamba-bare": ("MambaConfig", states | dict(
        num_hidden_layers=3, hidden_size=14, expand=3, state_size=4, use_conv_bias=False, hidden_act="gelu")),
    "mamba2": ("Mamba2Config", states | dict(
        hidden_size=18, num_heads=6, head_dim=6, n_groups=2, state_size=5, conv_kernel=3, use_bias=True, chunk_size=4,
        time_step_limit=(0.3, 1.1))),
    "mamba2-one": ("Mamba2Config", states | dict(
        hidden_size=15, expand=1, num_heads=5, head_dim=3, n_groups=1, state_size=7, use_conv_bias=False,
        tie_word_embeddings=True)),
    # Encoders: asked for masked tokens, by the second of two texts too.
    "bert": ("BertConfig", encoder | dict(type_vocab_size=3, num_hidden_layers=3, hidden_act="gelu_new")),
    "bert-untied": ("BertConfig", encoder | dict(hidden_act="relu", tie_word_embeddings=False, layer_norm_eps=0.01)),
    "distilbert": ("DistilBertConfig", dict(
        vocab_size=43, n_layers=3, dim=18, n_heads=3, hidden_dim=22, max_position_embeddings=40, pad_token_id=0,
        sinusoidal_pos_embds=True)),
    "roberta": ("RobertaConfig", encoder | dict(pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1)),
    "xlm_roberta": ("XLMRobertaConfig", encoder | dict(
        pad_token_id=4, bos_token_id=0, eos_token_id=2, type_vocab_size=2, hidden_act="silu")),
    "modernbert": ("ModernBertConfig", encoder | dict(
        num_hidden_layers=4, hidden_size=24, local_attention=6, global_attn_every_n_layers=3, norm_eps=1e-4,
        bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=300.0),
            sliding_attention=dict(rope_type="default", rope_theta=40.0)))),
    "modernbert-biased": ("ModernBertConfig", encoder | dict(
        num_hidden_layers=3, hidden_size=24, local_attention=4, global_attn_every_n_layers=2, norm_bias=True,
        attention_bias=True, mlp_bias=True, classifier_bias=True, decoder_bias=False, classifier_activation="silu",
        hidden_activation="relu", bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
        tie_word_embeddings=False, rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=300.0),
            sliding_attention=dict(rope_type="default", rope_theta=300.0)))),
}
ENCODERS = ("bert", "distilbert", "roberta", "xlm_roberta", "modernbert")


def drawn(model, seed, gain_around, size=1.6):
    """Every parameter anew: matrices of a size that makes attention look somewhere, gains and biases far from 1 and 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            matrix = parameter.dim() >= 2 and "norm" not in name
            gain = not matrix and name.endswith("weight")
            if name.endswith("sinks"):
                noise = 4 * noise
            value = noise * (size / parameter.shape[-1] ** 0.5 if matrix else 0.4) + (gain_around if gain else 0)
            parameter.copy_(value)
        for name, buffer in model.named_buffers():  # of xIELU
            if name.endswith((".act_fn.beta", ".act_fn.eps")):
                buffer.copy_(torch.tensor(0.37 if name.endswith("beta") else -1e-4, dtype=torch.float64))
            if name.endswith(".e_score_correction_bias"):
                buffer.copy_(torch.rand(buffer.shape, generator=generator, dtype=torch.float32))


def in_blocks(model, seed):
    """All experts anew, in 4 bits: what the file holds in their place, as the library itself decodes it."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    generator, stored = torch.Generator().manual_seed(seed), {}
    for name, parameter in model.named_parameters():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            experts, inner, outer = parameter.shape
            blocks = torch.randint(0, 256, (experts, outer, inner // 32, 16), generator=generator, dtype=torch.uint8)
            scales = torch.randint(122, 126, (experts, outer, inner // 32), generator=generator, dtype=torch.uint8)
            with torch.no_grad():
                parameter.copy_(convert_moe_packed_tensors(blocks, scales, dtype=torch.float64))
            stored[name] = {name + "_blocks": ("U8", blocks.numpy()), name + "_scales": ("U8", scales.numpy())}
    return stored


def published(name, key, value):
    """(name in the files of this family, tensor) of a parameter: the library of today keeps all experts in one."""
    key = "embed_out.weight" if (name, key) == ("gpt_neox-serial", "lm_head.weight") else key
    key = "roberta.embeddings.word_embeddings.weight" if (name, key) == ("xlm_roberta", "lm_head.decoder.weight") else key
    if name.startswith("gpt_oss") or ".mlp." not in key or not any(x in key for x in (".experts.", ".mlp.gate.")):
        return [(key, value)]
    mixtral = name.startswith("mixtral")
    key = key.replace(".mlp.", ".block_sparse_moe.") if mixtral else key
    w = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    if key.endswith("experts.gate_up_proj"):
        at, half = key.removesuffix("gate_up_proj"), value.shape[1] // 2
        return [(f"{at}{e}.{part}.weight", both[rows]) for e, both in enumerate(value)
                for part, rows in ((w[0], slice(half)), (w[1], slice(half, None)))]
    if key.endswith("experts.down_proj"):
        at = key.removesuffix("down_proj")
        return [(f"{at}{e}.{w[2]}.weight", own) for e, own in enumerate(value)]
    return [(key, value)]


def word_piece(vocabulary):
    """A tokenizer.json as BERT's: words and pieces, [CLS] before and [SEP] behind every text."""
    special = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
    words = "the a cat dog bird sat ran saw on mat tree and it he she was red big ##s ##ed ##er , . ?".split()
    tokens = special + words + [f"w{i}" for i in range(vocabulary - len(special) - len(words))]
    at = lambda name, kind: {"SpecialToken": {"id": name, "type_id": kind}}
    text = lambda name, kind: {"Sequence": {"id": name, "type_id": kind}}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i, name in enumerate(special)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": [at("[CLS]", 0), text("A", 0), at("[SEP]", 0)],
            "pair": [at("[CLS]", 0), text("A", 0), at("[SEP]", 0), text("B", 1), at("[SEP]", 1)],
            "special_tokens": {name: {"id": name, "ids": [tokens.index(name)], "tokens": [name]}
                               for name in ("[CLS]", "[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {token: i for i, token in enumerate(tokens)}},
    }


def closest(config, logits, correction):
    """By how little the last expert, or the last group, that was chosen is better than the next."""
    def gap(values, taken):
        order = values.sort(dim=-1, descending=True).values
        return float((order[:, taken - 1] - order[:, taken]).min()) if taken < values.shape[-1] else 1.0

    if not config.model_type.startswith("deepseek"):
        return gap(logits, config.num_experts_per_tok)
    by = logits.softmax(-1) if correction is None else logits.sigmoid() + correction
    if (config.n_group or 1) == 1:
        return gap(by, config.num_experts_per_tok)
    groups = by.reshape(len(by), config.n_group, -1)
    best = groups.topk(1 if correction is None else 2, dim=-1).values.sum(-1)
    kept = torch.zeros_like(best).scatter(1, best.topk(config.topk_group).indices, 1.0)
    inside = groups.masked_fill(kept[..., None] == 0, -1.0).reshape(by.shape)
    return min(gap(best, config.topk_group), gap(inside, config.num_experts_per_tok))


def watch_routers(model, config, seen):
    """The logits of every router, as `seen[layer]`; a token whose last expert is nearly another's is no test."""
    count, taken = getattr(config, "num_local_experts", None) or getattr(config, "num_experts", 0), config.num_experts_per_tok

    def hook(layer):
        def of(module, inputs, _):
            bias = getattr(module, "bias", None)
            logits = torch.nn.functional.linear(inputs[0].reshape(-1, inputs[0].shape[-1]), module.weight, bias)
            assert taken == count or closest(config, logits, getattr(module, "e_score_correction_bias", None)) > 1e-3, "a close choice"
            seen[layer] = logits
        return of

    for name, module in model.named_modules():
        if name.endswith((".mlp.gate", ".mlp.router", ".block_sparse_moe.gate")) and module.weight.shape[0] == count:
            module.register_forward_hook(hook(int(name.split(".layers.")[1].split(".")[0])))


def add_alibi_once(model):
    """The eager path of Falcon adds ALiBi twice, to the scores and within the mask; SDPA, by which such models run, once.
    Here the one in the mask stays, and the logits are those of SDPA."""
    ids = torch.tensor([TEXT])
    other = transformers.AutoModelForCausalLM.from_config(copy.deepcopy(model.config), attn_implementation="sdpa")
    other.eval().to(torch.float64).load_state_dict(model.state_dict())
    for block in model.transformer.h:
        own = block.self_attention.forward
        block.self_attention.forward = lambda *a, own=own, **k: own(*a, **(k | dict(alibi=torch.zeros_like(k["alibi"]))))
    with torch.no_grad():
        gap = (model(ids, use_cache=False).logits - other(ids, use_cache=False).logits).abs().max()
        assert gap < 1e-9, "not what SDPA computes"


def in_doubles(module):
    """These files of the library compute some steps in float32 whatever the model's type; here all are float64."""
    class Doubles:
        float32 = torch.float64

        def __getattr__(self, name):
            return getattr(torch, name)

    module.torch = Doubles()
    torch.Tensor.float = torch.Tensor.double


def watch_states(model, seen, streams):
    """What every layer's state is given, of its last pass: `seen[layer]` = x (token, lane, width), Δ (token, lane), a
    (lane, state), B and C (token, lane, state); of Mamba a lane is a channel, of Mamba-2 a head. `streams[layer]`: what
    the block reads."""
    import importlib
    kind = model.config.model_type
    module = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    in_doubles(module)
    name = "mamba_selective_scan" if kind == "mamba" else "mamba2_chunk_scan"
    scan, layer = getattr(module, name), [-1]

    def channels(x, dt, a, b, c, delta_bias=None, **_):
        delta = torch.nn.functional.softplus(dt + delta_bias[:, None])[0].T
        wide = lambda y: y[0].T[:, None].expand(-1, x.shape[1], -1)
        return x[0].T[:, :, None], delta, a, wide(b), wide(c)

    def heads(x, dt, a, b, c, dt_bias=None, dt_limit=None, **_):
        delta = torch.nn.functional.softplus(dt + dt_bias)[0].clamp(*dt_limit)
        wide = lambda y: y[0].repeat_interleave(x.shape[2] // y.shape[2], dim=1)
        return x[0], delta, a[:, None].expand(-1, b.shape[-1]), wide(b), wide(c)

    def watched(*args, **kwargs):
        layer[0] = (layer[0] + 1) % model.config.num_hidden_layers
        args = tuple(args) + tuple(kwargs[key] for key in "ABC" if key in kwargs)
        rest = {key: value for key, value in kwargs.items() if key not in "ABC"}
        seen[layer[0]] = (channels if kind == "mamba" else heads)(*args, **rest)
        return scan(*args, **rest)

    setattr(module, name, watched)
    for index, block in enumerate(model.backbone.layers):
        block.register_forward_pre_hook(lambda _, inputs, index=index: streams.__setitem__(index, inputs[0][0]))


def hidden_attention(states, count):
    """(head, query, key) by the formula of Ali et al. 2024: α_ts = C_t · (exp(a Σ Δ_r) ∘ Δ_s B_s), s < r ≤ t; a head of
    Mamba, which has none, is as many neighbouring channels as any of `count`, of which this is the mean."""
    _, delta, a, b, c = states
    n, lanes = delta.shape
    alpha = torch.zeros(lanes, n, n)
    for t in range(n):
        for s in range(t + 1):
            decay = torch.exp(a * delta[s + 1:t + 1].sum(0)[:, None])  # (lane, state)
            alpha[:, t, s] = (c[t] * decay * delta[s][:, None] * b[s]).sum(-1)
    return alpha.reshape(count, lanes // count, n, n).mean(1)


def expected_states(config, seen):
    out = {}
    for layer, states in seen.items():
        x, delta, _, b, c = states
        channels = config.model_type == "mamba"
        count = max(k for k in range(1, 9) if delta.shape[1] % k == 0) if channels else config.num_heads
        groups = 1 if channels else config.n_groups
        at = f"blocks.{layer}."
        out[at + "attn.hook_pattern"] = hidden_attention(states, count)
        out[at + "mixer.hook_x"] = x.reshape(len(x), -1)
        out[at + "mixer.hook_delta"] = delta
        out[at + "mixer.hook_b"], out[at + "mixer.hook_c"] = (y[:, ::y.shape[1] // groups] for y in (b, c))
    return out


def make(name):
    config_class, settings = FAMILIES[name]
    config = getattr(transformers, config_class)(**settings)
    config._attn_implementation = config._experts_implementation = "eager"
    torch.set_default_dtype(torch.float64)
    encodes = type(config) in transformers.MODEL_FOR_MASKED_LM_MAPPING and name.startswith(ENCODERS)
    kind = transformers.AutoModelForMaskedLM if encodes else transformers.AutoModelForCausalLM
    model = kind.from_config(config, attn_implementation="eager").eval().to(torch.float64)
    state_space, states, streams = name.startswith("mamba"), {}, {}
    drawn(model, seed=sum(map(ord, name)), gain_around=0.0 if name.startswith("gemma") else 0.7,  # those add 1
          size=0.9 if state_space else 1.6)  # what a state amounts to grows with the product of three
    stored = in_blocks(model, seed=5) if name.endswith("mxfp4") else {}
    if getattr(config, "alibi", False):
        add_alibi_once(model)
    ids = torch.tensor([TEXT])
    routers = {}
    if hasattr(config, "num_experts_per_tok"):
        watch_routers(model, config, routers)
    if state_space:
        watch_states(model, states, streams)
    attentions = dict() if state_space else dict(output_attentions=True)
    with torch.no_grad():
        out = model(ids, output_hidden_states=True, **attentions, **(dict() if encodes else dict(use_cache=False)))
        hidden = expected_states(config, states)
        streams = dict(streams) if state_space else dict(enumerate(x[0] for x in out.hidden_states))
        logits_of_routers = dict(routers)
        chosen = list(TEXT)
        margins = []
        for _ in range(0 if encodes else STEPS):
            row = model(torch.tensor([chosen]), use_cache=False).logits[0, -1]
            top = torch.topk(row, 2).values
            margins.append(float(top[0] - top[1]))
            chosen.append(int(row.argmax()))
    assert encodes or min(margins) > 2e-4, (name, margins)

    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    # config.json as Hugging Face writes it, without what is only about this machine.
    written = config.to_dict()
    for key in ("dtype", "torch_dtype", "transformers_version", "_name_or_path", "architectures"):
        written.pop(key, None)
    written["model_type"] = config.model_type
    if stored:
        written["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn"])
    (folder / "config.json").write_text(json.dumps(written, indent=1) + "\n")
    if name == "bert":
        (folder / "tokenizer.json").write_text(json.dumps(word_piece(config.vocab_size), indent=1) + "\n")
    weights, seen = {}, set()
    for key, value in model.state_dict(keep_vars=True).items():
        if value.data_ptr() in seen or not (isinstance(value, torch.nn.Parameter) or key.endswith("e_score_correction_bias") or ".act_fn." in key):
            continue
        seen.add(value.data_ptr())
        # What the published files of this family call it; the library of today reads and writes both.
        if key in stored:
            weights |= stored[key]
            continue
        for own, tensor in published(name, key, value.detach()):
            weights[own] = tensor.numpy().astype("<f4")
    write_safetensors(folder / "model.safetensors", weights)
    f4 = lambda tensor: tensor.numpy().astype("<f4")
    expected = {"tokens": np.asarray(TEXT, "<i4"), "greedy": np.asarray(chosen[len(TEXT):], "<i4"),
                "logits": f4(out.logits[0])}
    if getattr(config, "type_vocab_size", 1) > 1:
        segments = torch.tensor([[0] * 5 + [1] * (len(TEXT) - 5)])
        with torch.no_grad():
            expected["segments"] = segments[0].numpy().astype("<i4")
            expected["logits_of_segments"] = f4(model(ids, token_type_ids=segments).logits[0])
    expected |= {key: f4(value.contiguous()) for key, value in hidden.items()}
    for layer in range(config.num_hidden_layers):
        if not state_space:
            expected[f"blocks.{layer}.attn.hook_pattern"] = f4(out.attentions[layer][0])
        expected[f"blocks.{layer}.hook_resid_pre"] = f4(streams[layer])
    for layer, logits in logits_of_routers.items():
        expected[f"blocks.{layer}.mlp.hook_router_logits"] = f4(logits)
    write_safetensors(folder / "expected.safetensors", expected)
    print(name, sum(file.stat().st_size for file in folder.iterdir()), "bytes, logits to", float(out.logits.abs().max()))


if __name__ == "__main__":
    for family in sys.argv[1:] or FAMILIES:
        make(family)
