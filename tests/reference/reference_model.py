"""An independent definition of the decoders that Headscope runs, in NumPy float64, written from the papers:
GPT-2 (Radford et al. 2019), LLaMA (Touvron et al. 2023), LayerNorm (Ba et al. 2016), RMSNorm (Zhang & Sennrich 2019),
RoPE (Su et al. 2021), Llama-3 frequency scaling (Grattafiori et al. 2024), GELU (Hendrycks & Gimpel 2016), SwiGLU
(Shazeer 2020). It shares nothing with the C++ and is written to be read, not to be fast.

check_reference.py compares it with real models' captures and, where installed, with torch and transformers.
"""

import json
import math
import pathlib
import struct

import numpy as np

# ---- safetensors -----------------------------------------------------------------------------------------------------

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1"}


def bfloat16_bits(values):
    """float → the 16 bits of the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, "<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def from_bfloat16(bits):
    return (bits.astype("<u4") << 16).view("<f4")


def write_safetensors(path, tensors, metadata=None):
    """tensors: name → array (f4, f2, i4 …) or ("BF16", uint16 array)."""
    header, blobs, offset = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata
    for name, value in tensors.items():
        if isinstance(value, tuple):
            dtype, array = value
        else:
            array = np.asarray(value)  # a single number stays one without axes
            dtype = {np.dtype(text): key for key, text in DTYPES.items()}[array.dtype]
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        blob = data[8 + size + begin : 8 + size + end]
        if entry["dtype"] == "BF16":
            array = from_bfloat16(np.frombuffer(blob, "<u2"))
        else:
            array = np.frombuffer(blob, DTYPES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"])
    return tensors


def read_folder(folder):
    """config.json and the weights of a folder in Hugging Face layout, as float64."""
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(read_safetensors(file))
    return config, {name: np.asarray(value, np.float64) for name, value in tensors.items()}


# ---- the pieces ------------------------------------------------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, gain, bias, epsilon):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gain + bias


def rms_norm(x, gain, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * gain


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def silu(x):
    return x / (1 + np.exp(-x))


ACTIVATIONS = {"gelu_new": gelu_tanh, "gelu": gelu, "silu": silu, "relu": lambda x: np.maximum(x, 0)}


def rope_frequencies(config, d_head):
    """Angle per position of each pair, d_head / 2 of them."""
    frequencies = [config.get("rope_theta", 10000.0) ** (-2 * i / d_head) for i in range(d_head // 2)]
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "linear":
        frequencies = [f / scaling["factor"] for f in frequencies]
    elif kind == "llama3":
        original = scaling["original_max_position_embeddings"]
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        scaled = []
        for f in frequencies:
            turns = original * f / (2 * math.pi)  # full turns within the original context
            keep = min(1.0, max(0.0, (turns - low) / (high - low)))
            scaled.append(keep * f + (1 - keep) * f / scaling["factor"])
        frequencies = scaled
    elif kind != "default":
        raise ValueError(kind)
    return np.array(frequencies)


def rotate(x, frequencies):
    """x (position, head, d): the pair (x_i, x_{i + d/2}) turned by position · frequency_i."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[0])[:, None, None] * frequencies
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


# ---- the models ------------------------------------------------------------------------------------------------------


def prefixed(weights, prefix, probe):
    return prefix if prefix + probe in weights else ""


def forward(config, weights, ids):
    """Every site of a pass by its TransformerLens name → float64 array; shapes as in core/trace/site.cpp."""
    return {"gpt2": forward_gpt2, "llama": forward_llama}[config["model_type"]](config, weights, np.asarray(ids))


def attend(sites, block, q, k, v, scale):
    """q (query, head, d), k and v (key, kv_head, d) → z (query, head, d); query head h reads kv head h // (heads / kv_heads)."""
    n, heads, _ = q.shape
    group = heads // k.shape[1]
    scores = np.full((heads, n, n), -np.inf)
    z = np.zeros_like(q)
    for h in range(heads):
        product = q[:, h] @ k[:, h // group].T * scale
        scores[h] = np.where(np.tril(np.ones((n, n), bool)), product, -np.inf)
    pattern = softmax(scores)
    for h in range(heads):
        z[:, h] = pattern[h] @ v[:, h // group]
    sites.update({block + "attn.hook_q": q, block + "attn.hook_k": k, block + "attn.hook_v": v})
    sites.update({block + "attn.hook_attn_scores": scores, block + "attn.hook_pattern": pattern, block + "attn.hook_z": z})
    return z


def forward_gpt2(config, weights, ids):
    heads, d = config["n_head"], config["n_embd"]
    epsilon, act = config["layer_norm_epsilon"], ACTIVATIONS[config["activation_function"]]
    p = prefixed(weights, "transformer.", "wte.weight")
    n, d_head = len(ids), d // heads
    sites = {"hook_embed": weights[p + "wte.weight"][ids], "hook_pos_embed": weights[p + "wpe.weight"][:n]}
    x = sites["hook_embed"] + sites["hook_pos_embed"]
    for layer in range(config["n_layer"]):
        w = lambda name: weights[f"{p}h.{layer}.{name}"]
        block = f"blocks.{layer}."
        sites[block + "hook_resid_pre"] = x
        norm = layer_norm(x, w("ln_1.weight"), w("ln_1.bias"), epsilon)
        sites[block + "ln1.hook_normalized"] = norm
        q, k, v = np.split(norm @ w("attn.c_attn.weight") + w("attn.c_attn.bias"), 3, axis=-1)
        scale = 1 / math.sqrt(d_head) if config.get("scale_attn_weights", True) else 1.0
        if config.get("scale_attn_by_inverse_layer_idx", False):
            scale /= layer + 1
        z = attend(sites, block, *(t.reshape(n, heads, d_head) for t in (q, k, v)), scale)
        w_o = w("attn.c_proj.weight").reshape(heads, d_head, d)
        x = finish_attention(sites, block, x, z, w_o, w("attn.c_proj.bias"))
        norm = layer_norm(x, w("ln_2.weight"), w("ln_2.bias"), epsilon)
        pre = norm @ w("mlp.c_fc.weight") + w("mlp.c_fc.bias")
        sites.update({block + "ln2.hook_normalized": norm, block + "mlp.hook_pre": pre, block + "mlp.hook_post": act(pre)})
        x = finish_mlp(sites, block, x, act(pre) @ w("mlp.c_proj.weight") + w("mlp.c_proj.bias"))
    final = layer_norm(x, weights[p + "ln_f.weight"], weights[p + "ln_f.bias"], epsilon)
    head = weights[p + "wte.weight"] if config.get("tie_word_embeddings", True) else weights["lm_head.weight"]
    sites.update({"ln_final.hook_normalized": final, "logits": final @ head.T})
    return sites


def forward_llama(config, weights, ids):
    heads, kv_heads, d = config["num_attention_heads"], config["num_key_value_heads"], config["hidden_size"]
    epsilon, act = config["rms_norm_eps"], ACTIVATIONS[config["hidden_act"]]
    d_head = config.get("head_dim") or d // heads
    p = prefixed(weights, "model.", "embed_tokens.weight")
    n, frequencies = len(ids), rope_frequencies(config, d_head)
    sites = {"hook_embed": weights[p + "embed_tokens.weight"][ids]}
    x = sites["hook_embed"]
    for layer in range(config["num_hidden_layers"]):
        w = lambda name: weights[f"{p}layers.{layer}.{name}.weight"]
        b = lambda name: weights.get(f"{p}layers.{layer}.{name}.bias", 0.0)
        linear = lambda name, t: t @ w(name).T + b(name)
        block = f"blocks.{layer}."
        sites[block + "hook_resid_pre"] = x
        norm = rms_norm(x, w("input_layernorm"), epsilon)
        sites[block + "ln1.hook_normalized"] = norm
        q = linear("self_attn.q_proj", norm).reshape(n, heads, d_head)
        k = linear("self_attn.k_proj", norm).reshape(n, kv_heads, d_head)
        v = linear("self_attn.v_proj", norm).reshape(n, kv_heads, d_head)
        rot_q, rot_k = rotate(q, frequencies), rotate(k, frequencies)
        z = attend(sites, block, rot_q, rot_k, v, 1 / math.sqrt(d_head))
        sites.update({block + "attn.hook_q": q, block + "attn.hook_k": k})
        sites.update({block + "attn.hook_rot_q": rot_q, block + "attn.hook_rot_k": rot_k})
        w_o = w("self_attn.o_proj").T.reshape(heads, d_head, d)
        x = finish_attention(sites, block, x, z, w_o, b("self_attn.o_proj"))
        norm = rms_norm(x, w("post_attention_layernorm"), epsilon)
        gate, up = linear("mlp.gate_proj", norm), linear("mlp.up_proj", norm)
        post = act(gate) * up
        sites.update({block + "ln2.hook_normalized": norm, block + "mlp.hook_pre": gate})
        sites.update({block + "mlp.hook_pre_linear": up, block + "mlp.hook_post": post})
        x = finish_mlp(sites, block, x, linear("mlp.down_proj", post))
    final = rms_norm(x, weights[p + "norm.weight"], epsilon)
    head = weights[p + "embed_tokens.weight"] if config.get("tie_word_embeddings", False) else weights["lm_head.weight"]
    sites.update({"ln_final.hook_normalized": final, "logits": final @ head.T})
    return sites


def finish_attention(sites, block, x, z, w_o, b_o):
    result = np.einsum("qhd,hdm->qhm", z, w_o)  # what each head adds
    out = result.sum(1) + b_o
    sites.update({block + "attn.hook_result": result, block + "hook_attn_out": out, block + "hook_resid_mid": x + out})
    return x + out


def finish_mlp(sites, block, x, out):
    sites.update({block + "hook_mlp_out": out, block + "hook_resid_post": x + out})
    return x + out


# ---- what follows from a pass ----------------------------------------------------------------------------------------


def patterns(sites):
    """(layer, head, query, key)"""
    layers = sum(name.endswith("hook_pattern") for name in sites)
    return np.stack([sites[f"blocks.{i}.attn.hook_pattern"] for i in range(layers)])


def losses(logits, ids):
    """−ln p of every next token."""
    p = softmax(logits[:-1])
    return -np.log(p[np.arange(len(ids) - 1), np.asarray(ids)[1:]])


def greedy(config, weights, ids, steps):
    """The most likely continuation, and by how much each choice led."""
    ids, chosen, gaps = list(ids), [], []
    for _ in range(steps):
        logits = forward(config, weights, ids)["logits"][-1]
        order = np.argsort(-logits, kind="stable")
        chosen.append(int(order[0]))
        gaps.append(float(logits[order[0]] - logits[order[1]]))
        ids.append(chosen[-1])
    return chosen, gaps


def mean_or_nan(values):
    return float(np.mean(values)) if len(values) else float("nan")


def head_metrics(a, ids):
    """One head's attention a (query, key), causal → name → number, by the names and formulas of core/metrics/metrics.cpp.
    Sums are written out cell by cell on purpose. Rows that offer no evidence are left out of a mean; NaN when none is left."""
    n, ids = len(ids), list(ids)
    spread = lambda row: -sum(p * math.log(p) for p in row if p > 0)
    entropy = [spread(row) for row in a]
    rest = [a[q, 1:] / a[q, 1:].sum() for q in range(1, n) if a[q, 1:].sum() > 0]
    at_offset = {d: float(np.mean([a[q, q - d] for q in range(d, n)])) for d in range(2, n) if n - d >= n / 2}
    earlier = [[j for j in range(q) if ids[j] == ids[q]] for q in range(n)]
    return {
        "entropy": mean_or_nan(entropy),
        "entropy_normalized": mean_or_nan([entropy[q] / math.log(q + 1) for q in range(1, n)]),
        "entropy_without_sink": mean_or_nan([spread(row) for row in rest]),
        "effective_tokens": mean_or_nan([math.exp(e) for e in entropy]),
        "max_weight": mean_or_nan(a.max(1)),
        "sink": mean_or_nan(a[1:, 0]),
        "sink_first_k": mean_or_nan([a[q, :4].sum() for q in range(4, n)]),
        "mean_distance": mean_or_nan([sum(a[q, k] * (q - k) for k in range(n)) for q in range(n)]),
        "self_attention": mean_or_nan([a[q, q] for q in range(n)]),
        "previous_token": mean_or_nan([a[q, q - 1] for q in range(1, n)]),
        "fixed_offset": max(at_offset.values(), default=float("nan")),
        "fixed_offset_at": max(at_offset, key=at_offset.get, default=float("nan")),
        "local": mean_or_nan([sum(a[q, k] for k in range(q - 4, q + 1)) for q in range(5, n)]),
        "duplicate_token": mean_or_nan([sum(a[q, j] for j in earlier[q]) for q in range(n) if earlier[q]]),
        "prefix_matching": mean_or_nan([sum(a[q, j + 1] for j in earlier[q]) for q in range(n) if earlier[q]]),
        "row_mass": mean_or_nan(a.sum(1)),
        "column_mass": float(a.sum(0).max() / n),
    }


def all_head_metrics(a, ids):
    """a (layer, head, query, key) → name → (layer, head)"""
    table = [[head_metrics(head, ids) for head in layer] for layer in a]
    return {name: np.array([[head[name] for head in layer] for layer in table]) for name in table[0][0]}


def even_metrics(ids):
    """The same of a head that spreads its weight evenly over what it sees: the level of chance."""
    n = len(ids)
    return head_metrics(np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None], ids)
