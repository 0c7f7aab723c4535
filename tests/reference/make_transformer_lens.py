#!/usr/bin/env python3
"""Small random HookedTransformers and what they compute: the definition of TransformerLens' state dicts (version 2), in NumPy
float64 and written from its documentation. It shares nothing with the C++.

    python3 -m pip install numpy && python3 tests/reference/make_transformer_lens.py [name …]

Writes tests/reference/families/transformer_lens-NAME (without MLPs: formats/), as make_families.py does: config.json (a HookedTransformerConfig as
json.dumps of to_dict() writes it), model.safetensors (the state dict, masks and rotary tables too) and expected.safetensors;
and tests/reference/formats/lens-*.pt: the state dict of "solu" beside its configuration as a dict and as the class, and without
one.
"""
import json
import math
import pathlib
import pickle
import sys
import types
import zipfile

import numpy as np
from reference_model import gelu, gelu_tanh, silu, write_safetensors

HERE = pathlib.Path(__file__).parent
TEXT = [3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3]
STEPS = 6

# What the class has where nothing is said.
DEFAULTS = dict(
    n_layers=2, d_vocab=43, n_ctx=40, model_name="custom", d_mlp=None, act_fn=None, eps=1e-5, use_attn_result=False,
    use_attn_scale=True, attn_scale=-1.0, use_split_qkv_input=False, use_hook_mlp_in=False, use_attn_in=False, use_qk_norm=False,
    use_local_attn=False, ungroup_grouped_query_attention=False, original_architecture=None, from_checkpoint=False,
    tokenizer_name=None, window_size=None, attn_types=None, init_mode="gpt2", normalization_type="LN", device="cpu", n_devices=1,
    attention_dir="causal", attn_only=False, seed=0, initializer_range=0.18, init_weights=True, scale_attn_by_inverse_layer_idx=False,
    positional_embedding_type="standard", final_rms=False, d_vocab_out=43, parallel_attn_mlp=False, rotary_dim=None, n_params=1,
    use_hook_tokens=False, gated_mlp=False, default_prepend_bos=True, dtype="torch.float32", tokenizer_prepends_bos=None,
    n_key_value_heads=None, post_embedding_ln=False, rotary_base=10000, trust_remote_code=False, rotary_adjacent_pairs=False,
    load_in_4bit=False, num_experts=None, experts_per_token=None, relative_attention_max_distance=None,
    relative_attention_num_buckets=None, decoder_start_token_id=None, tie_word_embeddings=False,
    use_normalization_before_and_after=False, attn_scores_soft_cap=-1.0, output_logits_soft_cap=-1.0, use_NTK_by_parts_rope=False,
    NTK_by_parts_low_freq_factor=1.0, NTK_by_parts_high_freq_factor=4.0, NTK_by_parts_factor=8.0, NTK_original_ctx_len=8192)

MODELS = {
    "solu": dict(d_model=18, n_heads=3, d_head=5, d_mlp=22, act_fn="solu_ln", normalization_type="LN", final_rms=True,
                 attn_scale=1.7, scale_attn_by_inverse_layer_idx=True),
    "gated": dict(d_model=18, n_heads=6, d_head=6, n_key_value_heads=2, d_mlp=22, act_fn="silu", gated_mlp=True,
                  normalization_type="RMS", positional_embedding_type="rotary", rotary_dim=4, rotary_adjacent_pairs=True,
                  rotary_base=100, attn_scores_soft_cap=1.5, output_logits_soft_cap=2.0, eps=1e-4),
    "no-norms": dict(d_model=15, n_heads=3, d_head=5, d_mlp=20, act_fn="relu", normalization_type=None, use_attn_scale=False),
    "attn-only": dict(d_model=15, n_heads=3, d_head=5, attn_only=True, normalization_type="LN"),
    "folded": dict(n_layers=3, d_model=18, n_heads=3, d_head=6, d_mlp=20, act_fn="gelu_new", normalization_type="LNPre",
                   parallel_attn_mlp=True, use_local_attn=True, window_size=4, attn_types=["local", "global", "local"],
                   positional_embedding_type="rotary", use_NTK_by_parts_rope=True, rotary_base=1000,
                   NTK_by_parts_factor=4.0, NTK_original_ctx_len=64),
    "alibi": dict(d_model=18, n_heads=3, d_head=6, d_mlp=20, act_fn="solu", normalization_type="RMSPre",
                  positional_embedding_type="alibi"),
    "gemma-like": dict(d_model=16, n_heads=4, d_head=4, d_mlp=20, act_fn="gelu_pytorch_tanh", gated_mlp=True,
                       normalization_type="RMS", use_normalization_before_and_after=True, use_qk_norm=True,
                       positional_embedding_type="rotary", rotary_base=100),
    "bloom-like": dict(d_model=18, n_heads=3, d_head=6, d_mlp=20, act_fn="gelu", normalization_type="LN",
                       post_embedding_ln=True, positional_embedding_type="alibi"),
}


def configuration(name):
    c = DEFAULTS | MODELS[name]
    if c["use_attn_scale"] and c["attn_scale"] == -1.0:
        c["attn_scale"] = math.sqrt(c["d_head"])
    if c["positional_embedding_type"] == "rotary" and c["rotary_dim"] is None:
        c["rotary_dim"] = c["d_head"]
    return c


def state_dict(c, seed):
    """Matrices of a size that makes attention look somewhere, gains and biases far from 1 and 0."""
    random = np.random.default_rng(seed)
    small = 0.5 if c["normalization_type"] is None else 1.0  # nothing keeps streams from growing
    draw = lambda scale, *shape: (random.standard_normal(shape) * scale * small).astype("<f4")
    d, heads, width, mlp, vocab = c["d_model"], c["n_heads"], c["d_head"], c["d_mlp"], c["d_vocab"]
    keys = c["n_key_value_heads"] or heads
    kind = c["normalization_type"]
    w = {}

    def norm(name, size, bias):
        w[name + ".w"] = draw(0.4, size) + np.float32(0.7)
        if bias:
            w[name + ".b"] = draw(0.4, size)

    def usual_norm(name):
        if kind in ("LN", "RMS"):
            norm(name, d, kind == "LN")

    w["embed.W_E"] = draw(1.0, vocab, d)
    if c["post_embedding_ln"]:
        norm("embed.ln", d, True)
    if c["positional_embedding_type"] == "standard":
        w["pos_embed.W_pos"] = draw(0.7, c["n_ctx"], d)
    shared = "_" if c["n_key_value_heads"] else ""
    for layer in range(c["n_layers"]):
        at = f"blocks.{layer}."
        usual_norm(at + "ln1")
        for letter, count, prefix in (("Q", heads, ""), ("K", keys, shared), ("V", keys, shared)):
            w[f"{at}attn.{prefix}W_{letter}"] = draw(1.6 / d**0.5, count, d, width)
            w[f"{at}attn.{prefix}b_{letter}"] = draw(0.4, count, width)
        w[at + "attn.W_O"] = draw(1.6 / (heads * width) ** 0.5, heads, width, d)
        w[at + "attn.b_O"] = draw(0.4, d)
        if c["use_qk_norm"]:
            norm(at + "attn.q_norm", width, False)
            norm(at + "attn.k_norm", width, False)
        w[at + "attn.mask"] = ("BOOL", mask(c, layer, c["n_ctx"]).astype("u1"))
        w[at + "attn.IGNORE"] = np.array(-np.inf, "<f4")
        if c["positional_embedding_type"] == "rotary":
            sine, cosine = rotary_tables(c, c["n_ctx"])
            w[at + "attn.rotary_sin"], w[at + "attn.rotary_cos"] = sine.astype("<f4"), cosine.astype("<f4")
        if c["use_normalization_before_and_after"]:
            norm(at + "ln1_post", d, False)
        if not c["attn_only"]:
            usual_norm(at + "ln2")
            w[at + "mlp.W_in"] = draw(1.6 / d**0.5, d, mlp)
            w[at + "mlp.b_in"] = draw(0.4, mlp)
            w[at + "mlp.W_out"] = draw(1.6 / mlp**0.5, mlp, d)
            w[at + "mlp.b_out"] = draw(0.4, d)
            if c["gated_mlp"]:
                w[at + "mlp.W_gate"] = draw(1.6 / d**0.5, d, mlp)
            if c["act_fn"] == "solu_ln" and kind == "LN":
                norm(at + "mlp.ln", mlp, True)
            if c["use_normalization_before_and_after"]:
                norm(at + "ln2_post", d, False)
    if kind in ("LN", "RMS"):
        norm("ln_final", d, kind == "LN" and not c["final_rms"])
    w["unembed.W_U"] = draw(1.6 / d**0.5, d, vocab)
    w["unembed.b_U"] = draw(0.4, vocab)
    return w


# ---- the forward pass ------------------------------------------------------------------------------------------------


def mask(c, layer, n):
    seen = np.tril(np.ones((n, n), bool))
    if c["use_local_attn"] and c["attn_types"][layer] == "local":
        seen = np.triu(seen, 1 - c["window_size"])
    return seen


def rotary_tables(c, n):
    width, base = c["rotary_dim"], c["rotary_base"]
    frequency = base ** (-np.arange(0, width, 2) / width)
    if c["use_NTK_by_parts_rope"]:
        # Llama 3: what turns often within the old context stays, what hardly turns is stretched, between them by parts.
        turns = c["NTK_original_ctx_len"] * frequency / (2 * math.pi)
        low, high = c["NTK_by_parts_low_freq_factor"], c["NTK_by_parts_high_freq_factor"]
        kept = np.clip((turns - low) / (high - low), 0, 1)
        frequency = kept * frequency + (1 - kept) * frequency / c["NTK_by_parts_factor"]
    frequency = np.repeat(frequency, 2) if c["rotary_adjacent_pairs"] else np.tile(frequency, 2)
    angle = np.arange(n)[:, None] * frequency[None, :]
    return np.sin(angle), np.cos(angle)


def rotated(c, x):
    """x (position, head, d_head)"""
    width = c["rotary_dim"]
    sine, cosine = rotary_tables(c, len(x))
    turning, rest = x[..., :width], x[..., width:]
    flipped = np.empty_like(turning)
    if c["rotary_adjacent_pairs"]:
        flipped[..., ::2], flipped[..., 1::2] = -turning[..., 1::2], turning[..., ::2]
    else:
        half = width // 2
        flipped[..., :half], flipped[..., half:] = -turning[..., half:], turning[..., :half]
    return np.concatenate([turning * cosine[:, None] + flipped * sine[:, None], rest], -1)


def layer_norm(x, eps, w=None, b=None):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
    return x if w is None else x * w + b


def rms_norm(x, eps, w=None):
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
    return x if w is None else x * w


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "gelu": gelu, "gelu_new": gelu_tanh, "gelu_pytorch_tanh": gelu_tanh,
               "silu": silu, "solu": lambda x: x * softmax(x), "solu_ln": lambda x: x * softmax(x)}


def forward(c, weights, ids):
    w = {k: v.astype(np.float64) for k, v in weights.items() if not isinstance(v, tuple)}
    eps, kind, n = c["eps"], c["normalization_type"], len(ids)

    def norm(name, x, final=False):
        if kind is None:
            return x
        if kind.startswith("RMS") or (final and c["final_rms"]):
            return rms_norm(x, eps, w.get(name + ".w"))
        return layer_norm(x, eps, w.get(name + ".w"), w.get(name + ".b"))

    x = w["embed.W_E"][ids]
    if c["post_embedding_ln"]:
        x = layer_norm(x, eps, w["embed.ln.w"], w["embed.ln.b"])
    if c["positional_embedding_type"] == "standard":
        x = x + w["pos_embed.W_pos"][:n]
    out = {}
    shared = "_" if c["n_key_value_heads"] else ""
    group = c["n_heads"] // (c["n_key_value_heads"] or c["n_heads"])
    for layer in range(c["n_layers"]):
        at = f"blocks.{layer}."
        out[at + "hook_resid_pre"] = x
        read = norm(at + "ln1", x)
        project = lambda letter, prefix: np.einsum("pm,hmd->phd", read, w[f"{at}attn.{prefix}W_{letter}"]) + w[f"{at}attn.{prefix}b_{letter}"]
        q, k, v = project("Q", ""), project("K", shared), project("V", shared)
        if c["use_qk_norm"]:
            q, k = rms_norm(q, eps, w[at + "attn.q_norm.w"]), rms_norm(k, eps, w[at + "attn.k_norm.w"])
        if c["positional_embedding_type"] == "rotary":
            q, k = rotated(c, q), rotated(c, k)
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scale = c["attn_scale"] if c["use_attn_scale"] else 1.0
        if c["scale_attn_by_inverse_layer_idx"]:
            scale *= layer + 1
        scores = np.einsum("qhd,khd->hqk", q, k) / scale
        if c["attn_scores_soft_cap"] > 0:
            scores = c["attn_scores_soft_cap"] * np.tanh(scores / c["attn_scores_soft_cap"])
        if c["positional_embedding_type"] == "alibi":
            slopes = 2.0 ** (-8 * np.arange(1, c["n_heads"] + 1) / c["n_heads"])
            scores = scores + slopes[:, None, None] * np.minimum(np.arange(n)[None, :] - np.arange(n)[:, None], 0)
        pattern = softmax(np.where(mask(c, layer, n), scores, -np.inf))
        out[at + "attn.hook_pattern"] = pattern
        attention = np.einsum("hqk,khd,hdm->qm", pattern, v, w[at + "attn.W_O"]) + w[at + "attn.b_O"]
        if c["use_normalization_before_and_after"]:
            attention = rms_norm(attention, eps, w[at + "ln1_post.w"])
        after = x + attention
        if c["attn_only"]:
            x = after
            continue
        read = norm(at + "ln2", x if c["parallel_attn_mlp"] else after)
        f = ACTIVATIONS[c["act_fn"]]
        if c["gated_mlp"]:
            hidden = f(read @ w[at + "mlp.W_gate"]) * (read @ w[at + "mlp.W_in"]) + w[at + "mlp.b_in"]
        else:
            hidden = f(read @ w[at + "mlp.W_in"] + w[at + "mlp.b_in"])
            if c["act_fn"] == "solu_ln":
                hidden = layer_norm(hidden, eps, w.get(at + "mlp.ln.w"), w.get(at + "mlp.ln.b"))
        mlp = hidden @ w[at + "mlp.W_out"] + w[at + "mlp.b_out"]
        if c["use_normalization_before_and_after"]:
            mlp = rms_norm(mlp, eps, w[at + "ln2_post.w"])
        x = after + mlp
    logits = norm("ln_final", x, final=True) @ w["unembed.W_U"] + w["unembed.b_U"]
    if c["output_logits_soft_cap"] > 0:
        logits = c["output_logits_soft_cap"] * np.tanh(logits / c["output_logits_soft_cap"])
    out["logits"] = logits
    return out


def make(name):
    c = configuration(name)
    weights = state_dict(c, sum(map(ord, name)))
    found = forward(c, weights, TEXT)
    chosen, margins = list(TEXT), []
    for _ in range(STEPS):
        row = forward(c, weights, chosen)["logits"][-1]
        top = np.sort(row)
        margins.append(top[-1] - top[-2])
        chosen.append(int(row.argmax()))
    assert min(margins) > 2e-4, (name, margins)
    # Tests of families look for MLPs.
    folder = HERE / ("formats" if c["attn_only"] else "families") / f"transformer_lens-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(c, indent=1) + "\n")
    write_safetensors(folder / "model.safetensors", weights)
    expected = {"tokens": np.asarray(TEXT, "<i4"), "greedy": np.asarray(chosen[len(TEXT):], "<i4")}
    write_safetensors(folder / "expected.safetensors", expected | {k: v.astype("<f4") for k, v in found.items()})
    print(name, sum(file.stat().st_size for file in folder.iterdir()), "bytes, logits to", float(np.abs(found["logits"]).max()))


# ---- files of torch.save ---------------------------------------------------------------------------------------------


class Named:
    """Pickles as the global of that name."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    """Pickles as a call of it."""

    def __init__(self, callee, *arguments):
        self.callee, self.arguments = callee, arguments


class Stored:
    def __init__(self, key, kind, count):
        self.id = ("storage", Named("torch", kind), key, "cpu", count)


class Writer(pickle._Pickler):
    """Protocol 2, storages by persistent id: what torch.save makes of a module's state."""

    def persistent_id(self, value):
        return value.id if isinstance(value, Stored) else None

    def save(self, value, save_persistent_id=True):
        if isinstance(value, Named):
            self.write(b"c" + value.module.encode() + b"\n" + value.name.encode() + b"\n")
        elif isinstance(value, Call):
            self.save(value.callee)
            self.save(tuple(value.arguments))
            self.write(b"R")
        else:
            pickle._Pickler.save(self, value, save_persistent_id)


def torch_save(path, value, tensors):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        import io

        data = io.BytesIO()
        Writer(data, 2).dump(value)
        archive.writestr(f"{path.stem}/data.pkl", data.getvalue())
        archive.writestr(f"{path.stem}/byteorder", "little")
        for key, array in tensors.items():
            archive.writestr(f"{path.stem}/data/{key}", array.tobytes())
        archive.writestr(f"{path.stem}/version", "3\n")


def checkpoints():
    c = configuration("solu")
    arrays, state = {}, {}
    for i, (name, value) in enumerate(state_dict(c, sum(map(ord, "solu"))).items()):
        array, kind = (value[1], "BoolStorage") if isinstance(value, tuple) else (value, "FloatStorage")
        strides = tuple(int(s) // array.itemsize for s in np.ascontiguousarray(array).reshape(array.shape).strides)
        arrays[str(i)] = array
        state[name] = Call(Named("torch._utils", "_rebuild_tensor_v2"), Stored(str(i), kind, array.size), 0, array.shape, strides,
                           False, Call(Named("collections", "OrderedDict")))
    settings = {k: v for k, v in c.items() if k != "dtype"}
    settings["dtype"] = Named("torch", "float32")
    out = HERE / "formats"
    torch_save(out / "lens-dict.pt", {"cfg": settings | {"device": Call(Named("torch", "device"), "cpu")}, "state_dict": state}, arrays)
    # An object of the class: made without arguments, then given its attributes.
    module = types.ModuleType("transformer_lens.HookedTransformerConfig")
    config_class = type("HookedTransformerConfig", (), {"__module__": module.__name__})
    module.HookedTransformerConfig = config_class
    package = types.ModuleType("transformer_lens")
    package.HookedTransformerConfig = module
    sys.modules |= {package.__name__: package, module.__name__: module}
    instance = config_class()
    instance.__dict__.update(settings)
    torch_save(out / "lens-class.pt", {"model": state, "config": instance}, arrays)
    torch_save(out / "lens-state.pt", state, arrays)


if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        make(each)
    if not sys.argv[1:]:
        checkpoints()
