"""Writes the small random models that ./test always needs, and what reference_model.py (float64) says they compute.

    python3 make_models.py          # deterministic: the same bytes every time with the same NumPy

One folder per model: config.json, weights, and expected*.safetensors with
  tokens             I32 (position)
  every site of core/trace/site.cpp by name, F32: the float64 value rounded once
  nll                (position − 1)
  top10_ids          I32, top10_probs: after the last position
  greedy             I32 (8): the greedy continuation
  metrics.NAME       (layer, head), see head_metrics() in reference_model.py; chance.NAME: one number, see even_metrics()
Seeds are chosen so that no rank among the top ten and no greedy choice hangs on less than 1e-3 of a logit.
How the reference itself was checked: check_reference.py.
"""

import json
import pathlib

import numpy as np

import reference_model as reference

HERE = pathlib.Path(__file__).parent
GREEDY_STEPS = 8
MARGIN = 1e-3


# ---- weights ---------------------------------------------------------------------------------------------------------


class Draw:
    """Random weights large enough that attention is far from uniform and no norm, bias or activation is idle."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def matrix(self, *shape, gain=1.0):
        return self.random.normal(0, gain / np.sqrt(shape[0]), shape)

    def table(self, rows, width):
        return self.random.normal(0, 0.7, (rows, width))

    def gain(self, width):
        return 1 + self.random.normal(0, 0.3, width)

    def bias(self, width):
        return self.random.normal(0, 0.2, width)


def gpt2_weights(config, seed, prefix):
    draw, d, d_mlp = Draw(seed), config["n_embd"], config["n_inner"] or 4 * config["n_embd"]
    w = {"wte.weight": draw.table(config["vocab_size"], d), "wpe.weight": 0.6 * draw.table(config["n_positions"], d)}
    for i in range(config["n_layer"]):
        h = f"h.{i}."
        qkv = np.concatenate([draw.matrix(d, d, gain=1.5), draw.matrix(d, d, gain=1.5), draw.matrix(d, d)], axis=1)
        w |= {h + "ln_1.weight": draw.gain(d), h + "ln_1.bias": draw.bias(d)}
        w |= {h + "attn.c_attn.weight": qkv, h + "attn.c_attn.bias": draw.bias(3 * d)}
        w |= {h + "attn.c_proj.weight": draw.matrix(d, d), h + "attn.c_proj.bias": draw.bias(d)}
        w |= {h + "ln_2.weight": draw.gain(d), h + "ln_2.bias": draw.bias(d)}
        w |= {h + "mlp.c_fc.weight": draw.matrix(d, d_mlp), h + "mlp.c_fc.bias": draw.bias(d_mlp)}
        w |= {h + "mlp.c_proj.weight": draw.matrix(d_mlp, d), h + "mlp.c_proj.bias": draw.bias(d)}
    w |= {"ln_f.weight": draw.gain(d), "ln_f.bias": draw.bias(d)}
    w = {prefix + name: value for name, value in w.items()}
    if not config["tie_word_embeddings"]:
        w["lm_head.weight"] = draw.table(config["vocab_size"], d)
    return w


def llama_weights(config, seed, prefix):
    draw, d, d_mlp = Draw(seed), config["hidden_size"], config["intermediate_size"]
    d_head = config.get("head_dim") or d // config["num_attention_heads"]
    queries, keys = config["num_attention_heads"] * d_head, config["num_key_value_heads"] * d_head
    w = {"embed_tokens.weight": draw.table(config["vocab_size"], d)}

    def linear(name, fan_in, fan_out, biased, gain=1.0):
        w[name + ".weight"] = draw.matrix(fan_in, fan_out, gain=gain).T  # torch.nn.Linear keeps (out, in)
        if biased:
            w[name + ".bias"] = draw.bias(fan_out)

    for i in range(config["num_hidden_layers"]):
        h = f"layers.{i}."
        w[h + "input_layernorm.weight"] = draw.gain(d)
        linear(h + "self_attn.q_proj", d, queries, config["attention_bias"], 1.5)
        linear(h + "self_attn.k_proj", d, keys, config["attention_bias"], 1.5)
        linear(h + "self_attn.v_proj", d, keys, config["attention_bias"])
        linear(h + "self_attn.o_proj", queries, d, config["attention_bias"])
        w[h + "post_attention_layernorm.weight"] = draw.gain(d)
        linear(h + "mlp.gate_proj", d, d_mlp, config["mlp_bias"])
        linear(h + "mlp.up_proj", d, d_mlp, config["mlp_bias"])
        linear(h + "mlp.down_proj", d_mlp, d, config["mlp_bias"])
    w["norm.weight"] = draw.gain(d)
    w = {prefix + name: value for name, value in w.items()}
    if not config["tie_word_embeddings"]:
        w["lm_head.weight"] = draw.table(config["vocab_size"], d)
    return w


def stored(weights, dtype):
    """What goes into the file, and the exact values it stands for. Norms stay F32, as mixed checkpoints keep them."""
    file, exact = {}, {}
    for name, value in weights.items():
        norm = "norm" in name or ".ln_" in name or name.startswith("ln_")
        if dtype == "F16" and not norm:
            file[name] = value.astype("<f2")
            exact[name] = file[name].astype(np.float64)
        elif dtype == "BF16" and not norm:
            bits = reference.bfloat16_bits(value)
            file[name] = ("BF16", bits)
            exact[name] = reference.from_bfloat16(bits).astype(np.float64)
        else:
            file[name] = value.astype("<f4")
            exact[name] = file[name].astype(np.float64)
    return file, exact


# ---- expectations ----------------------------------------------------------------------------------------------------


def expect(config, weights, ids):
    """→ what expected.safetensors holds, and the smallest margin that an order in it hangs on."""
    sites = reference.forward(config, weights, ids)
    logits = sites["logits"]
    order = np.argsort(-logits[-1], kind="stable")
    sorted_logits = logits[-1][order]
    continuation, gaps = reference.greedy(config, weights, ids, GREEDY_STEPS)
    margin = min(float((sorted_logits[:10] - sorted_logits[1:11]).min()), min(gaps))
    # Equal scores (a token's own copies) would make the place of a maximum a matter of rounding; random weights have none.
    expected = {"tokens": np.array(ids, "<i4")}
    expected |= {name: value.astype("<f4") for name, value in sites.items()}
    expected["nll"] = reference.losses(logits, ids).astype("<f4")
    expected["top10_ids"] = order[:10].astype("<i4")
    expected["top10_probs"] = reference.softmax(logits[-1])[order[:10]].astype("<f4")
    expected["greedy"] = np.array(continuation, "<i4")
    metrics = reference.all_head_metrics(reference.patterns(sites), ids)
    expected |= {"metrics." + name: value.astype("<f4") for name, value in metrics.items()}
    expected |= {"chance." + name: np.array([value], "<f4") for name, value in reference.even_metrics(ids).items()}
    return expected, margin


def make(name, config, prompts, *, prefix, dtype="F32", shards=1, buffers=None, first_seed=1):
    draw = gpt2_weights if config["model_type"] == "gpt2" else llama_weights
    for seed in range(first_seed, first_seed + 1000):
        file, exact = stored(draw(config, seed, prefix), dtype)
        results = {key: expect(config, exact, ids) for key, ids in prompts.items()}
        if min(margin for _, margin in results.values()) > MARGIN:
            break
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    file |= buffers or {}
    if shards == 1:
        reference.write_safetensors(folder / "model.safetensors", file, {"format": "pt"})
    else:
        names, weight_map = list(file), {}
        for shard in range(shards):
            part = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
            mine = names[shard::shards]
            reference.write_safetensors(folder / part, {key: file[key] for key in mine}, {"format": "pt"})
            weight_map |= {key: part for key in mine}
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": 0}, "weight_map": weight_map}, indent=1) + "\n")
    for key, (expected, _) in results.items():
        reference.write_safetensors(folder / f"{key}.safetensors", expected)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{name}: seed {seed}, {size / 1024:.0f} KB")


# ---- byte-level vocabulary -------------------------------------------------------------------------------------------


def byte_symbols():
    """The 256 characters that stand for the bytes in GPT-2's vocabulary files, in the order of their ids."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [(byte, chr(byte)) for byte in printable] + [(byte, chr(256 + i)) for i, byte in enumerate(others)]


def write_byte_vocabulary(folder):
    symbols = byte_symbols()
    vocabulary = {symbol: i for i, (_, symbol) in enumerate(symbols)} | {"<|endoftext|>": 256}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n")


def byte_ids(text):
    of = {byte: i for i, (byte, _) in enumerate(byte_symbols())}
    return [of[byte] for byte in text.encode()]


# ---- the models ------------------------------------------------------------------------------------------------------


def gpt2_config(**changes):
    config = {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
        "n_embd": 32, "n_head": 4, "n_inner": None, "n_layer": 2, "n_positions": 48, "vocab_size": 61,
        "layer_norm_epsilon": 1e-5, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False,
        "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None,
    }
    return config | changes


def llama_config(**changes):
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 44, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "vocab_size": 61, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
        "rope_scaling": None, "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
        "bos_token_id": 1, "eos_token_id": 2,
    }
    return config | changes


def repeated(vocab, period, times, seed):
    block = np.random.default_rng(seed).permutation(np.arange(3, vocab))[:period]
    return [1, *map(int, np.tile(block, times))]


def main():
    make("gpt2-random", gpt2_config(vocab_size=257, bos_token_id=256, eos_token_id=256),
         {"expected": byte_ids("she sells sea shells"), "expected-one": [256]}, prefix="transformer.")
    write_byte_vocabulary(HERE / "gpt2-random")

    # Untied head, exact GELU, an MLP of its own width, scores divided by the layer's number.
    make("gpt2-untied-erf",
         gpt2_config(activation_function="gelu", n_embd=24, n_head=3, n_layer=3, n_inner=40, n_positions=32,
                     layer_norm_epsilon=1e-3, scale_attn_by_inverse_layer_idx=True, tie_word_embeddings=False),
         {"expected": repeated(61, 6, 2, 7)}, prefix="transformer.")

    # F16 weights beside F32 norms, scores not divided by √d, ReLU, names without a prefix, and the mask buffers that early
    # checkpoints carry.
    buffers = {f"h.{i}.attn.bias": np.tril(np.ones((24, 24), "|u1"))[None, None] for i in range(2)}
    buffers |= {f"h.{i}.attn.masked_bias": np.array(-1e4, "<f4") for i in range(2)}
    make("gpt2-f16",
         gpt2_config(activation_function="relu", n_embd=16, n_head=2, n_positions=24, scale_attn_weights=False),
         {"expected": repeated(61, 5, 2, 8)}, prefix="", dtype="F16", buffers=buffers)

    # Grouped queries, untied head, two shards.
    make("llama-gqa", llama_config(), {"expected": repeated(61, 8, 2, 9)}, prefix="model.", shards=2)

    # Llama-3 frequencies: wavelengths 6.3 and 19.9 stay, 62.8 is blended, 199 and above are stretched by 8. Tied head, names
    # without a prefix.
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 128}
    make("llama-rope3",
         llama_config(rope_scaling=scaling, head_dim=16, num_attention_heads=2, num_key_value_heads=1,
                      max_position_embeddings=1024, tie_word_embeddings=True),
         {"expected": repeated(61, 9, 2, 10)}, prefix="")

    # Biases everywhere, heads wider than hidden_size / heads, one key-value head per query head, linear RoPE scaling, BF16.
    make("llama-bias",
         llama_config(attention_bias=True, mlp_bias=True, head_dim=12, hidden_size=24, intermediate_size=36,
                      num_attention_heads=3, num_key_value_heads=3, rope_scaling={"type": "linear", "factor": 2.0}),
         {"expected": repeated(61, 6, 2, 11)}, prefix="model.", dtype="BF16")


if __name__ == "__main__":
    main()
