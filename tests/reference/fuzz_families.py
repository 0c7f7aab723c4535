"""Random tiny models of every family, run by headscope-cli and by `transformers` in float64.

    python tests/reference/fuzz_families.py --cli build/release/app/headscope-cli [-n 20] [--seed 1] [family …]
    python tests/reference/fuzz_families.py --cli … --case phi3:117        # one case again, its folder kept and its differences told

Not a part of ./test. A case is a configuration drawn from what a family's config.json can say, saved by save_pretrained as
people's folders are, and a random text; logits and every attention pattern are compared. What differs is a fault here or
there; what is refused is told with the reason, and is a fault where people have such models. What comes out of it becomes a
fixture in make_families.py.
"""

import argparse
import collections
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers
from make_families import closest, drawn, taken_of
from safetensors.numpy import load_file

LOGITS, PATTERNS = 3e-4, 1e-4  # what float32 may be off, of the largest logit, and of a weight
CLOSE = 2e-5  # two experts so near each other may be chosen otherwise in float32


# ---- what a configuration can say

def shape(r, own_head=True, even=True, grouped=True, multiple=1):
    heads = r.choice([1, 2, 3, 4, 5, 6, 8])
    kv = r.choice([k for k in range(1, heads + 1) if heads % k == 0]) if grouped else heads
    d = multiple * r.choice([2, 4, 6, 8, 10] if even else [1, 2, 3, 4, 5, 7, 8])
    own = own_head and r.random() < 0.6
    hidden = heads * (r.choice([2, 3, 5]) if own else d)
    c = dict(vocab_size=r.choice([23, 43, 64]), num_hidden_layers=r.choice([1, 2, 3, 4]), hidden_size=hidden,
             num_attention_heads=heads, intermediate_size=r.choice([5, 12, 22, 33]), max_position_embeddings=r.choice([32, 40, 64]),
             bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=r.random() < 0.5)
    if grouped:
        c["num_key_value_heads"] = kv
    if own:
        c["head_dim"] = d
    c["_d"] = d
    return c


def rope(r, c, kinds=("default", "default", "linear", "llama3", "yarn", "dynamic", "longrope"), share=None):
    kind, d = r.choice(kinds), c["_d"]
    p = dict(rope_type=kind, rope_theta=r.choice([20.0, 100.0, 1000.0, 10000.0]))
    if share is not None:
        p["partial_rotary_factor"] = share
        d = int(d * share)
    context = r.choice([4, 8, 16])
    if kind != "default":
        p["factor"] = r.choice([1.5, 2.0, 4.0, 8.0])
    if kind == "llama3":
        p |= dict(low_freq_factor=r.choice([0.5, 1.0]), high_freq_factor=r.choice([2.0, 4.0]), original_max_position_embeddings=context)
    if kind == "yarn":
        p |= dict(original_max_position_embeddings=context)
        if r.random() < 0.5:
            p |= dict(beta_fast=r.choice([2.0, 16.0, 32.0]), beta_slow=r.choice([0.2, 1.0]))
        if r.random() < 0.3:
            p |= dict(attention_factor=r.choice([0.8, 1.3]))
        elif r.random() < 0.4:
            p |= dict(mscale=r.choice([0.7, 1.0]), mscale_all_dim=r.choice([0.5, 1.0]))
        if r.random() < 0.3:
            p |= dict(truncate=False)
    if kind == "longrope":
        p |= dict(original_max_position_embeddings=context, short_factor=[r.uniform(1, 2) for _ in range(d // 2)],
                  long_factor=[r.uniform(1, 6) for _ in range(d // 2)])
        if r.random() < 0.5:
            del p["factor"]
        if r.random() < 0.3:
            p |= dict(attention_factor=r.choice([0.8, 1.3]))
    c["rope_parameters"] = p
    return c


def windows(r, c, key="sliding_window"):
    if r.random() < 0.6:
        c[key] = r.choice([1, 2, 3, 5, 9])
    else:
        c[key] = None
    return c


def layer_types(r, c, window=True):
    c["layer_types"] = [r.choice(["sliding_attention", "full_attention"]) for _ in range(c["num_hidden_layers"])]
    c["sliding_window"] = r.choice([1, 2, 3, 5, 9])
    return c


def experts(r, c, count="num_experts", width=None):
    n = r.choice([1, 2, 3, 5, 8])
    c |= {count: n, "num_experts_per_tok": r.randint(1, n)}
    if width:
        c[width] = r.choice([3, 7, 10])
    return c


flip = lambda r: r.random() < 0.5
act = lambda r: r.choice(["silu", "silu", "gelu", "gelu_pytorch_tanh", "relu"])


def llama(r):
    return rope(r, shape(r)) | dict(attention_bias=flip(r), mlp_bias=flip(r), hidden_act=act(r), rms_norm_eps=r.choice([1e-6, 1e-5, 0.01]))


def qwen2(r):
    c = rope(r, shape(r, own_head=False)) | dict(hidden_act=act(r), use_sliding_window=flip(r), max_window_layers=r.randint(0, 3))
    return c | dict(sliding_window=r.choice([2, 4, 7]))


def qwen3(r):
    c = rope(r, shape(r)) | dict(attention_bias=flip(r), use_sliding_window=flip(r), max_window_layers=r.randint(0, 3))
    c.setdefault("head_dim", c["_d"])
    return c | dict(sliding_window=r.choice([2, 4, 7]))


def mistral(r):
    return windows(r, rope(r, shape(r))) | dict(hidden_act=act(r))


def starcoder2(r):
    return windows(r, rope(r, shape(r, own_head=False))) | dict(use_bias=flip(r), hidden_act=r.choice(["gelu_pytorch_tanh", "gelu", "silu"]))


def phi3(r):
    c = windows(r, shape(r, own_head=False, multiple=2))
    share = r.choice([1.0, 1.0, 0.75, 0.5])
    while int(c["_d"] * share) % 2:
        share = 1.0
    c = rope(r, c, ("default", "longrope", "longrope"), share)
    return c | dict(original_max_position_embeddings=c["rope_parameters"].get("original_max_position_embeddings", c["max_position_embeddings"]))


def partial(r, name="partial_rotary_factor"):
    c = shape(r, own_head=False, multiple=2, grouped=name != "rotary_pct")
    share = r.choice([1.0, 0.5, 0.25, 0.75])
    while int(c["_d"] * share) % 2 or int(c["_d"] * share) < 2:
        share = 1.0
    return rope(r, c, ("default", "default", "linear", "dynamic", "yarn", "llama3"), share)


def gpt_neox(r):
    return partial(r, "rotary_pct") | dict(attention_bias=flip(r), use_parallel_residual=flip(r), hidden_act=r.choice(["gelu", "gelu_new", "relu"]))


def phi(r):
    return partial(r) | dict(qk_layernorm=flip(r), hidden_act=r.choice(["gelu_new", "gelu"]))


def stablelm(r):
    return partial(r) | dict(use_qkv_bias=flip(r), use_parallel_residual=flip(r))


def gpt_neo(r):
    heads = r.choice([1, 2, 3, 5])
    kinds = [r.choice(["global", "local"]) for _ in range(r.choice([1, 2, 3]))]
    return dict(vocab_size=43, num_layers=len(kinds), num_heads=heads, hidden_size=heads * r.choice([3, 4, 7]), intermediate_size=r.choice([None, 20]),
                max_position_embeddings=40, window_size=r.choice([1, 3, 5]), attention_types=[[kinds, 1]], bos_token_id=1, eos_token_id=2,
                activation_function=r.choice(["gelu_new", "relu"]))


def gpt2(r):
    heads = r.choice([1, 2, 3, 5])
    return dict(vocab_size=43, n_positions=40, n_embd=heads * r.choice([3, 4, 7]), n_layer=r.choice([1, 2, 3]), n_head=heads, n_inner=r.choice([None, 20]),
                activation_function=r.choice(["gelu_new", "gelu", "relu"]), scale_attn_weights=flip(r),
                scale_attn_by_inverse_layer_idx=flip(r), tie_word_embeddings=flip(r), bos_token_id=1, eos_token_id=2)


def gpt_bigcode(r):
    heads = r.choice([1, 2, 3, 5])
    return dict(vocab_size=43, n_positions=40, n_embd=heads * r.choice([3, 4, 7]), n_layer=r.choice([1, 2, 3]), n_head=heads, n_inner=20, multi_query=flip(r),
                scale_attn_weights=flip(r), tie_word_embeddings=flip(r), bos_token_id=1, eos_token_id=2)


def gptj(r):
    heads, d = r.choice([1, 2, 4]), r.choice([4, 6, 8])
    return dict(vocab_size=43, n_positions=40, n_embd=heads * d, n_layer=r.choice([1, 2, 3]), n_inner=r.choice([None, 20]), n_head=heads,
                rotary_dim=r.choice([2, 4]), bos_token_id=1, eos_token_id=2, tie_word_embeddings=flip(r))


def codegen(r):
    return gptj(r) | dict(n_ctx=40, n_head=4, n_embd=4 * r.choice([4, 6, 8]))


def gemma(r):
    c = rope(r, shape(r))
    c.setdefault("head_dim", c["_d"])
    return c | dict(attention_bias=flip(r))


def gemma2(r):
    c = gemma(r)
    return c | dict(query_pre_attn_scalar=r.choice([3, 8, 17]), sliding_window=r.choice([1, 3, 6]),
                    attn_logit_softcapping=r.choice([None, 1.5, 30.0]), final_logit_softcapping=r.choice([None, 2.0, 30.0]))


def gemma3(r):
    c = layer_types(r, shape(r))
    c.setdefault("head_dim", c["_d"])
    both = {kind: rope(r, dict(c), ("default", "linear", "dynamic", "yarn"))["rope_parameters"] for kind in ("full_attention", "sliding_attention")}
    return c | dict(query_pre_attn_scalar=r.choice([3, 8, 17]), final_logit_softcapping=r.choice([None, None, 2.0]), rope_parameters=both, attention_bias=flip(r))


def olmo(r):
    return rope(r, shape(r, own_head=False)) | dict(clip_qkv=r.choice([None, 0.5]), attention_bias=flip(r))


def olmo2(r):
    return rope(r, shape(r, own_head=False)) | dict(attention_bias=flip(r))


def olmo3(r):
    c = layer_types(r, rope(r, shape(r, own_head=False), ("default", "yarn", "linear")))
    return c | dict(attention_bias=flip(r))


def smollm3(r):
    c = rope(r, shape(r, own_head=False)) | dict(attention_bias=flip(r), mlp_bias=flip(r))
    c["no_rope_layers"] = [r.randint(0, 1) for _ in range(c["num_hidden_layers"])]
    if flip(r):
        c |= dict(use_sliding_window=True, sliding_window=r.choice([2, 4]))
        if flip(r):
            layer_types(r, c)
    return c


def opt(r):
    heads = r.choice([1, 2, 3, 5])
    hidden = heads * r.choice([3, 4, 7])
    return dict(vocab_size=43, hidden_size=hidden, num_hidden_layers=r.choice([1, 2, 3]), num_attention_heads=heads, ffn_dim=r.choice([11, 22]),
                max_position_embeddings=40, word_embed_proj_dim=hidden, bos_token_id=1, eos_token_id=2, enable_bias=flip(r),
                layer_norm_elementwise_affine=flip(r), activation_function=r.choice(["relu", "gelu"]), tie_word_embeddings=flip(r))


def bloom(r):
    heads = r.choice([1, 2, 3, 5, 8])
    return dict(vocab_size=43, hidden_size=heads * r.choice([3, 4, 7]), n_layer=r.choice([1, 2, 3]), n_head=heads, bos_token_id=1, eos_token_id=2,
                apply_residual_connection_post_layernorm=r.random() < 0.2, tie_word_embeddings=flip(r))


def falcon(r):
    c = rope(r, shape(r, own_head=False, grouped=False), ("default", "default", "linear", "dynamic"))
    heads = c["num_attention_heads"]
    c |= dict(bias=flip(r), new_decoder_architecture=flip(r), multi_query=flip(r), parallel_attn=flip(r), alibi=r.random() < 0.1)
    c.pop("intermediate_size")
    if c["new_decoder_architecture"]:
        c["num_kv_heads"] = r.choice([k for k in range(1, heads + 1) if heads % k == 0])
        c["num_ln_in_parallel_attn"] = r.choice([None, 1, 2])
    return c


def mpt(r):
    heads = r.choice([1, 2, 3, 6, 8])
    return dict(vocab_size=43, d_model=heads * r.choice([3, 4, 7]), n_heads=heads, n_layers=r.choice([1, 2, 3]), max_seq_len=40,
                attn_config=dict(alibi=True, clip_qkv=r.choice([None, 0.8]), softmax_scale=r.choice([None, 0.6]), alibi_bias_max=r.choice([8, 4])),
                no_bias=r.random() < 0.8, bos_token_id=1, eos_token_id=2)


def cohere(r):
    return rope(r, shape(r, own_head=False), ("default", "linear", "dynamic")) | dict(logit_scale=r.choice([0.3, 1.0]), use_qk_norm=flip(r), attention_bias=flip(r))


def granite(r):
    return rope(r, shape(r, own_head=False)) | dict(embedding_multiplier=r.choice([1.0, 3.0]), logits_scaling=r.choice([1.0, 0.7, 8.0]), residual_multiplier=r.choice([1.0, 0.4]),
                                    attention_multiplier=r.choice([1.0, 0.3]), attention_bias=flip(r), mlp_bias=flip(r))


def apertus(r):
    return rope(r, shape(r)) | dict(attention_bias=flip(r), hidden_act=r.choice(["xielu", "xielu", "silu"]))


def mixtral(r):
    c = experts(r, windows(r, rope(r, shape(r))), "num_local_experts")
    c.setdefault("head_dim", c["_d"])  # without it the library's scalings fail
    return c


def qwen3_moe(r):
    c = experts(r, rope(r, shape(r)), "num_experts", "moe_intermediate_size")
    c.setdefault("head_dim", c["_d"])
    return c | dict(norm_topk_prob=flip(r), attention_bias=flip(r), decoder_sparse_step=r.choice([1, 1, 2]), mlp_only_layers=r.choice([[], [], [0]]),
                    use_sliding_window=flip(r), sliding_window=r.choice([2, 4]))


def olmoe(r):
    return experts(r, rope(r, shape(r, own_head=False))) | dict(norm_topk_prob=flip(r), clip_qkv=r.choice([None, 0.9]), attention_bias=flip(r))


def gpt_oss(r):
    c = experts(r, layer_types(r, rope(r, shape(r), ("default", "yarn"))), "num_local_experts")
    c.setdefault("head_dim", c["_d"])
    return c | dict(attention_bias=flip(r))


def deepseek(r):
    c = shape(r, own_head=False, grouped=False)
    c |= dict(q_lora_rank=r.choice([None, 5, 8]), kv_lora_rank=r.choice([3, 6]), qk_nope_head_dim=r.choice([2, 5, 6]), qk_rope_head_dim=r.choice([2, 4, 8]),
              v_head_dim=r.choice([3, 4, 9]), attention_bias=flip(r), moe_intermediate_size=r.choice([3, 7]), n_shared_experts=r.choice([1, 2]),
              first_k_dense_replace=r.randint(0, c["num_hidden_layers"]), routed_scaling_factor=r.choice([1.0, 1.7, 2.5]))
    c["num_key_value_heads"] = c["num_attention_heads"]
    c["_d"] = c["qk_rope_head_dim"]
    groups = r.choice([1, 2, 4])
    n = groups * r.choice([2, 3])
    kept = r.randint(1, groups)
    return rope(r, c, ("default", "yarn", "yarn")) | dict(n_routed_experts=n, n_group=groups, topk_group=kept, num_experts_per_tok=r.randint(1, kept * n // groups))


def deepseek_v2(r):
    c = deepseek(r)
    return c | dict(mlp_bias=flip(r), topk_method=r.choice(["greedy", "group_limited_greedy"]))


def deepseek_v3(r):
    return deepseek(r) | dict(norm_topk_prob=flip(r), rope_interleave=flip(r))


def gemma4(r, unified=False):
    c = shape(r)
    c["head_dim"] = c["_d"]
    layers = c["num_hidden_layers"] = r.choice([2, 3, 4, 6])
    types = [r.choice(["sliding_attention", "full_attention"]) for _ in range(layers - 1)] + ["full_attention"]
    able = [n for n in range(layers) if n == 0 or set(types[:layers - n]) == set(types)]
    heads = [k for k in range(1, c["num_attention_heads"] + 1) if c["num_attention_heads"] % k == 0]
    c |= dict(layer_types=types, sliding_window=r.choice([1, 3, 6]), global_head_dim=r.choice([2, 4, 8, 12]),
              num_kv_shared_layers=r.choice(able), attention_k_eq_v=flip(r), use_double_wide_mlp=flip(r),
              final_logit_softcapping=r.choice([None, 2.0, 30.0]), attention_bias=flip(r), rms_norm_eps=r.choice([1e-6, 0.01]))
    if flip(r):
        c["num_global_key_value_heads"] = r.choice(heads)
    if flip(r):
        c["rope_parameters"] = dict(
            full_attention=dict(rope_type="proportional", rope_theta=r.choice([20.0, 1000.0]), partial_rotary_factor=r.choice([0.25, 0.5, 0.7, 1.0])),
            sliding_attention=dict(rope_type="default", rope_theta=r.choice([20.0, 1000.0])))
    if unified:
        return c
    c |= dict(hidden_size_per_layer_input=r.choice([0, 3, 6]), vocab_size_per_layer_input=c["vocab_size"] + r.choice([0, 5]))
    if r.random() < 0.4:
        count = r.choice([2, 4, 7])
        c |= dict(enable_moe_block=True, num_experts=count, top_k_experts=r.randint(1, count), moe_intermediate_size=r.choice([3, 8]))
    return c


def llama4(r):
    c = rope(r, shape(r), ("default", "default", "llama3", "linear"))
    c["head_dim"] = c["_d"]
    count, layers = r.choice([2, 4, 6]), c["num_hidden_layers"]
    c |= dict(intermediate_size_mlp=r.choice([6, 17]), num_local_experts=count, num_experts_per_tok=r.randint(1, min(3, count)),
              use_qk_norm=flip(r), attn_temperature_tuning=flip(r), floor_scale=r.choice([2, 5, 100]), attn_scale=r.choice([0.1, 0.6]),
              attention_chunk_size=r.choice([None, 2, 5, 64]), attention_bias=flip(r))
    return c | (dict(no_rope_layers=[r.choice([0, 1]) for _ in range(layers)], moe_layers=[i for i in range(layers) if flip(r)])
                if flip(r) else dict(no_rope_layer_interval=r.choice([1, 2, 4]), interleave_moe_layer_step=r.choice([1, 2])))


def deltas(r, c):
    """Layers of the gated delta rule beside those that attend."""
    groups = r.choice([1, 2, 3])
    lanes = groups * c["num_attention_heads"] * r.choice([1, 2])
    return c | dict(linear_num_value_heads=lanes, linear_num_key_heads=groups, linear_key_head_dim=r.choice([3, 4, 7]),
                    linear_value_head_dim=r.choice([2, 3, 5]), linear_conv_kernel_dim=r.choice([1, 2, 4]), rms_norm_eps=r.choice([0.01, 0.1]),
                    layer_types=[r.choice(["linear_attention", "full_attention"]) for _ in range(c["num_hidden_layers"])])


def quarter(r, c):
    """Heads of which a part turns."""
    c["head_dim"] = c["_d"] = 2 * c["_d"]
    return rope(r, c, ("default", "default", "linear", "yarn"), r.choice([share for share in (1.0, 0.5) if int(c["_d"] * share) % 2 == 0]))


def qwen3_5_moe(r):
    c = experts(r, deltas(r, quarter(r, shape(r))), "num_experts", "moe_intermediate_size")
    c.pop("intermediate_size")
    return c | dict(shared_expert_intermediate_size=r.choice([3, 8]), attention_bias=flip(r))


def lfm2_moe(r):
    c = experts(r, rope(r, shape(r, own_head=False)), "num_experts", "moe_intermediate_size")
    return c | dict(conv_L_cache=r.choice([1, 2, 3, 5]), conv_bias=flip(r), norm_eps=r.choice([1e-5, 0.01]), use_expert_bias=flip(r), norm_topk_prob=flip(r),
                    num_dense_layers=r.randint(0, c["num_hidden_layers"]), routed_scaling_factor=r.choice([1.0, 1.6]),
                    layer_types=[r.choice(["conv", "full_attention"]) for _ in range(c["num_hidden_layers"])])


def hunyuan_v1_moe(r):
    c = shape(r)
    c.setdefault("head_dim", c["_d"])
    c = rope(r, c, ("default", "linear"))
    if flip(r):
        c["rope_parameters"] = dict(rope_type="dynamic", rope_theta=100.0, factor=1.0, alpha=r.choice([3.0, 20.0]))
    n = r.choice([1, 2, 3, 5])
    return c | dict(num_experts=n, moe_topk=r.randint(1, n), attention_bias=flip(r), hidden_act=act(r))


def exaone_moe(r):
    c = layer_types(r, rope(r, shape(r), ("default", "default", "linear", "llama3")))
    groups = r.choice([1, 1, 2, 3])
    kept = r.randint(1, groups)
    n = groups * r.choice([2, 3])
    return c | dict(num_experts=n, n_group=groups, topk_group=kept, num_experts_per_tok=r.randint(1, kept * n // groups), moe_intermediate_size=r.choice([3, 7]),
                    num_shared_experts=r.choice([1, 2]), norm_topk_prob=flip(r), routed_scaling_factor=r.choice([1.0, 2.5]), hidden_act=act(r),
                    mlp_layer_types=[r.choice(["dense", "sparse"]) for _ in range(c["num_hidden_layers"])])


def olmo_hybrid(r):
    c = deltas(r, rope(r, shape(r, own_head=False), ("default", "linear", "yarn")))
    c["num_hidden_layers"] += c["num_hidden_layers"] == 1
    kinds = ["full_attention", "linear_attention"] + [r.choice(["linear_attention", "full_attention"]) for _ in range(c["num_hidden_layers"] - 2)]
    r.shuffle(kinds)
    if flip(r):
        c["rope_parameters"] = dict(rope_type="default", rope_theta=None)
    return c | dict(layer_types=kinds, attention_bias=flip(r), linear_allow_neg_eigval=flip(r), hidden_act=act(r))


def falcon_mamba(r):
    hidden = r.choice([4, 6, 10])
    return dict(vocab_size=43, hidden_size=hidden, state_size=r.choice([1, 3, 5]), num_hidden_layers=r.choice([1, 2, 3]), expand=r.choice([1, 2, 3]),
                conv_kernel=r.choice([2, 3, 4]), use_bias=flip(r), use_conv_bias=flip(r), time_step_rank=r.choice(["auto", 1, 3]),
                mixer_rms_eps=r.choice([1e-6, 0.01]), tie_word_embeddings=flip(r), bos_token_id=1, eos_token_id=2)


def nemotron_h(r):
    heads = r.choice([1, 2, 3])
    pattern = "".join(r.choice("M*") + r.choice(["", "-", "E", "E"]) for _ in range(r.choice([1, 2, 3])))
    groups, n_group = r.choice([1, 2]), r.choice([1, 2])
    kept = r.randint(1, n_group)
    n = n_group * r.choice([2, 3])
    return dict(vocab_size=43, hidden_size=heads * r.choice([4, 5]), num_attention_heads=heads, num_key_value_heads=r.choice([1, heads]), head_dim=r.choice([4, 6]),
                intermediate_size=r.choice([5, 12]), hybrid_override_pattern=pattern, ssm_state_size=r.choice([3, 5]), mamba_num_heads=2 * heads * groups,
                mamba_head_dim=r.choice([3, 4]), n_groups=groups, conv_kernel=r.choice([2, 4]), chunk_size=4, mlp_bias=flip(r), use_conv_bias=flip(r),
                n_routed_experts=n, n_group=n_group, topk_group=kept, num_experts_per_tok=r.randint(1, kept * n // n_group), moe_intermediate_size=r.choice([3, 7]),
                moe_shared_expert_intermediate_size=r.choice([4, 9]), routed_scaling_factor=r.choice([1.0, 2.5]), norm_topk_prob=flip(r), bos_token_id=1, eos_token_id=2)


def sarvam_moe(r):
    c = rope(r, shape(r), ("default", "default", "linear", "yarn"))
    c.setdefault("head_dim", c["_d"])
    groups = r.choice([1, 1, 2, 3])
    kept = r.randint(1, groups)
    n = groups * r.choice([2, 3])
    return c | dict(n_routed_experts=n, n_group=groups, topk_group=kept, num_experts_per_tok=r.randint(1, kept * n // groups), moe_intermediate_size=r.choice([3, 7]),
                    n_shared_experts=r.choice([1, 2]), norm_topk_prob=flip(r), routed_scaling_factor=r.choice([1.0, 2.5]), attention_bias=flip(r), use_qk_norm=flip(r),
                    first_k_dense_replace=r.randint(0, c["num_hidden_layers"]))


FAMILIES = {
    "gemma4_text": ("Gemma4TextConfig", gemma4), "gemma4_unified_text": ("Gemma4UnifiedTextConfig", lambda r: gemma4(r, True)),
    "llama4_text": ("Llama4TextConfig", llama4),
    "olmo_hybrid": ("OlmoHybridConfig", olmo_hybrid), "falcon_mamba": ("FalconMambaConfig", falcon_mamba), "nemotron_h": ("NemotronHConfig", nemotron_h),
    "sarvam_moe": ("SarvamMoEConfig", sarvam_moe),
    "qwen3_5_moe_text": ("Qwen3_5MoeTextConfig", qwen3_5_moe), "lfm2_moe": ("Lfm2MoeConfig", lfm2_moe),
    "hunyuan_v1_moe": ("HunYuanMoEV1Config", hunyuan_v1_moe), "exaone_moe": ("ExaoneMoeConfig", exaone_moe),
    "gpt2": ("GPT2Config", gpt2), "llama": ("LlamaConfig", llama), "qwen2": ("Qwen2Config", qwen2), "qwen3": ("Qwen3Config", qwen3),
    "mistral": ("MistralConfig", mistral), "gpt_neox": ("GPTNeoXConfig", gpt_neox), "gpt_neo": ("GPTNeoConfig", gpt_neo), "gptj": ("GPTJConfig", gptj),
    "codegen": ("CodeGenConfig", codegen), "gemma": ("GemmaConfig", gemma), "gemma2": ("Gemma2Config", gemma2), "gemma3_text": ("Gemma3TextConfig", gemma3),
    "phi": ("PhiConfig", phi), "phi3": ("Phi3Config", phi3), "olmo": ("OlmoConfig", olmo), "olmo2": ("Olmo2Config", olmo2), "olmo3": ("Olmo3Config", olmo3),
    "smollm3": ("SmolLM3Config", smollm3), "stablelm": ("StableLmConfig", stablelm), "opt": ("OPTConfig", opt), "bloom": ("BloomConfig", bloom),
    "falcon": ("FalconConfig", falcon), "mpt": ("MptConfig", mpt), "cohere": ("CohereConfig", cohere), "granite": ("GraniteConfig", granite),
    "gpt_bigcode": ("GPTBigCodeConfig", gpt_bigcode), "apertus": ("ApertusConfig", apertus), "starcoder2": ("Starcoder2Config", starcoder2),
    "mixtral": ("MixtralConfig", mixtral), "qwen3_moe": ("Qwen3MoeConfig", qwen3_moe), "olmoe": ("OlmoeConfig", olmoe), "gpt_oss": ("GptOssConfig", gpt_oss),
    "deepseek_v2": ("DeepseekV2Config", deepseek_v2), "deepseek_v3": ("DeepseekV3Config", deepseek_v3),
}


# Of these some layers mix by a state.
STATEFUL = ("qwen3_5_moe_text", "lfm2_moe", "olmo_hybrid", "falcon_mamba", "nemotron_h")


# ---- one case

class Close(Exception):
    pass


def watch_choices(model, config, margins):
    count = getattr(config, "n_routed_experts", None) or getattr(config, "num_local_experts", None) or getattr(config, "num_experts", 0)

    def hook(module, inputs, _):
        logits = torch.nn.functional.linear(inputs[0].reshape(-1, inputs[0].shape[-1]).double(), module.weight.double(),
                                            None if getattr(module, "bias", None) is None else module.bias.double())
        margins.append(closest(config, logits, getattr(around.get(module, module), "e_score_correction_bias",
                                                       getattr(around.get(module, module), "expert_bias", None))))

    around = {getattr(module, "gate", None): module for module in model.modules() if hasattr(module, "expert_bias")}
    for name, module in model.named_modules():
        if name.endswith((".mlp.gate", ".mlp.router", ".block_sparse_moe.gate", ".feed_forward.gate", ".mlp.gate.wg", ".mixer.gate", ".router.proj", ".feed_forward.router")) \
                and hasattr(module, "weight") and module.weight.shape[0] == count:
            module.register_forward_hook(hook)


def case(cli, family, seed, folder):
    """(what came of it, words)."""
    r = random.Random(f"{family}:{seed}")
    config_class, draw = FAMILIES[family]
    settings = {key: value for key, value in draw(r).items() if key != "_d"}
    torch.set_default_dtype(torch.float64)
    try:
        config = getattr(transformers, config_class)(**settings)
        config._attn_implementation = config._experts_implementation = "eager"
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().double()
        drawn(model, seed, gain_around=0.0 if family.startswith(("gemma", "qwen3_5")) and not family.startswith("gemma4") else 0.7,
              size=1.0 if family in STATEFUL else 1.6)
        length = r.randint(2, 24)
        ids = [r.randrange(config.vocab_size) for _ in range(length)]
        margins = []
        if taken_of(config):
            watch_choices(model, config, margins)
        with torch.no_grad():
            out = model(torch.tensor([ids]), use_cache=False, **(dict() if family == "falcon_mamba" else dict(output_attentions=True)))
    except Exception as failed:
        return "no model", f"{type(failed).__name__}: {str(failed).splitlines()[0]}"
    if not torch.isfinite(out.logits).all():
        return "no model", "logits are not finite"
    torch.set_default_dtype(torch.float32)
    model.float().save_pretrained(folder, save_original_format=flip(r))  # experts one by one, as published, or in one tensor
    # Weights are drawn in float32, so that both compute with the same numbers.
    done = subprocess.run([cli, "capture", "-m", str(folder), "--ids", ",".join(map(str, ids)), "--no-bos", "--sites", "logits", "-o", str(folder / "found.safetensors")],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return "refused", (done.stderr or done.stdout).strip().replace(str(folder), "…")
    found = load_file(folder / "found.safetensors")
    by_name = lambda ending: {name: value for name, value in found.items() if name.endswith(ending)}
    logits = next(iter(by_name("logits").values())).reshape(length, -1)
    expected = out.logits[0].numpy()
    off = float(np.abs(logits - expected).max() / max(1, np.abs(expected).max()))
    worst = 0.0
    blocks = [kind for kind in getattr(config, "layer_types", None) or [] if kind not in ("mlp", "moe")]
    attending = [layer for layer, kind in enumerate(blocks) if kind == "full_attention"]
    for at, pattern in enumerate(getattr(out, "attentions", None) or ()):
        layer = attending[at] if family in STATEFUL else at
        own = found[f"blocks.{layer}.attn.hook_pattern"].reshape(pattern[0].shape)
        worst = max(worst, float(np.abs(own - pattern[0].numpy()).max()))
    words = f"logits {off:.2g}, patterns {worst:.2g}"
    if off <= LOGITS and worst <= PATTERNS:
        return "same", words
    return ("close choice" if margins and min(margins) < CLOSE else "DIFFERENT"), words


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cli", default="build/release/app/headscope-cli")
    parser.add_argument("-n", type=int, default=10, help="cases of each family")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--case", help="FAMILY:SEED, once more")
    parser.add_argument("family", nargs="*")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    if options.case:
        family, seed = options.case.rsplit(":", 1)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="headscope-fuzz-"))
        print(*case(options.cli, family, int(seed), folder), sep=": ")
        print(folder)
        return
    told = collections.Counter()
    for family in options.family or FAMILIES:
        of = collections.Counter()
        for seed in range(options.seed, options.seed + options.n):
            folder = pathlib.Path(tempfile.mkdtemp(prefix="headscope-fuzz-"))
            try:
                what, words = case(options.cli, family, seed, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            of[what] += 1
            if what != "same":
                print(f"  {family}:{seed} {what}: {words}", flush=True)
        print(f"{family}: " + ", ".join(f"{count} {what}" for what, count in of.most_common()), flush=True)
        told += of
    print("all: " + ", ".join(f"{count} {what}" for what, count in told.most_common()))
    sys.exit(1 if told["DIFFERENT"] else 0)


if __name__ == "__main__":
    main()
