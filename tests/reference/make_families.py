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
from decoder_cases import DECODERS, TEXT_HALVES
from encoder_cases import ENCODERS
from more_decoder_cases import MORE_DECODERS, as_said, called, with_sinks
from more_encoder_cases import MORE_ENCODERS, as_configured, as_published
from reference_model import write_safetensors
from text_half_cases import MORE_TEXT_HALVES, OTHER_HALF

ENCODERS |= MORE_ENCODERS
HERE = pathlib.Path(__file__).parent / "families"
TEXT = [3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3]
STEPS = 6

FAMILIES = DECODERS | MORE_DECODERS | TEXT_HALVES | ENCODERS


def drawn(model, seed, gain_around, size=1.6):
    """Every parameter anew: matrices of a size that makes attention look somewhere, gains and biases far from 1 and 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if model.config.model_type == "roformer" and name.endswith("embed_positions.weight"):
                continue  # sines and cosines, in a parameter
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            matrix = parameter.dim() >= 2 and "norm" not in name
            gain = not matrix and name.endswith(("weight", "router.scale", "per_expert_scale"))
            if name.endswith("sinks"):
                noise = 4 * noise
            inner = max(parameter.shape[-2:]) if parameter.shape[-1:] == (1,) else parameter.shape[-1]  # of a kernel over one token
            value = noise * (size / inner ** 0.5 if matrix else 0.4) + (gain_around if gain else 0)
            parameter.copy_(value)
        for name, buffer in model.named_buffers():  # of xIELU
            if name.endswith((".act_fn.beta", ".act_fn.eps")):
                buffer.copy_(torch.tensor(0.37 if name.endswith("beta") else -1e-4, dtype=torch.float64))
            if name.endswith(".layer_scalar"):
                buffer.copy_(torch.rand(buffer.shape, generator=generator, dtype=torch.float32) + 0.5)
            if name.endswith((".e_score_correction_bias", ".expert_bias")):
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


BEHIND_MODEL = [("model.language_model.", "language_model.model."), ("lm_head", "language_model.lm_head")]
PUBLISHED_PREFIXES = {
    **{name: BEHIND_MODEL for name in ("mllama", "kimi_k25", "aria", "video_llava", "fuyu", "qianfan_ocr", "granite_speech",
                                       "audioflamingo3", "musicflamingo", "glmasr", "vibevoice_asr")},
    **{name: [("model.language_model.", "thinker.model."), ("lm_head", "thinker.lm_head")]
       for name in ("qwen2_5_omni", "qwen3_omni_moe")},
    **{name: [("model.language_model.", "model.")] for name in ("qwen2_5_omni_thinker", "paddleocr_vl", "hunyuan_vl")},
    "emu3": [("model.text_model.", "text_model.model."), ("lm_head", "text_model.lm_head")],
    "hyperclovax_vision_v2": [("model.language_model.", "model.language_model.model."),
                              ("lm_head", "model.language_model.lm_head")],
    "molmo2": [("model.language_model.layers.", "model.transformer.blocks."),
               ("model.language_model.norm.", "model.transformer.ln_f."),
               ("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ff_norm"),
               ("self_attn.o_proj", "self_attn.attn_out"), ("mlp.down_proj", "mlp.ff_out")],
}


def published(name, key, value):
    """(name in the files of this family, tensor) of a parameter: the library of today keeps all experts in one."""
    key = "embed_out.weight" if (name, key) == ("gpt_neox-serial", "lm_head.weight") else key
    key = "roberta.embeddings.word_embeddings.weight" if (name, key) == ("xlm_roberta", "lm_head.decoder.weight") else key
    if name == "qwen2_vl-flat":
        key = key.replace("model.language_model.", "model.").replace("model.visual.", "visual.")
    if name.startswith("mimo_v2_flash"):
        key = key.replace("self_attn.sinks", "self_attn.attention_sink_bias")
    if name in PUBLISHED_PREFIXES:
        for today, theirs in PUBLISHED_PREFIXES[name]:
            key = key.replace(today, theirs)
    if name in ("mistral3", "llava", "vipllava", "aya_vision", "voxtral", "qwen2_audio", "paligemma-gemma"):
        key = key.replace("model.language_model.", "language_model.model.").replace("lm_head", "language_model.lm_head")
        key = key.replace("model.vision", "vision") if key.startswith("model.v") else key
    if name in MORE_DECODERS and ".mlp.experts." not in key:
        return [(called(name, key), value)]
    if name == "exaone":
        for today, theirs in (("model.embed_tokens", "transformer.wte"), ("model.layers", "transformer.h"),
                              ("model.norm", "transformer.ln_f"), ("self_attn.o_proj", "self_attn.out_proj"),
                              ("self_attn", "attn.attention"), ("input_layernorm", "ln_1"),
                              ("post_attention_layernorm", "ln_2"), ("mlp.gate_proj", "mlp.c_fc_0"),
                              ("mlp.up_proj", "mlp.c_fc_1"), ("mlp.down_proj", "mlp.c_proj")):
            key = key.replace(today, theirs)
    if name.startswith("phimoe"):  # as Mixtral's
        key, name = key.replace(".mlp.router.", ".mlp.gate."), "mixtral"
    if name.startswith("ernie4_5_moe"):
        key = key.replace("mlp.gate.moe_statics", "mlp.moe_statics")
    if name == "aria":
        key = key.replace("mlp.experts.gate_up_proj", "mlp.experts.fc1.weight")
        key = key.replace("mlp.experts.down_proj", "mlp.experts.fc2.weight")
        return [(key, value)]
    if name == "molmo2" and key.endswith("embed_tokens.weight"):  # the rows of pictures apart
        at = "model.transformer.wte."
        return [(at + "embedding", value[:-128]), (at + "new_embedding", value[-128:])]
    if name.endswith("-today") or name == "qwen3_5_moe" or "mistral4" in name:
        return [(key, value)]
    if name == "exaone_moe":
        key = key.replace("mlp.gate.e_score", "mlp.e_score")
    if name == "lfm2_moe" and ".feed_forward.experts." in key:
        return [(own.replace(".block_sparse_moe.", ".feed_forward."), part)
                for own, part in published("mixtral", key.replace(".feed_forward.", ".mlp."), value)]
    if name == "qwen3_vl_moe" and ".mlp.experts." in key:
        return [(key, value.transpose(1, 2).contiguous())]
    if name.startswith("granitemoe"):
        for theirs, ours in (("experts.gate_up_proj", "input_linear.weight"), ("experts.down_proj", "output_linear.weight"),
                             ("router.weight", "router.layer.weight")):
            key = key.replace("block_sparse_moe." + theirs, "block_sparse_moe." + ours)
        return [(key, value)]
    if name.startswith("nemotron_h"):
        key = key.replace("model.", "backbone.", 1)
        if ".mixer.experts." not in key:
            return [(key, value)]
        at, part = key.rsplit(".", 1)
        return [(f"{at}.{e}.{part}.weight", own) for e, own in enumerate(value)]
    if name == "olmo_hybrid-older":
        if "conv1d" in key:
            return [(key.replace("conv1d", f"{part}_conv1d"), own.contiguous()) for part, own in zip("qkv", value.split([12, 12, 24]))]
        if ".2." not in key:  # the last layer attends
            for today, theirs in (("input_layernorm", "attention_layer_norm"), ("post_attention_layernorm", "feedforward_layer_norm")):
                key = key.replace(today, theirs)
        return [(key, value)]
    if name == "olmo_hybrid-saved":
        if "conv1d" in key:
            return [(key.replace("conv1d", f"{part}_conv1d"), own.contiguous()) for part, own in zip("qkv", value.chunk(3))]
        return [(key.replace("input_layernorm", "attention_layer_norm").replace(
            "post_attention_layernorm", "feedforward_layer_norm"), value)]
    if name == "sarvam_moe-older":
        for today, theirs in (("embed_tokens", "word_embeddings"), ("self_attn.o_proj", "attention.dense"),
                              ("self_attn.q_norm", "attention.query_layernorm"),
                              ("self_attn.k_norm", "attention.key_layernorm"),
                              ("gate.e_score_correction_bias", "gate.expert_bias")):
            key = key.replace(today, theirs)
    if name.startswith("jamba") and ".feed_forward.experts." in key:
        return [(own.replace(".mlp.", ".feed_forward."), part)
                for own, part in published("qwen3_moe", key.replace(".feed_forward.", ".mlp."), value)]
    if name.startswith("minimax_m2") and key.endswith("mlp.e_score_correction_bias"):
        return [(key.replace(".mlp.", ".block_sparse_moe."), value)]
    if name.startswith("gpt_oss") or ".mlp." not in key or not any(x in key for x in (".experts.", ".mlp.gate.")):
        return [(key, value)]
    mixtral = name.startswith(("mixtral", "minimax"))
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

    if config.model_type == "phimoe":  # the bounds of who counts as nearly as good, besides
        best = logits.sort(dim=-1, descending=True).values
        off = [abs((best[:, k, None] - logits) / torch.maximum(logits.abs(), best[:, k, None]) - 2 * config.router_jitter_noise)
               for k in range(2)]
        return min(gap(logits, 1), gap(logits, 2), *(float(x.min()) for x in off))
    if config.model_type == "ernie4_5_moe":
        return gap(logits.softmax(-1) + correction, config.num_experts_per_tok)
    if config.model_type in ("afmoe", "minimax_m2", "lfm2_moe", "hy_v3"):
        return gap(logits.sigmoid() + (0 if correction is None else correction), config.num_experts_per_tok)
    if getattr(config, "n_routed_experts", None) is None and config.model_type != "exaone_moe":
        return gap(logits, taken_of(config))
    by = logits.softmax(-1) if correction is None else logits.sigmoid() + correction
    if (config.n_group or 1) == 1:
        return gap(by, config.num_experts_per_tok)
    groups = by.reshape(len(by), config.n_group, -1)
    best = groups.topk(2 if correction is not None or config.model_type == "mistral4" else 1, dim=-1).values.sum(-1)
    kept = torch.zeros_like(best).scatter(1, best.topk(config.topk_group).indices, 1.0)
    inside = groups.masked_fill(kept[..., None] == 0, -1.0).reshape(by.shape)
    return min(gap(best, config.topk_group), gap(inside, config.num_experts_per_tok))


def taken_of(config):
    own = getattr(config, "ffn_config", None)  # of DBRX
    return next((getattr(config, key) for key in ("num_experts_per_tok", "top_k_experts", "moe_topk")
                 if getattr(config, key, None)), None) or getattr(own, "moe_top_k", None)


def watch_routers(model, config, seen):
    """The logits of every router, as `seen[layer]`; a token whose last expert is nearly another's is no test."""
    count, taken = next((getattr(config, key) for key in ("num_local_experts", "num_experts", "moe_num_experts")
                  if getattr(config, key, None)), 0), taken_of(config)
    count = count or config.ffn_config.moe_num_experts

    def hook(layer, correction):
        def of(module, inputs, _):
            bias = getattr(module, "bias", None)
            logits = torch.nn.functional.linear(inputs[0].reshape(-1, inputs[0].shape[-1]), module.weight, bias)
            own = getattr(module, "moe_statics", module)
            added = correction if correction is not None else getattr(own, "e_score_correction_bias", None)
            assert taken == count or closest(config, logits, added) > 1e-3, "a close choice"
            seen[layer] = logits
        return of

    for name, module in model.named_modules():
        if name.endswith(".ffn.router.layer"):
            module.register_forward_hook(hook(int(name.split(".blocks.")[1].split(".")[0]), None))
        if name.endswith(".router.proj"):
            module.register_forward_hook(hook(int(name.split(".layers.")[1].split(".")[0]), None))
        if name.endswith((".mlp.gate", ".mlp.router", ".mlp.router.gate", ".block_sparse_moe.gate", ".block_sparse_moe.router", ".feed_forward.router", ".feed_forward.gate", ".mlp.gate.wg", ".mixer.gate")) \
                and hasattr(module, "weight") and module.weight.shape[0] == count:
            inside = next((part for part in (".mlp", ".feed_forward") if part + "." in name), None)
            around = model.get_submodule(name.rsplit(inside + ".", 1)[0] + inside) if inside else module
            added = getattr(around, "expert_bias", getattr(around, "e_score_correction_bias", None))
            module.register_forward_hook(hook(int(name.split(".layers.")[1].split(".")[0]), added))


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


# Some layers mix tokens by a state, others attend.
DELTAS = ("minicpmv4_6", "minicpmv4_7", "minicpm_ocr", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next", "olmo_hybrid")  # … by the gated delta rule
CONVOLUTIONS = ("lfm2", "lfm2_moe", "lfm2_vl")  # … a short convolution
LIGHTNING = ("minimax",)  # … linear attention that decays
HYBRIDS = ("granitemoehybrid", "bamba", "jamba", "nemotron_h", "falcon_h1") + DELTAS + CONVOLUTIONS + LIGHTNING


def blocks_of(model):
    inner = model.backbone if hasattr(model, "backbone") else model.model
    return getattr(inner, "language_model", inner).layers


def mixes_by_state(config, layer):
    return config.model_type not in HYBRIDS or config.get_text_config().layer_types[layer] in ("linear_attention", "conv", "hybrid")


def mixing_layers(config):
    """The layers of the library that begin a block here: of Nemotron-H an MLP is one by itself, here part of the block."""
    text = config.get_text_config()
    count = text.num_hidden_layers - len(getattr(text, "cross_attention_layers", None) or [])  # of pictures
    if config.model_type == "falcon_h1":  # whose layers are both
        return [i // 2 for i in range(2 * count)]
    return [i for i in range(count) if config.model_type != "nemotron_h" or config.layer_types[i] not in ("mlp", "moe")]


def watch_states(model, seen, streams):
    """What every layer's state is given, of its last pass: `seen[layer]` = x (token, lane, width), Δ (token, lane), a
    (lane, state), B and C (token, lane, state); of Mamba a lane is a channel, of Mamba-2 a head. `streams[layer]`: what
    the block reads."""
    import importlib
    kind = model.config.model_type
    module = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    in_doubles(module)
    by_channel = hasattr(module, "mamba_selective_scan")
    name = "mamba_selective_scan" if by_channel else "mamba2_chunk_scan"
    scan, turn = getattr(module, name), [-1]
    layers = [i for i in range(len(blocks_of(model))) if mixes_by_state(model.config, i)]

    def channels(x, dt, a, b, c, delta_bias=None, **_):
        delta = torch.nn.functional.softplus(dt + delta_bias[:, None])[0].T
        wide = lambda y: y[0].T[:, None].expand(-1, x.shape[1], -1)
        return x[0].T[:, :, None], delta, a, wide(b), wide(c)

    def heads(x, dt, a, b, c, dt_bias=None, dt_limit=None, **_):
        delta = torch.nn.functional.softplus(dt + dt_bias)[0].clamp(*dt_limit)
        wide = lambda y: y[0].repeat_interleave(x.shape[2] // y.shape[2], dim=1)
        return x[0], delta, a[:, None].expand(-1, b.shape[-1]), wide(b), wide(c)

    def watched(*args, **kwargs):
        turn[0] = (turn[0] + 1) % len(layers)
        args = tuple(args) + tuple(kwargs[key] for key in "ABC" if key in kwargs)
        rest = {key: value for key, value in kwargs.items() if key not in "ABC"}
        seen[layers[turn[0]]] = (channels if by_channel else heads)(*args, **rest)
        return scan(*args, **rest)

    setattr(module, name, watched)
    for index, block in enumerate(blocks_of(model)):
        block.register_forward_pre_hook(lambda _, inputs, index=index: streams.__setitem__(index, inputs[0][0]))


def watch_deltas(model, seen, streams):
    """What every layer of the delta rule is given, of its last pass: `seen[layer]` = queries and keys as they meet, values,
    ln of what is kept, and β; (token, head, …) each, and how these become an output."""
    import importlib
    kind = model.config.get_text_config().model_type.removesuffix("_text")
    module = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    in_doubles(module)
    layers = [i for i in range(len(blocks_of(model))) if mixes_by_state(model.config, i)]
    turn = [-1]

    def watched(query, key, value, g, beta, **_):
        turn[0] = (turn[0] + 1) % len(layers)
        rule = lambda values: module.torch_recurrent_gated_delta_rule(
            query, key, values, g=g, beta=beta, use_qk_l2norm_in_kernel=True)[0]
        seen[layers[turn[0]]] = (query[0], key[0], value[0], g[0], beta[0], rule)
        return rule(value), None

    module.torch_chunk_gated_delta_rule = watched
    for index, block in enumerate(blocks_of(model)):
        block.register_forward_pre_hook(lambda _, inputs, index=index: streams.__setitem__(index, inputs[0][0]))


def shown_heads(config, lanes):
    """As many as attend where those divide the lanes, each so many of them; else every lane is one."""
    return config.num_attention_heads if lanes % config.num_attention_heads == 0 else lanes


def expected_deltas(model, config, seen):
    """The matrix that a head amounts to is what comes of unit vectors in place of its values; a head of as many as attention
    has is several neighbouring ones, and this their mean."""
    out = {}
    for layer, (query, key, value, g, beta, rule) in seen.items():
        n, lanes = beta.shape
        units = torch.eye(n)[:, None].expand(n, lanes, n)[None]
        unit = lambda x: x / (x.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt()
        at = f"blocks.{layer}."
        out[at + "attn.hook_pattern"] = rule(units)[0].permute(1, 0, 2).reshape(shown_heads(config, lanes), -1, n, n).mean(1)
        out[at + "mixer.hook_x"] = value.reshape(n, -1)
        out[at + "mixer.hook_delta"] = -g / blocks_of(model)[layer].linear_attn.A_log.exp()
        out[at + "mixer.hook_beta"] = beta
        out[at + "mixer.hook_b"], out[at + "mixer.hook_c"] = unit(key), unit(query) / query.shape[-1] ** 0.5
    return out


def watch_convolutions(model, seen, streams):
    """What every layer with a short convolution is given: `seen[layer]` = B, C and x, (token, channel) each, and its kernel."""
    for index, block in enumerate(blocks_of(model)):
        block.register_forward_pre_hook(lambda _, inputs, index=index: streams.__setitem__(index, inputs[0][0]))
        if mixes_by_state(model.config, index):
            def hook(_, inputs, output, index=index, block=block):
                seen[index] = (*output[0].chunk(3, dim=-1), block.conv.conv.weight[:, 0])
            block.conv.in_proj.register_forward_hook(hook)


def expected_convolutions(config, seen):
    """α_ts = C_t w_(K−1−(t−s)) B_s of a channel; a head is as many neighbouring ones, and this their mean."""
    out = {}
    for layer, (b, c, x, kernel) in seen.items():
        n, channels = b.shape
        alpha = torch.zeros(channels, n, n)
        for t in range(n):
            for s in range(max(0, t - kernel.shape[1] + 1), t + 1):
                alpha[:, t, s] = c[t] * kernel[:, kernel.shape[1] - 1 - (t - s)] * b[s]
        at = f"blocks.{layer}."
        out[at + "attn.hook_pattern"] = alpha.reshape(config.num_attention_heads, -1, n, n).mean(1)
        out[at + "mixer.hook_x"], out[at + "mixer.hook_b"], out[at + "mixer.hook_c"] = x, b[..., None], c[..., None]
    return out


def watch_lightning(model, seen, streams):
    """What every layer of linear attention is given: `seen[layer]` = queries, keys and values, (token, head, d_head) each, and
    what heads decay by. A block adds to what its norm makes of the stream: `streams[layer]`."""
    for index, block in enumerate(blocks_of(model)):
        block.input_layernorm.register_forward_hook(lambda _, __, output, index=index: streams.__setitem__(index, output[0]))
        if not mixes_by_state(model.config, index):
            continue
        own = block.self_attn

        def hook(_, __, output, index=index, own=own):
            parts = own.act_fn(output[0]).reshape(len(output[0]), own.num_attention_heads, 3, own.head_dim)
            seen[index] = (*parts.unbind(2), own.slope_rate.flatten())
        own.qkv_proj.register_forward_hook(hook)


def with_slopes(model):
    """Heads that decay otherwise than their number and their layer say."""
    for block in model.model.layers:
        own = block.self_attn
        if hasattr(own, "slope_rate"):
            own.slope_rate = torch.nn.Buffer(0.3 + 0.2 * torch.arange(own.num_attention_heads)[:, None, None])
            own.query_decay, own.key_decay, own.diagonal_decay = own.decay_factors(own.slope_rate)


def expected_lightning(seen):
    out = {}
    for layer, (query, key, value, slopes) in seen.items():
        n = len(query)
        past = torch.arange(n)[:, None] - torch.arange(n)
        decay = torch.where(past < 0, 0.0, torch.exp(-slopes[:, None, None] * past))
        at = f"blocks.{layer}."
        out[at + "attn.hook_pattern"] = torch.einsum("thd,shd->hts", query, key) * decay
        out[at + "mixer.hook_x"], out[at + "mixer.hook_delta"] = value.reshape(n, -1), torch.ones(n, len(slopes))
        out[at + "mixer.hook_b"], out[at + "mixer.hook_c"] = key, query
    return out


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
        layer = mixing_layers(config).index(layer)
        x, delta, _, b, c = states
        channels = config.model_type in ("mamba", "falcon_mamba", "jamba")
        if config.model_type in HYBRIDS:
            count = shown_heads(config, delta.shape[1])
        else:
            count = max(k for k in range(1, 9) if delta.shape[1] % k == 0) if channels else config.num_heads
        groups = 1 if channels else config.mamba_n_groups if hasattr(config, "mamba_n_groups") else config.n_groups
        at = f"blocks.{layer}."
        out[at + "attn.hook_pattern"] = hidden_attention(states, count)
        out[at + "mixer.hook_x"] = x.reshape(len(x), -1)
        out[at + "mixer.hook_delta"] = delta
        out[at + "mixer.hook_b"], out[at + "mixer.hook_c"] = (y[:, ::y.shape[1] // groups] for y in (b, c))
    return out


def of_all_keys(band):
    """(head, query, key) of Longformer's (head, query, how far from the first key of its window)."""
    heads, n, width = band.shape
    full = torch.zeros(heads, n, n, dtype=band.dtype)
    for query in range(n):
        for at in range(width):
            if 0 <= (key := query + at - width // 2) < n:
                full[:, query, key] = band[:, query, at]
    return full


def see_whole(model, ids):
    """What BigBird does by itself with so short a text, but before its attention is watched."""
    with torch.no_grad():
        alone = copy.deepcopy(model)(ids).logits
        model.bert.set_attention_type("original_full")
        assert (model(ids).logits - alone).abs().max() == 0


def pattern_of(name, given):
    """What the library calls attention: of Longformer by distance from the first key, of SqueezeBERT before its softmax."""
    return of_all_keys(given) if name == "longformer" else given.softmax(-1) if name == "squeezebert" else given


def make(name):
    config_class, settings = FAMILIES[name]
    config = getattr(transformers, config_class)(**settings)
    config._attn_implementation = config._experts_implementation = "eager"
    torch.set_default_dtype(torch.float64)
    encodes = type(config) in transformers.MODEL_FOR_MASKED_LM_MAPPING and name in ENCODERS
    kind = (transformers.AutoModelForMaskedLM if encodes else transformers.AutoModelForMultimodalLM
            if name in TEXT_HALVES else transformers.AutoModelForCausalLM)
    if name in ("audioflamingo3", "musicflamingo") or name.startswith("mistral4"):  # which none of these knows
        whole = "ForCausalLM" if name.startswith("mistral4") else "ForConditionalGeneration"
        kind = getattr(transformers, config_class.replace("Config", whole))
        kind.from_config = kind._from_config
    model = kind.from_config(config, attn_implementation="eager").eval().to(torch.float64)
    hybrid = config.model_type in HYBRIDS
    state_space, states, streams = name.startswith(("mamba", "falcon_mamba")) or hybrid, {}, {}
    drawn(model, seed=sum(map(ord, name)), gain_around=0.0 if name.startswith(("gemma", "vaultgemma", "nemotron", "qwen3_5", "qwen3_next", "minicpm_ocr", "minicpmv")) and not name.startswith("gemma4") else 0.7,  # those add 1
          size=0.9 if state_space else 1.6)  # what a state amounts to grows with the product of three
    stored = in_blocks(model, seed=5) if name.endswith("mxfp4") else {}
    if getattr(config, "alibi", False):
        add_alibi_once(model)
    if name == "minimax-slopes":
        with_slopes(model)
    if name.startswith(("granite_swa", "granitemoe_swa")):
        with_sinks(model)
    if name.startswith(("gemma4", "llama4")) or name in MORE_DECODERS:
        in_doubles(sys.modules[type(model).__module__])
    if name.startswith("paligemma"):  # whose softmax would be of float32
        in_doubles(sys.modules[type(model.model.language_model).__module__])
    ids = torch.tensor([TEXT])
    if getattr(config, "attention_type", None) == "block_sparse":
        see_whole(model, ids)
    routers = {}
    if taken_of(config.get_text_config()):
        watch_routers(model, config.get_text_config(), routers)
    if config.model_type in DELTAS:
        watch_deltas(model, states, streams)
    elif config.model_type in CONVOLUTIONS:
        watch_convolutions(model, states, streams)
    elif config.model_type in LIGHTNING:
        watch_lightning(model, states, streams)
    elif state_space:
        watch_states(model, states, streams)
    mixed = {}  # what the state space of a block adds that has both
    for layer, block in enumerate(blocks_of(model) if config.model_type == "falcon_h1" else []):
        block.mamba.register_forward_hook(lambda _, __, output, layer=layer: mixed.__setitem__(
            layer, output[0] * config.ssm_out_multiplier))
    attentions = dict() if state_space and not hybrid else dict(output_attentions=True)
    whole, model = model, model.language_model if name in ("llama4", "blip_2", "instructblip") else model  # the whole asks for a picture
    with torch.no_grad():
        out = model(ids, output_hidden_states=True, **attentions, **(dict() if encodes else dict(use_cache=False)))
        hidden = (expected_deltas(model, config.get_text_config(), states) if config.model_type in DELTAS else
                  expected_convolutions(config.get_text_config(), states) if config.model_type in CONVOLUTIONS else
                  expected_lightning(states) if config.model_type in LIGHTNING else expected_states(config, states))
        added = dict(mixed)
        streams = dict(streams) if state_space else dict(enumerate(x[0] for x in out.hidden_states))
        logits_of_routers = dict(routers)
        chosen = list(TEXT)
        margins = []
        for _ in range(0 if encodes else STEPS):
            row = model(torch.tensor([chosen]), use_cache=False).logits[0, -1]
            top = torch.topk(row, 2).values
            margins.append(float(top[0] - top[1]))
            chosen.append(int(row.argmax()))
    model = whole
    assert encodes or min(margins) > 2e-4, (name, margins)

    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    # config.json as Hugging Face writes it, without what is only about this machine.
    written = config.to_dict()
    for part in (written, *(half for half in written.values()
                             if (name in TEXT_HALVES or name == "modernvbert") and isinstance(half, dict))):
        for key in ("dtype", "torch_dtype", "transformers_version", "_name_or_path", "architectures"):
            part.pop(key, None)
    written["model_type"] = config.model_type
    if name == "qwen2_vl-flat":
        written |= {key: value for key, value in written.pop("text_config").items() if key != "model_type"}
        rope = written.pop("rope_parameters")
        written |= dict(rope_theta=rope["rope_theta"], rope_scaling=dict(type="mrope", mrope_section=rope["mrope_section"]))
    if name in ("paddleocr_vl", "hunyuan_vl", "fuyu"):
        written |= {key: value for key, value in written.pop("text_config").items() if key != "model_type"}
    if name in ("paddleocr_vl", "hunyuan_vl"):
        rope = written.pop("rope_parameters")
        written |= dict(rope_theta=rope.pop("rope_theta"), rope_scaling=rope)
    if name == "hunyuan_vl":
        rope["type"] = "xdrope"
        rope["xdrope_section"], _ = rope.pop("mrope_section"), rope.pop("rope_type")
        written["attention_head_dim"] = written["head_dim"]
    if name in ("qwen2_5_omni", "qwen3_omni_moe"):
        written = dict(model_type=name, thinker_config=written)
    if name == "kimi_k25":
        written["text_config"]["model_type"] = "kimi_k2"
    if name == "janus":
        del written["tie_word_embeddings"], written["text_config"]["tie_word_embeddings"]
    if name == "exaone":
        for today, published_so in (("num_hidden_layers", "num_layers"), ("rms_norm_eps", "layer_norm_epsilon"),
                                    ("hidden_act", "activation_function")):
            written[published_so] = written.pop(today)
    if name == "sarvam_moe-older":
        for today, theirs in (("n_routed_experts", "num_experts"), ("n_shared_experts", "num_shared_experts"),
                              ("attention_bias", "use_qkv_bias")):
            written[theirs] = written.pop(today)
    if name == "nemotron_h-bare":
        written["hybrid_override_pattern"] = config.hybrid_override_pattern
        del written["layers_block_type"]
    if name in ("mistral3", "mistral3-ministral3", "paligemma-tied"):
        del written["tie_word_embeddings"]
    if stored:
        written["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn"])
    (folder / "config.json").write_text(json.dumps(as_said(name, as_configured(name, written)), indent=1) + "\n")
    if name == "bert":
        (folder / "tokenizer.json").write_text(json.dumps(word_piece(config.vocab_size), indent=1) + "\n")
    weights, seen = {}, set()
    for key, value in model.state_dict(keep_vars=True).items():
        if value.data_ptr() in seen or not (isinstance(value, torch.nn.Parameter) or key.endswith(("e_score_correction_bias", ".expert_bias", "layer_scalar")) or (name == "minimax-slopes" and key.endswith((".slope_rate", "_decay"))) or ".act_fn." in key or name == "ibert"):
            continue
        seen.add(value.data_ptr())
        # What the published files of this family call it; the library of today reads and writes both.
        if key in stored:
            weights |= stored[key]
            continue
        of_text = any(part in key for part in ("language_model", "text_model", "lm_head", "model.layers"))
        if name in MORE_TEXT_HALVES and not of_text and value.numel() > OTHER_HALF and "embed_tokens." not in key:
            continue
        for own, tensor in published(name, key, value.detach()):
            weights[own] = tensor.numpy().astype("<f4")
    if name == "sarvam_moe-older":
        for key in [key for key in weights if key.endswith("self_attn.q_proj.weight")]:
            parts = [weights.pop(key.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj")]
            weights[key.replace("self_attn.q_proj", "attention.query_key_value")] = np.concatenate(parts)
    if name == "molmo2":
        for key in [key for key in weights if key.endswith("self_attn.q_proj.weight")]:
            for kind in ("weight", "bias"):
                parts = [weights.pop(key.replace("q_proj.weight", f"{part}_proj.{kind}")) for part in "qkv"]
                weights[key.replace("q_proj.weight", f"att_proj.{kind}")] = np.concatenate(parts)
        for key in [key for key in weights if key.endswith("mlp.up_proj.weight")]:
            both = [weights.pop(key), weights.pop(key.replace("up_proj", "gate_proj"))]
            weights[key.replace("up_proj", "ff_proj")] = np.concatenate(both)
    if name == "glm_ocr":
        for key in [key for key in weights if ".layers.1." in key]:
            weights[key.replace(".layers.1.", ".layers.2.")] = weights[key]
    write_safetensors(folder / "model.safetensors", as_published(name, weights))
    f4 = lambda tensor: tensor.numpy().astype("<f4")
    expected = {"tokens": np.asarray(TEXT, "<i4"), "greedy": np.asarray(chosen[len(TEXT):], "<i4"),
                "logits": f4(out.logits[0])}
    if getattr(config, "type_vocab_size", 1) > 1:
        segments = torch.tensor([[0] * 5 + [1] * (len(TEXT) - 5)])
        with torch.no_grad():
            expected["segments"] = segments[0].numpy().astype("<i4")
            expected["logits_of_segments"] = f4(model(ids, token_type_ids=segments).logits[0])
    if name.startswith("paligemma"):  # the first five tokens see one another
        with torch.no_grad():
            ahead = torch.tensor([[0] * 5 + [1] * (len(TEXT) - 5)])
            expected["logits_of_prefix"] = f4(model(ids, token_type_ids=ahead, use_cache=False).logits[0])
    expected |= {key: f4(value.contiguous()) for key, value in hidden.items()}
    attending = [i for i in mixing_layers(config) if hybrid and not mixes_by_state(config, i)]
    for block, layer in enumerate(mixing_layers(config)):
        second = config.model_type == "falcon_h1" and block % 2 == 1
        if not state_space or second or (hybrid and not mixes_by_state(config, layer)):
            of = attending.index(layer) if hybrid and not second and config.model_type not in LIGHTNING else layer
            expected[f"blocks.{block}.attn.hook_pattern"] = f4(pattern_of(name, out.attentions[of][0]))
        expected[f"blocks.{block}.hook_resid_pre"] = f4(streams[layer] + (added[layer] if second else 0))
    for layer, logits in logits_of_routers.items():
        layer = mixing_layers(config).index(layer - 1) if config.model_type == "nemotron_h" else layer
        expected[f"blocks.{layer}.mlp.hook_router_logits"] = f4(logits)
    write_safetensors(folder / "expected.safetensors", expected)
    print(name, sum(file.stat().st_size for file in folder.iterdir()), "bytes, logits to", float(out.logits.abs().max()))


if __name__ == "__main__":
    for family in sys.argv[1:] or FAMILIES:
        make(family)
