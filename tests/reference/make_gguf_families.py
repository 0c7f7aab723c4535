#!/usr/bin/env python3
"""Writes tests/reference/formats/gguf/: the tiny models of tests/reference/families as llama.cpp's converter keeps their
architectures, by the gguf package.

    python3 -m pip install numpy gguf safetensors && python3 tests/reference/make_gguf_families.py

NAME.gguf, and NAME.json: the config.json of the folder that it must compute the same as, with "weights" beside: the folder
with those weights. Where an architecture keeps less than the family can say (score scales, norms of queries), the folder's
configuration says that less too.
"""
import json
import pathlib
import re

import gguf
import numpy as np
from reference_model import write_safetensors
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).parent
OUT = HERE / "formats" / "gguf"

LLAMA = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "model.layers.": "blk.",
         "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
NORMS_BEHIND = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                "post_feedforward_layernorm": "post_ffw_norm"}
PHI = LLAMA | {"self_attn.dense": "attn_output", "model.final_layernorm": "output_norm", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"}
PHI3 = LLAMA | {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}
NEOX = {"gpt_neox.embed_in": "token_embd", "gpt_neox.final_layer_norm": "output_norm", "embed_out": "output", "lm_head": "output",
        "gpt_neox.layers.": "blk.", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
        "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up",
        "mlp.dense_4h_to_h": "ffn_down"}
FALCON = {"transformer.word_embeddings_layernorm": "token_embd_norm", "transformer.word_embeddings": "token_embd",
          "transformer.ln_f": "output_norm", "lm_head": "output", "transformer.h.": "blk.", "input_layernorm": "attn_norm",
          "ln_mlp": "attn_norm", "ln_attn": "attn_norm_2", "post_attention_layernorm": "ffn_norm",
          "self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up",
          "mlp.dense_4h_to_h": "ffn_down"}
MPT = {"transformer.wte": "token_embd", "transformer.norm_f": "output_norm", "lm_head": "output", "transformer.blocks.": "blk.",
       "norm_1": "attn_norm", "norm_2": "ffn_norm", "attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output",
       "ffn.up_proj": "ffn_up", "ffn.down_proj": "ffn_down"}
STARCODER = {"transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
             "lm_head": "output", "transformer.h.": "blk.", "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv",
             "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
EXPERTS = {"mlp.experts.gate_proj": "ffn_gate_exps", "mlp.experts.up_proj": "ffn_up_exps", "mlp.experts.down_proj": "ffn_down_exps",
           "mlp.gate.weight": "ffn_gate_inp.weight", "mlp.router": "ffn_gate_inp"}
MIXTRAL = LLAMA | {"block_sparse_moe.gate.": "ffn_gate_inp.", "block_sparse_moe.experts.w1": "ffn_gate_exps",
                   "block_sparse_moe.experts.w2": "ffn_down_exps", "block_sparse_moe.experts.w3": "ffn_up_exps"}
GPT_OSS = LLAMA | EXPERTS | {"post_attention_layernorm": "post_attention_norm", "self_attn.sinks": "attn_sinks.weight"}
DEEPSEEK = LLAMA | EXPERTS | {
    "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm", "self_attn.kv_b_proj": "attn_kv_b",
    "mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
    "mlp.shared_experts.down_proj": "ffn_down_shexp", "mlp.gate.e_score_correction_bias": "exp_probs_b.bias"}
GLM4 = LLAMA | {"post_self_attn_layernorm": "post_attention_norm", "mlp.gate_up_proj": "ffn_up", "post_mlp_layernorm": "post_ffw_norm"}
GRANITEMOE = LLAMA | {"block_sparse_moe.router.layer": "ffn_gate_inp", "block_sparse_moe.gate_proj": "ffn_gate_exps",
                      "block_sparse_moe.up_proj": "ffn_up_exps", "block_sparse_moe.output_linear": "ffn_down_exps"}
EXAONE = {"transformer.wte": "token_embd", "transformer.ln_f": "output_norm", "lm_head": "output", "transformer.h.": "blk.",
          "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.attention.out_proj": "attn_output", "attn.attention.q_proj": "attn_q",
          "attn.attention.k_proj": "attn_k", "attn.attention.v_proj": "attn_v", "mlp.c_fc_0": "ffn_gate", "mlp.c_fc_1": "ffn_up",
          "mlp.c_proj": "ffn_down"}
STARCODER2 = LLAMA | {"mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}


def in_pairs(rows, heads):
    """As convert_hf_to_gguf.py permutes the rows of q and k of Llama-like models."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def by_kind(rows, heads, keys):
    """Fused rows of each key head, its queries first, as all queries, all keys, all values."""
    d = rows.shape[0] // (heads + 2 * keys)
    groups = rows.reshape(keys, heads // keys + 2, d, *rows.shape[1:])
    parts = [groups[:, :-2], groups[:, -2], groups[:, -1]]
    return np.concatenate([part.reshape(-1, *rows.shape[1:]) for part in parts])


def all_experts(tensors):
    """Tensors of one expert each, by name, as one of all."""
    out, of = {}, {}
    for key, tensor in tensors.items():
        one = re.fullmatch(r"(.*\.experts\.)(\d+)\.(.*)", key)
        if one:
            of.setdefault(one[1] + one[3], {})[int(one[2])] = tensor
        else:
            out[key] = tensor
    return out | {key: np.stack([each[i] for i in range(len(each))]) for key, each in of.items()}


def gates_apart(tensors):
    """GPT-OSS' experts, (expert, in, 2 · width) with gate and up in turn, as gate and up of (expert, width, in)."""
    out = {}
    for key, tensor in tensors.items():
        at = key.removesuffix("_bias")
        bias = at != key
        turned = lambda x: np.ascontiguousarray(x if bias else x.swapaxes(1, 2))
        if at.endswith("experts.gate_up_proj"):
            for first, name in enumerate(("gate_proj", "up_proj")):
                out[at.replace("gate_up_proj", name) + (".bias" if bias else ".weight")] = turned(tensor[..., first::2])
        elif at.endswith("experts.down_proj"):
            out[at + (".bias" if bias else ".weight")] = turned(tensor)
        else:
            out[key] = tensor
    return out


def halves_apart(config, tensors):
    """Granite's experts, of which one tensor holds gate and up of all."""
    out = {}
    for key, tensor in tensors.items():
        if "input_linear" not in key:
            out[key] = tensor
            continue
        half = tensor.shape[1] // 2
        for name, rows in (("gate_proj", slice(half)), ("up_proj", slice(half, None))):
            out[key.replace("input_linear", name)] = np.ascontiguousarray(tensor[:, rows])
    return out


def keys_and_values(config, tensors):
    """As newer files keep what a latent gives: of every head its keys transposed, and its values."""
    out = {}
    for key, tensor in tensors.items():
        if "kv_b_proj" not in key:
            out[key] = tensor
            continue
        still, heads = config["qk_nope_head_dim"], config["num_attention_heads"]
        both = tensor.reshape(heads, -1, tensor.shape[-1])
        out[key.replace("self_attn.kv_b_proj", "attn_k_b")] = np.ascontiguousarray(both[:, :still].swapaxes(1, 2))
        out[key.replace("self_attn.kv_b_proj", "attn_v_b")] = np.ascontiguousarray(both[:, still:])
    return out


class Dims:
    def __init__(self, c):
        get = lambda *names: next((c[n] for n in names if c.get(n) is not None), None)
        self.layers = get("num_hidden_layers", "n_layer", "n_layers")
        self.width = get("hidden_size", "n_embd", "d_model")
        self.heads = get("num_attention_heads", "n_head", "n_heads")
        self.d_head = get("head_dim") or self.width // self.heads
        self.mlp = get("intermediate_size", "n_inner", "ffn_hidden_size") or 4 * self.width
        self.context = get("max_position_embeddings", "n_positions", "max_seq_len", "seq_length") or 2048
        self.keys = get("num_key_value_heads") or self.heads
        if c["model_type"] == "falcon":
            self.keys = c["num_kv_heads"] if c["new_decoder_architecture"] else 1
        if c["model_type"] == "gpt_bigcode":
            self.keys = 1


def rope(c):
    return c.get("rope_parameters") or {}


def write(name, architecture, source, names, more=None, changes=None, tensors_of=None, pairs=False, fused=False, plus_one=False,
          stored=lambda config, tensors: tensors, keys=None, kind=None):
    folder = HERE / "families" / source
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    config |= changes or {}
    weights = f"families/{source}"
    if tensors_of:
        tensors = tensors_of(config, tensors)
        weights = f"formats/gguf/{source}"
        (OUT / source).mkdir(exist_ok=True)
        write_safetensors(OUT / source / "model.safetensors", tensors)
    (OUT / f"{name}.json").write_text(json.dumps({"weights": weights, "config": config}, indent=1) + "\n")
    d = Dims(config)
    writer = gguf.GGUFWriter(OUT / f"{name}.gguf", architecture)
    writer.add_block_count(d.layers)
    writer.add_context_length(d.context)
    writer.add_embedding_length(d.width)
    writer.add_feed_forward_length(d.mlp)
    writer.add_head_count(d.heads)
    writer.add_head_count_kv(keys or d.keys)
    if architecture != "deepseek2" and config.get("head_dim"):
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    if "rms_norm_eps" in config:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    else:
        writer.add_layer_norm_eps(next((config[k] for k in ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps") if k in config), 1e-5))
    base = rope(config).get("full_attention", rope(config)).get("rope_theta")
    if base:
        writer.add_rope_freq_base(base)
    share = rope(config).get("partial_rotary_factor")
    if share:
        writer.add_rope_dimension_count(int(d.d_head * share))
    writer.add_file_type(0)
    if more:
        more(writer, config)
    for key, tensor in stored(config, tensors).items():
        tensor = tensor.astype(np.float32)
        if pairs and re.search(r"\.[qk]_proj\.", key):
            tensor = in_pairs(tensor, d.heads if ".q_proj." in key else d.keys)
        if fused and "query_key_value" in key:
            tensor = by_kind(tensor, d.heads, d.keys)
        if plus_one and key.endswith("norm.weight"):
            tensor = tensor + np.float32(1)
        for theirs, ours in names.items():
            key = key.replace(theirs, ours)
        if kind is not None and tensor.ndim > 1:
            writer.add_tensor(key, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
        else:
            writer.add_tensor(key, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(name, (OUT / f"{name}.gguf").stat().st_size)


def phi_weights(config, tensors):
    """Without norms of queries, and a key head for each head: what Phi 2 is."""
    random = np.random.default_rng(7)
    width = config["hidden_size"]
    out = {}
    for key, tensor in tensors.items():
        if "layernorm" in key and "self_attn" in key:
            continue
        if re.search(r"\.[kv]_proj\.", key):
            tensor = random.standard_normal((width, width) if key.endswith("weight") else (width,)) * 0.3
        out[key] = tensor.astype(np.float32)
    return out


def whole_numbers(config, tensors):
    """Matrices of this configuration's extents that Q8_0 can write without a rounding."""
    random, d = np.random.default_rng(8), Dims(config)
    rows = {"embed_tokens": (config["vocab_size"], d.width), "lm_head": (config["vocab_size"], d.width), "q_proj": (d.heads * d.d_head, d.width),
            "k_proj": (d.keys * d.d_head, d.width), "v_proj": (d.keys * d.d_head, d.width), "o_proj": (d.width, d.heads * d.d_head),
            "gate_proj": (d.mlp, d.width), "up_proj": (d.mlp, d.width), "down_proj": (d.width, d.mlp)}
    out = {}
    for key in tensors:
        shape = next((of for name, of in rows.items() if name in key), None)
        tensor = random.standard_normal(shape or d.width).astype(np.float32) * 0.3 + (0 if shape else 1)
        if shape:
            kind = gguf.GGMLQuantizationType.Q8_0
            tensor = gguf.quants.dequantize(gguf.quants.quantize(tensor, kind), kind)
        out[key] = tensor.astype(np.float32)
    return out


def all_sparse(config, tensors):
    """The same experts in every layer that has none."""
    sparse = next(i for i in range(config["num_hidden_layers"]) if f"model.layers.{i}.mlp.gate.weight" in tensors)
    out = {key: tensor for key, tensor in tensors.items() if not re.search(r"\.mlp\.(gate|up|down)_proj\.", key)}
    for layer in range(config["num_hidden_layers"]):
        for key, tensor in tensors.items():
            if key.startswith(f"model.layers.{sparse}.mlp."):
                out.setdefault(key.replace(f"layers.{sparse}.", f"layers.{layer}."), tensor)
    return out


def last_sparse(config, tensors):
    """ERNIE's last layer with the experts of the one before."""
    last = config["num_hidden_layers"] - 1
    out = {key: tensor for key, tensor in tensors.items() if not key.startswith(f"model.layers.{last}.mlp.")}
    return out | {key.replace(f"layers.{last - 1}.", f"layers.{last}."): tensor for key, tensor in tensors.items()
                  if key.startswith(f"model.layers.{last - 1}.mlp.")}


def phi2_in_one_matrix():
    """The older form of Phi 2: attn_qkv in place of attn_q, attn_k, attn_v."""
    reader = gguf.GGUFReader(OUT / "phi2.gguf")
    writer = gguf.GGUFWriter(OUT / "phi2-old.gguf", "phi2")
    for field in reader.fields.values():
        if field.name.startswith(("GGUF.", "general.architecture")):
            continue
        value, kind = field.contents(), field.types[0]
        writer.add_key_value(field.name, value, kind)
    tensors = {t.name: np.array(t.data) for t in reader.tensors}
    for name, tensor in tensors.items():
        if re.search(r"attn_[kv]\.", name):
            continue
        if "attn_q." in name:
            tensor = np.concatenate([tensors[name.replace("attn_q.", f"attn_{which}.")] for which in "qkv"])
            name = name.replace("attn_q.", "attn_qkv.")
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (OUT / "phi2-old.json").write_text((OUT / "phi2.json").read_text())


def main():
    OUT.mkdir(exist_ok=True)

    def gemma2(w, c):
        w.add_attn_logit_softcapping(c["attn_logit_softcapping"])
        w.add_final_logit_softcapping(c["final_logit_softcapping"])
        w.add_sliding_window(c["sliding_window"])

    def gemma3(w, c):
        w.add_sliding_window(c["sliding_window"])
        w.add_uint32("gemma3.attention.sliding_window_pattern", 2)
        w.add_float32("gemma3.rope.freq_base_swa", rope(c)["sliding_attention"]["rope_theta"])
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope(c)["full_attention"]["factor"])

    def granite(w, c):
        w.add_attention_scale(c["attention_multiplier"])
        w.add_embedding_scale(c["embedding_multiplier"])
        w.add_residual_scale(c["residual_multiplier"])
        w.add_logit_scale(c["logits_scaling"])
        w.add_rope_dimension_count(c["hidden_size"] // c["num_attention_heads"])

    def mpt(w, c):
        w.add_clamp_kqv(c["attn_config"]["clip_qkv"])
        w.add_max_alibi_bias(8.0)

    window = lambda w, c: w.add_sliding_window(c["sliding_window"])
    parallel = lambda w, c: w.add_parallel_residual(c["use_parallel_residual"])
    scale = {"query_pre_attn_scalar": 8}  # the width of a head: the file has no key for another
    write("gemma", "gemma", "gemma", LLAMA, plus_one=True)
    write("gemma2", "gemma2", "gemma2", LLAMA | NORMS_BEHIND, gemma2, scale, plus_one=True)
    write("gemma3", "gemma3", "gemma3_text", LLAMA | NORMS_BEHIND, gemma3, scale, plus_one=True)
    write("phi2", "phi2", "phi", PHI, None, {"qk_layernorm": False, "num_key_value_heads": 3}, phi_weights)
    phi2_in_one_matrix()
    write("phi3", "phi3", "phi3", PHI3, window)
    write("gptneox", "gptneox", "gpt_neox", NEOX, parallel, fused=True)
    write("gptneox-serial", "gptneox", "gpt_neox-serial", NEOX, parallel, fused=True)
    write("falcon", "falcon", "falcon", FALCON, lambda w, c: w.add_tensor_data_layout("jploski"), fused=True)
    write("falcon-new", "falcon", "falcon-new", FALCON, fused=True)
    write("bloom", "bloom", "bloom", FALCON, fused=True)
    attention = json.loads((HERE / "families/mpt/config.json").read_text())["attn_config"] | {"softmax_scale": None}
    write("mpt", "mpt", "mpt", MPT, mpt, {"attn_config": attention})
    write("starcoder", "starcoder", "gpt_bigcode", STARCODER)
    write("starcoder2", "starcoder2", "starcoder2", STARCODER2, window)
    write("stablelm", "stablelm", "stablelm", LLAMA, parallel)
    write("stablelm-parallel", "stablelm", "stablelm-parallel", LLAMA, parallel)
    write("olmo", "olmo", "olmo", LLAMA, lambda w, c: w.add_clamp_kqv(c["clip_qkv"]), pairs=True)
    write("olmo2", "olmo2", "olmo2", LLAMA | NORMS_BEHIND)
    write("command-r", "command-r", "cohere", LLAMA, lambda w, c: w.add_logit_scale(c["logit_scale"]))
    def experts(width=None):
        def more(w, c):
            w.add_expert_count(next(c[key] for key in ("num_experts", "num_local_experts", "n_routed_experts") if key in c))
            w.add_expert_used_count(c["num_experts_per_tok"])
            if width:
                w.add_expert_feed_forward_length(c[width])
        return more

    def olmoe(w, c):
        experts()(w, c)
        w.add_clamp_kqv(c["clip_qkv"])

    def yarn(w, c):
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope(c)["factor"])
        w.add_rope_scaling_orig_ctx_len(rope(c)["original_max_position_embeddings"])

    def gpt_oss(w, c):
        experts("intermediate_size")(w, c)
        w.add_sliding_window(c["sliding_window"])
        yarn(w, c)

    def deepseek(newer, gating):
        def more(w, c):
            experts("moe_intermediate_size")(w, c)
            w.add_leading_dense_block_count(c["first_k_dense_replace"])
            w.add_vocab_size(c["vocab_size"])
            if c["q_lora_rank"]:
                w.add_q_lora_rank(c["q_lora_rank"])
            w.add_kv_lora_rank(c["kv_lora_rank"])
            w.add_rope_dimension_count(c["qk_rope_head_dim"])
            key, value = c["qk_nope_head_dim"] + c["qk_rope_head_dim"], c["v_head_dim"]
            if newer:  # for llama.cpp the latent is the one key
                w.add_key_length_mla(key)
                w.add_value_length_mla(value)
                key, value = c["kv_lora_rank"] + c["qk_rope_head_dim"], c["kv_lora_rank"]
                w.add_expert_group_count(c["n_group"])
                w.add_expert_group_used_count(c["topk_group"])
            w.add_key_length(key)
            w.add_value_length(value)
            w.add_expert_shared_count(c["n_shared_experts"])
            w.add_expert_weights_scale(c["routed_scaling_factor"])
            w.add_expert_weights_norm(c["norm_topk_prob"])
            w.add_expert_gating_func(gating)
            if rope(c)["rope_type"] == "yarn":
                yarn(w, c)
                w.add_rope_scaling_yarn_log_mul(0.1 * rope(c)["mscale_all_dim"])
        return more

    def longrope(w, c):
        told = rope(c)
        w.add_rope_scaling_orig_ctx_len(told["original_max_position_embeddings"])
        factor = c["max_position_embeddings"] / told["original_max_position_embeddings"]
        w.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(factor) / np.log(told["original_max_position_embeddings"]))))
        w.add_tensor("rope_factors_short.weight", np.array(told["short_factor"], np.float32))
        w.add_tensor("rope_factors_long.weight", np.array(told["long_factor"], np.float32))

    of_all = lambda config, tensors: all_experts(tensors)
    write("mixtral", "llama", "mixtral", MIXTRAL, experts(), {"sliding_window": None}, pairs=True, stored=of_all)
    apart = {f"block_sparse_moe.experts.{e}.{theirs}": f"{ours}.{e}" for e in range(5)
             for theirs, ours in (("w1", "ffn_gate"), ("w2", "ffn_down"), ("w3", "ffn_up"))}
    write("mixtral-old", "llama", "mixtral", MIXTRAL | apart, experts(), {"sliding_window": None}, pairs=True)
    write("qwen3moe", "qwen3moe", "qwen3_moe", LLAMA | EXPERTS, experts("moe_intermediate_size"), {"mlp_only_layers": []},
          all_sparse, stored=of_all)
    write("olmoe", "olmoe", "olmoe", LLAMA | EXPERTS, olmoe, stored=of_all)
    write("gpt-oss", "gpt-oss", "gpt_oss", GPT_OSS, gpt_oss,
          {"swiglu_limit": 7.0, "swiglu_alpha": 1.702, "rope_parameters": dict(
              rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=30, truncate=False)},
          stored=lambda config, tensors: gates_apart(tensors))
    write("deepseek2", "deepseek2", "deepseek_v2-greedy", DEEPSEEK, deepseek(False, gguf.ExpertGatingFuncType.SOFTMAX),
          {"rope_parameters": dict(rope_type="yarn", rope_theta=100.0, factor=5.0, original_max_position_embeddings=30, mscale=0.7,
                                   mscale_all_dim=0.7)}, stored=of_all)
    write("deepseek2-v3", "deepseek2", "deepseek_v3-moe", DEEPSEEK, deepseek(True, gguf.ExpertGatingFuncType.SIGMOID),
          stored=lambda config, tensors: keys_and_values(config, all_experts(tensors)), keys=1)
    def dots1(w, c):
        experts("moe_intermediate_size")(w, c)
        w.add_leading_dense_block_count(c["first_k_dense_replace"])
        w.add_expert_shared_count(c["n_shared_experts"])
        w.add_expert_weights_scale(c["routed_scaling_factor"])
        w.add_expert_weights_norm(c["norm_topk_prob"])
        w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)

    def granitemoe(w, c):
        granite(w, c)
        experts()(w, c)

    def cohere2(w, c):
        w.add_logit_scale(c["logit_scale"])
        window(w, c)

    sections = lambda w, c: w.add_rope_dimension_sections([1, 1, 1, 0])

    def qwen3vl(w, c):
        sections(w, c)
        w.add_num_deepstack_layers(3)

    every_fourth = ["sliding_attention"] * 3 + ["full_attention"]  # llama.cpp knows no other
    write("cohere2", "cohere2", "cohere2", LLAMA, cohere2, {"layer_types": every_fourth})
    write("glm4", "glm4", "glm4", GLM4)
    write("seed_oss", "seed_oss", "seed_oss-biased", LLAMA | {"post_attention_layernorm": "post_attention_norm"})
    write("ernie4_5", "ernie4_5", "ernie4_5-biased", LLAMA)
    write("exaone", "exaone", "exaone", EXAONE, None, {"num_hidden_layers": 2, "rms_norm_eps": 0.01, "hidden_act": "silu"})
    write("smollm3", "smollm3", "smollm3", LLAMA, None, {"no_rope_layers": None}, pairs=True)
    write("exaone4", "exaone4", "exaone4-whole", LLAMA | NORMS_BEHIND)
    write("arcee", "arcee", "arcee", LLAMA, pairs=True)
    write("nemotron", "nemotron", "nemotron-biased", LLAMA, plus_one=True)
    write("granitemoe", "granitemoe", "granitemoe", GRANITEMOE, granitemoe, pairs=True, stored=halves_apart)
    write("qwen2vl", "qwen2vl", "qwen2-r1", LLAMA, sections)
    write("qwen3vl", "qwen3vl", "qwen3", LLAMA, qwen3vl)
    write("dots1", "dots1", "dots1", DEEPSEEK, dots1,
          {"n_group": 1, "topk_group": 1, "sliding_window": None, "layer_types": ["full_attention"] * 3}, stored=of_all)
    def qwen2moe(w, c):
        experts("moe_intermediate_size")(w, c)
        w.add_expert_shared_feed_forward_length(c["shared_expert_intermediate_size"])

    def glm4moe(w, c):
        dots1(w, c)
        w.add_nextn_predict_layers(0)

    def ernie4_5_moe(w, c):
        w.add_expert_count(c["moe_num_experts"])
        w.add_expert_used_count(c["moe_k"])
        w.add_expert_feed_forward_length(c["moe_intermediate_size"])
        w.add_expert_shared_count(c["moe_num_shared_experts"])
        w.add_leading_dense_block_count(c["moe_layer_start_index"])
        w.add_interleave_moe_layer_step(c["moe_layer_interval"])

    def mistral3(w, c):
        yarn(w, c)
        w.add_rope_scaling_yarn_beta_fast(rope(c)["beta_fast"])
        w.add_rope_scaling_yarn_beta_slow(rope(c)["beta_slow"])
        w.add_rope_scaling_yarn_log_mul(rope(c)["mscale_all_dim"])
        w.add_attn_temperature_scale(rope(c)["llama_4_scaling_beta"])

    SHARED = {"mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
              "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp"}
    write("qwen2moe", "qwen2moe", "qwen2_moe", LLAMA | EXPERTS | SHARED, qwen2moe,
          {"mlp_only_layers": [], "use_sliding_window": False}, all_sparse, stored=of_all)
    write("glm4moe", "glm4moe", "glm4_moe", DEEPSEEK | {"post_attention_layernorm": "post_attention_norm"}, glm4moe,
          stored=of_all)
    write("ernie4_5-moe", "ernie4_5-moe", "ernie4_5_moe", DEEPSEEK | {
        "mlp.moe_statics.e_score_correction_bias": "exp_probs_b.bias"}, ernie4_5_moe, {"moe_layer_end_index": -1},
        last_sparse, stored=lambda c, t: {k: x[0] if "moe_statics" in k else x for k, x in all_experts(t).items()})
    base = {"rope_parameters": dict(rope_type="default", rope_theta=50.0 * 7.0 ** (8 / 6))}  # alpha is in it
    write("hunyuan-dense", "hunyuan-dense", "hunyuan_v1_dense", LLAMA | {
        "self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm"}, None, base)
    write("mistral3", "mistral3", "ministral3", LLAMA, mistral3, {"rope_parameters": dict(
        rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=5, mscale=0.8, mscale_all_dim=0.8,
        beta_fast=2.0, beta_slow=0.25, llama_4_scaling_beta=0.5)}, pairs=True)
    write("phi3-longrope", "phi3", "phi3-longrope", PHI3, longrope)
    write("phi3-long", "phi3", "phi3-long", PHI3, longrope)
    write("granite", "granite", "granite", LLAMA, granite, pairs=True)
    write("llama-q8_0", "llama", "llama-dynamic", LLAMA, None, dict(
        vocab_size=48, hidden_size=32, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16, num_hidden_layers=2,
        rope_parameters=dict(rope_type="default", rope_theta=100.0)), whole_numbers, pairs=True, kind=gguf.GGMLQuantizationType.Q8_0)


if __name__ == "__main__":
    main()
