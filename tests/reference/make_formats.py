#!/usr/bin/env python3
"""Writes tests/reference/formats/: models and tensors in every format that core/io reads, by the formats' own libraries.

    python3 -m pip install numpy gguf torch transformers safetensors sentencepiece && python3 tests/reference/make_formats.py

blocks.gguf          every block type of GGUF from random bytes, and what the gguf package decodes them to (NAME.expected)
llama-gqa.gguf       the folder of that name, as llama.cpp's converter writes it: rows of q and k in pairs
grids.gguf           every point of the grids of IQ types, and the whole numbers that the package decodes them to (NAME.expected)
llama-blocks.gguf    a small Llama with a matrix in every block type but Q8_0 and those of
llama-grids.gguf     another in all IQ types that have grids, and NVFP4
llama-grids/         its logits by transformers in float64, of what the package decodes its matrices to, with an adapter and without
gpt2.gguf            training-gpt2, its matrices transposed
rope.gguf            the keys of a Llama 3.1 and the factors of its rotary frequencies, without blocks
*-tokenizer.gguf     the vocabularies of tokenizers/gpt2, llama3, smol and sentencepiece as keys
llama2c/             llama-gqa as llama2.c's export.py (version 0) writes it, and tokenizers/sentencepiece beside it
state.pt, old.pt     tensors of every dtype, views of shared storages; both forms of torch.save
gpt2.bin, gpt2-old.bin, checkpoint.pt, sharded/  training-gpt2, whole, in the older form, in a trainer's checkpoint, in shards
code.pt, code-old.pt an object whose unpickling would call posix.system
f8.safetensors       every pattern of both F8 types with what PyTorch reads in them, and matrices with scales
"""
import json
import os
import pathlib
import shutil
import struct

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Q
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize
from safetensors.numpy import load_file
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
OUT = HERE / "formats"


def folder_of(name):
    tensors = {}
    for path in sorted((HERE / name).glob("model*.safetensors")):
        tensors.update(load_file(path))
    return json.loads((HERE / name / "config.json").read_text()), tensors


def write_gguf(name, architecture, fill):
    writer = gguf.GGUFWriter(OUT / name, architecture)
    fill(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def scales_of(kind):
    """Bytes of a block at which scales stand as halves."""
    return {Q.Q6_K: [208], Q.Q4_1: [0, 2], Q.Q5_1: [0, 2], Q.Q4_K: [0, 2], Q.Q5_K: [0, 2], Q.Q2_K: [80, 82], Q.Q3_K: [108],
            Q.TQ1_0: [52], Q.TQ2_0: [64], Q.MXFP4: [], Q.NVFP4: []}.get(kind, [0])


def put_scales(blocks, kind, draw):
    """Writes each scale of the blocks that stands there as a half: what draw() gives, float16 (blocks)."""
    if kind == Q.IQ1_M:  # four bits of it above each of the last four whole numbers
        bits = draw().view(np.uint16)
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (bits >> 4 * i & 15).astype(np.uint8) << 4
        return
    for at in scales_of(kind):
        blocks[:, at : at + 2] = draw().view(np.uint8).reshape(-1, 2)


def blocks(rng):
    def fill(writer):
        for kind in (Q.BF16, Q.F16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0, Q.Q4_K, Q.Q5_K, Q.Q6_K, Q.IQ4_NL, Q.MXFP4,
                     Q.Q2_K, Q.Q3_K, Q.IQ4_XS, Q.TQ1_0, Q.TQ2_0, Q.IQ2_XXS, Q.IQ2_XS, Q.IQ2_S, Q.IQ3_XXS, Q.IQ3_S, Q.IQ1_S,
                     Q.IQ1_M, Q.NVFP4):
            items, size = GGML_QUANT_SIZES[kind]
            rows, per_row = 2, max(1, 256 // items)
            data = rng.integers(0, 256, (rows, per_row * size), np.uint8)
            view = data.reshape(-1, size)
            if kind == Q.MXFP4:  # the exponent; 0 and 1 are its subnormals
                view[:, 0] = np.concatenate([[0, 1, 2], rng.integers(110, 140, len(view) - 3)])
            elif kind == Q.NVFP4:  # without exponent, no number (which is 0), with a sign (which means nothing)
                view[:3, :4] = [[0, 1, 7, 0x7F], [0x80, 0x83, 0xFF, 0xBC], [0x08, 0x7E, 0x40, 0xC1]]
            elif kind in (Q.BF16, Q.F16):
                values = rng.standard_normal(len(view)).astype(np.float32)
                data = values.astype(np.float16) if kind == Q.F16 else (values.view(np.uint32) >> 16).astype(np.uint16)
                data = data.reshape(rows, per_row).view(np.uint8)
            else:  # halves that are finite
                def draw():
                    half = (rng.standard_normal(len(view)) * 0.02).astype(np.float16)
                    half[0] = 3e-6  # a subnormal
                    return half
                put_scales(view, kind, draw)
            name = kind.name.lower()
            writer.add_tensor(name, data, raw_dtype=kind)
            writer.add_tensor(name + ".expected", dequantize(data, kind).astype(np.float32))

    write_gguf("blocks.gguf", "blocks", fill)


def grids(rng):
    """A block of each type has its scale where it is a whole number's, and each point once, its numbers with any signs."""
    def fill(writer):
        for kind, points, each in ((Q.IQ2_XXS, 256, 8), (Q.IQ2_XS, 512, 8), (Q.IQ2_S, 1024, 8), (Q.IQ3_XXS, 256, 4),
                                   (Q.IQ3_S, 512, 4), (Q.IQ1_S, 2048, 8)):
            places = rng.permutation(points).reshape(-1, 256 // each)
            low, count = (places & 255).astype(np.uint8), len(places)
            bytes_of = lambda part: part.view(np.uint8).reshape(count, -1)
            some = lambda bits, width: rng.integers(0, 1 << bits, (count, width), np.uint32)
            packed = lambda high, bits, of: sum(high.reshape(count, -1, of)[..., i] << bits * i for i in range(of))
            high = places >> 8
            d, parts = {
                Q.IQ2_XXS: (8, lambda: [bytes_of(np.stack([low.reshape(count, 8, 4).view(np.uint32)[..., 0], some(28, 8)], -1))]),
                Q.IQ2_XS: (8, lambda: [bytes_of((places | some(7, 32) << 9).astype(np.uint16)), np.zeros((count, 8), np.uint8)]),
                Q.IQ2_S: (8, lambda: [low, some(8, 32), packed(high, 2, 4), np.zeros((count, 8))]),
                Q.IQ3_XXS: (4, lambda: [low, bytes_of(some(28, 8))]),
                Q.IQ3_S: (1, lambda: [low, packed(high, 1, 8), some(8, 32), np.zeros((count, 4))]),
                Q.IQ1_S: (8, lambda: [low, bytes_of((packed(high, 3, 4) | some(1, 8) << 15).astype(np.uint16))]),
            }[kind]
            scale = np.repeat(np.float16([[d]]), count, 0).view(np.uint8)
            data = np.concatenate([scale] + [part.astype(np.uint8) for part in parts()], 1)
            numbers = dequantize(data, kind)
            assert (numbers == numbers.astype(np.int8)).all()
            assert len({tuple(point) for point in np.abs(numbers.reshape(-1, each))}) >= points // 2
            writer.add_tensor(kind.name.lower(), data, raw_dtype=kind)
            writer.add_tensor(kind.name.lower() + ".expected", numbers.astype(np.int8))

    write_gguf("grids.gguf", "grids", fill)


def in_pairs(rows, heads):
    """As convert_hf_to_gguf.py permutes the rows of q and k."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def llama_gguf():
    config, tensors = folder_of("llama-gqa")
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]

    def fill(writer):
        writer.add_block_count(config["num_hidden_layers"])
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_head_count(heads)
        writer.add_head_count_kv(kv)
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config["rope_theta"])
        writer.add_rope_dimension_count(config["hidden_size"] // heads)
        writer.add_vocab_size(config["vocab_size"])
        writer.add_file_type(0)
        for name, tensor in tensors.items():
            tensor = tensor.astype(np.float32)
            if "q_proj" in name:
                tensor = in_pairs(tensor, heads)
            if "k_proj" in name:
                tensor = in_pairs(tensor, kv)
            for ours, theirs in (("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output"),
                                 ("model.layers", "blk"), ("input_layernorm", "attn_norm"), ("self_attn.q_proj", "attn_q"),
                                 ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"), ("self_attn.o_proj", "attn_output"),
                                 ("post_attention_layernorm", "ffn_norm"), ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"),
                                 ("mlp.down_proj", "ffn_down")):
                name = name.replace(ours, theirs)
            writer.add_tensor(name, tensor)

    write_gguf("llama-gqa.gguf", "llama", fill)


def blocks_gguf(rng, name, mlp, short, long):
    """`short`: the types of the two tables and of matrices whose inputs are no whole blocks of 256; `long`: of others.
    Returns what the matrices decode to."""
    width, heads, kv, d_head, vocab = 256, 2, 1, 32, 48
    short, long, numbers = iter(short), iter(long), {}

    def fill(writer):
        writer.add_block_count(2)
        writer.add_context_length(64)
        writer.add_embedding_length(width)
        writer.add_feed_forward_length(mlp)
        writer.add_head_count(heads)
        writer.add_head_count_kv(kv)
        writer.add_key_length(d_head)
        writer.add_value_length(d_head)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_freq_base(10000.0)
        writer.add_rope_dimension_count(d_head)
        writer.add_vocab_size(vocab)
        writer.add_file_type(0)

        def matrix(name, out, inputs, kind):
            items, size = GGML_QUANT_SIZES[kind]
            data = rng.integers(0, 256, (out * inputs // items, size), np.uint8)
            if kind == Q.MXFP4:
                data[:, 0] = rng.integers(121, 124, len(data))
            elif kind == Q.NVFP4:
                data[:, :4] = rng.integers(8, 24, (len(data), 4))
            else:
                put_scales(data, kind, lambda: np.repeat(np.float16(1), len(data)))
                size_of = np.abs(dequantize(data, kind)).max(1)
                put_scales(data, kind, lambda: (rng.uniform(0.1, 0.3, len(data)) / size_of).astype(np.float16))
            writer.add_tensor(name, data.reshape(out, -1), raw_dtype=kind)
            numbers[name] = dequantize(data, kind).reshape(out, inputs)
            if name == "blk.1.attn_output.weight" and kind == Q.NVFP4:  # as files of NVIDIA's checkpoints have it
                writer.add_tensor("blk.1.attn_output.scale", np.float32([0.37]))
                writer.add_tensor("blk.1.attn_output.input_scale", np.float32([1.5]))
                numbers[name] = numbers[name].astype(np.float64) * np.float32(0.37)

        matrix("token_embd.weight", vocab, width, next(short))
        matrix("output.weight", vocab, width, next(short))
        writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
        for i in range(2):
            for norm in ("attn_norm", "ffn_norm"):
                writer.add_tensor(f"blk.{i}.{norm}.weight", np.ones(width, np.float32))
            matrix(f"blk.{i}.attn_q.weight", heads * d_head, width, next(long))
            matrix(f"blk.{i}.attn_k.weight", kv * d_head, width, next(long))
            matrix(f"blk.{i}.attn_v.weight", kv * d_head, width, next(long))
            matrix(f"blk.{i}.attn_output.weight", width, heads * d_head, next(short))
            matrix(f"blk.{i}.ffn_gate.weight", mlp, width, next(long))
            matrix(f"blk.{i}.ffn_up.weight", mlp, width, next(long))
            matrix(f"blk.{i}.ffn_down.weight", width, mlp, next(short))

    write_gguf(name, "llama", fill)
    return numbers


def grids_gguf(rng):
    from transformers import LlamaConfig, LlamaForCausalLM

    numbers = blocks_gguf(rng, "llama-grids.gguf", 64, (Q.NVFP4, Q.IQ3_S, Q.NVFP4, Q.NVFP4, Q.NVFP4, Q.NVFP4),
                          (Q.IQ2_XXS, Q.IQ2_XS, Q.IQ2_S, Q.IQ3_XXS, Q.IQ3_S, Q.IQ1_S, Q.IQ1_M, Q.IQ2_XXS, Q.IQ3_XXS, Q.IQ1_S))
    config = LlamaConfig(vocab_size=48, hidden_size=256, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, head_dim=32, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0,
                         tie_word_embeddings=False, attn_implementation="eager")
    model = LlamaForCausalLM(config).double().eval()
    state = {name: torch.ones_like(tensor) for name, tensor in model.state_dict().items()}
    for name, tensor in numbers.items():
        if "attn_q" in name or "attn_k" in name:  # the pairs that llama.cpp keeps, as halves
            heads = 2 if "attn_q" in name else 1
            tensor = tensor.reshape(heads, 16, 2, 256).swapaxes(1, 2).reshape(tensor.shape)
        for theirs, ours in (("attn_output", "self_attn.o_proj"), ("output.", "lm_head."), ("token_embd", "model.embed_tokens"),
                             ("blk", "model.layers"), ("attn_q", "self_attn.q_proj"), ("attn_k", "self_attn.k_proj"),
                             ("attn_v", "self_attn.v_proj"), ("ffn_gate", "mlp.gate_proj"), ("ffn_up", "mlp.up_proj"),
                             ("ffn_down", "mlp.down_proj")):
            name = name.replace(theirs, ours)
        assert state[name].shape == tensor.shape
        state[name] = torch.tensor(tensor).double()
    text = torch.tensor([[3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3]])

    def logits():
        model.load_state_dict(state)
        with torch.no_grad():
            return model(text).logits[0].numpy()

    expected = {"logits": logits()}
    rank, alpha, lora = 2, 6, {}
    for layer in range(2):
        for part in ("self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj"):
            weight = state[f"model.layers.{layer}.{part}.weight"]
            a = rng.standard_normal((rank, weight.shape[1])).astype(np.float32) * 0.2
            b = rng.standard_normal((weight.shape[0], rank)).astype(np.float32) * 0.2
            lora[f"base_model.model.model.layers.{layer}.{part}.lora_A.weight"] = a
            lora[f"base_model.model.model.layers.{layer}.{part}.lora_B.weight"] = b
            weight += alpha / rank * torch.tensor(b.astype(np.float64) @ a.astype(np.float64))
    expected["adapted"] = logits()
    folder = OUT / "llama-grids"
    folder.mkdir(exist_ok=True)
    save_numpy(lora, folder / "adapter_model.safetensors")
    settings = dict(peft_type="LORA", r=rank, lora_alpha=alpha, bias="none", base_model_name_or_path="llama-grids.gguf",
                    target_modules=["q_proj", "o_proj", "down_proj"])
    (folder / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    save_numpy(expected, folder / "expected.safetensors")


def rope_gguf():
    """Llama 3.1's factors as llama.cpp's converter computes them, for a config of which only the keys matter."""
    base, factor, low, high, original, d_head = 500000.0, 32.0, 1.0, 4.0, 8192, 8

    def fill(writer):
        writer.add_block_count(1)
        writer.add_context_length(131072)
        writer.add_embedding_length(32)
        writer.add_feed_forward_length(8)
        writer.add_head_count(4)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_freq_base(base)
        factors = []
        for i in range(0, d_head, 2):
            wavelength = 2 * np.pi * base ** (i / d_head)
            if wavelength < original / high:
                factors.append(1)
            elif wavelength > original / low:
                factors.append(factor)
            else:
                smooth = (original / wavelength - low) / (high - low)
                factors.append(1 / ((1 - smooth) / factor + smooth))
        writer.add_tensor("rope_freqs.weight", np.array(factors, np.float32))
        writer.add_tensor("token_embd.weight", np.zeros((7, 32), np.float32))

    write_gguf("rope.gguf", "llama", fill)


def gpt2_gguf():
    config, tensors = folder_of("training-gpt2")

    def fill(writer):
        writer.add_block_count(config["n_layer"])
        writer.add_context_length(config["n_positions"])
        writer.add_embedding_length(config["n_embd"])
        writer.add_feed_forward_length(config["n_inner"])
        writer.add_head_count(config["n_head"])
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
        for name, tensor in tensors.items():
            tensor = tensor.astype(np.float32)
            name = name.removeprefix("transformer.")
            if name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
                tensor = np.ascontiguousarray(tensor.T)
            for ours, theirs in (("wte", "token_embd"), ("wpe", "position_embd"), ("ln_f", "output_norm"), ("h.", "blk."),
                                 ("ln_1", "attn_norm"), ("ln_2", "ffn_norm"), ("attn.c_attn", "attn_qkv"),
                                 ("attn.c_proj", "attn_output"), ("mlp.c_fc", "ffn_up"), ("mlp.c_proj", "ffn_down")):
                name = name.replace(ours, theirs)
            writer.add_tensor(name, tensor)

    write_gguf("gpt2.gguf", "gpt2", fill)


def pieces_of(path):
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    for i in range(model.get_piece_size()):
        kind = 2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 5 if model.is_unused(i) else 1
        yield model.id_to_piece(i), model.get_score(i), kind


def tokenizers():
    vocab = json.loads((HERE / "tokenizers/gpt2/vocab.json").read_text())
    tokens = sorted(vocab, key=vocab.get)
    assert [vocab[t] for t in tokens] == list(range(len(tokens)))
    merges = [line for line in (HERE / "tokenizers/gpt2/merges.txt").read_text().split("\n") if line and not line.startswith("#version")]

    def fill_gpt2(writer):
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(tokens)
        writer.add_token_types([3 if t == "<|endoftext|>" else 1 for t in tokens])
        writer.add_token_merges(merges)
        writer.add_bos_token_id(vocab["<|endoftext|>"])
        writer.add_eos_token_id(vocab["<|endoftext|>"])

    write_gguf("gpt2-tokenizer.gguf", "gpt2", fill_gpt2)

    pieces = list(pieces_of(HERE / "tokenizers/sentencepiece/tokenizer.model"))

    def fill_llama(writer):
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list([p[0] for p in pieces])
        writer.add_token_scores([p[1] for p in pieces])
        writer.add_token_types([p[2] for p in pieces])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)

    write_gguf("llama-tokenizer.gguf", "llama", fill_llama)

    for name, pre in (("llama3", "llama-bpe"), ("smol", "smollm")):
        file = json.loads((HERE / "tokenizers" / name / "tokenizer.json").read_text())
        settings = json.loads((HERE / "tokenizers" / name / "tokenizer_config.json").read_text())
        ids = dict(file["model"]["vocab"]) | {t["content"]: t["id"] for t in file["added_tokens"]}
        special = {t["content"] for t in file["added_tokens"] if t["special"]}

        def fill(writer):
            writer.add_tokenizer_model("gpt2")
            writer.add_tokenizer_pre(pre)
            writer.add_token_list(sorted(ids, key=ids.get))
            writer.add_token_types([3 if t in special else 1 for t in sorted(ids, key=ids.get)])
            writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in file["model"]["merges"]])
            writer.add_bos_token_id(ids[settings.get("bos_token", "<|begin_of_text|>")])
            writer.add_eos_token_id(ids[settings["eos_token"]])

        write_gguf(f"{name}-tokenizer.gguf", "llama", fill)

    # tokenizer.py of llama2.c
    spelled = []
    for i, (piece, score, kind) in enumerate(pieces):
        piece = {1: "\n<s>\n", 2: "\n</s>\n"}.get(i, piece).replace("▁", " ")
        spelled.append((piece.encode(), score))
    with open(OUT / "llama2c/tokenizer.bin", "wb") as f:
        f.write(struct.pack("I", max(len(s) for s, _ in spelled)))
        for s, score in spelled:
            f.write(struct.pack("fI", score, len(s)) + s)


def llama2c():
    config, tensors = folder_of("llama-gqa")
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    layers = range(config["num_hidden_layers"])
    with open(OUT / "llama2c/model.bin", "wb") as f:
        f.write(struct.pack("iiiiiii", config["hidden_size"], config["intermediate_size"], len(layers), heads, kv,
                            -config["vocab_size"], config["max_position_embeddings"]))
        put = lambda t: f.write(np.ascontiguousarray(t, np.float32).tobytes())
        layer = lambda name: [tensors[f"model.layers.{i}.{name}.weight"] for i in layers]
        put(tensors["model.embed_tokens.weight"])
        for name, turn in (("input_layernorm", None), ("self_attn.q_proj", heads), ("self_attn.k_proj", kv), ("self_attn.v_proj", None),
                           ("self_attn.o_proj", None), ("post_attention_layernorm", None), ("mlp.gate_proj", None),
                           ("mlp.down_proj", None), ("mlp.up_proj", None)):
            for t in layer(name):
                put(in_pairs(t, turn) if turn else t)
        put(tensors["model.norm.weight"])
        put(np.zeros((2, config["max_position_embeddings"], config["hidden_size"] // heads // 2)))
        put(tensors["lm_head.weight"])


def ramp(*shape):
    i = np.arange(int(np.prod(shape)))
    return torch.tensor((((37 * i) % 101 - 50) / 8).reshape(shape))


class Code:
    def __reduce__(self):
        return os.system, ("echo this must never run",)


def pytorch():
    base = ramp(6, 4).float()
    state = {
        "f32": ramp(3, 5).float(), "f16": ramp(3, 5).half(), "bf16": ramp(3, 5).bfloat16(), "f64": ramp(2, 3, 4).double(),
        "i64": torch.tensor([-(2**63), -1, 2**63 - 1]), "u8": torch.tensor([0, 255, 3], dtype=torch.uint8),
        "flags": torch.tensor([True, False]), "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4),
        "whole": base, "rows": base[2:5], "transposed": base.T, "column": base[:, 1], "parameter": torch.nn.Parameter(base[1]),
        "heads": base.reshape(3, 2, 4).permute(2, 0, 1), "epoch": 3, "note": "not a tensor",
    }
    torch.save(state, OUT / "state.pt")
    torch.save(state, OUT / "old.pt", _use_new_zipfile_serialization=False)
    torch.save({"weight": torch.zeros(2), "hook": Code()}, OUT / "code.pt")
    torch.save({"weight": torch.zeros(2), "hook": Code()}, OUT / "code-old.pt", _use_new_zipfile_serialization=False)

    _, tensors = folder_of("training-gpt2")
    model = torch.nn.Module()  # an OrderedDict with _metadata, as state_dict() gives
    gpt2 = model.state_dict()
    for name, tensor in tensors.items():
        tensor = torch.tensor(tensor)
        # Matrices as views of their transposes, as programs that rearrange weights save them.
        gpt2[name] = tensor.T.contiguous().T if tensor.dim() == 2 else tensor
    torch.save(gpt2, OUT / "gpt2.bin")
    torch.save(gpt2, OUT / "gpt2-old.bin", _use_new_zipfile_serialization=False)
    torch.save({"epoch": 7, "state_dict": gpt2, "optimizer": {"lr": 0.1}}, OUT / "checkpoint.pt")
    names = sorted(gpt2)
    shards = {"pytorch_model-00001-of-00002.bin": names[::2], "pytorch_model-00002-of-00002.bin": names[1::2]}
    for file, part in shards.items():
        torch.save({name: gpt2[name].contiguous() for name in part}, OUT / "sharded" / file)
    index = {"metadata": {"total_size": sum(t.numel() * 4 for t in gpt2.values())},
             "weight_map": {name: file for file, part in shards.items() for name in part}}
    (OUT / "sharded/pytorch_model.bin.index.json").write_text(json.dumps(index))
    shutil.copy(HERE / "training-gpt2/config.json", OUT / "sharded/config.json")


def f8():
    every = torch.arange(256, dtype=torch.uint8)
    tensors = {}
    for name, kind in (("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
        tensors[name] = every.clone().view(kind)
        tensors[name + ".expected"] = every.view(kind).float()
    matrix = ramp(5, 6).float().to(torch.float8_e4m3fn)
    rows, blocks = ramp(5).float() + 7, ramp(2, 1).float() + 7
    for name, scale, by in (("one", torch.tensor(0.25), torch.tensor(0.25)), ("rows", rows, rows[:, None])):
        tensors[name], tensors[name + "_scale"] = matrix.clone(), scale
        tensors[name + ".expected"] = matrix.float() * by
    large = torch.zeros(130, 10)  # DeepSeek's blocks of 128, of which the last is short
    large[::7, ::3] = 1.5
    tensors["blocks"], tensors["blocks_scale_inv"] = large.to(torch.float8_e4m3fn), blocks
    tensors["blocks.expected"] = large * blocks.repeat_interleave(128, 0)[:130]
    save_file(tensors, OUT / "f8.safetensors")


def main():
    for name in ("", "llama2c", "sharded"):
        (OUT / name).mkdir(exist_ok=True)
    rng = np.random.default_rng(20)
    blocks(rng)
    llama_gguf()
    grids(np.random.default_rng(4))  # of their own: what follows stays as it is
    blocks_gguf(np.random.default_rng(3), "llama-blocks.gguf", 32,
                (Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.IQ4_NL, Q.MXFP4),
                (Q.Q2_K, Q.Q3_K, Q.Q4_K, Q.Q5_K, Q.Q6_K, Q.IQ4_XS, Q.TQ1_0, Q.TQ2_0, Q.Q4_K, Q.Q6_K))
    grids_gguf(np.random.default_rng(5))
    rope_gguf()
    gpt2_gguf()
    llama2c()
    tokenizers()
    pytorch()
    f8()
    for path in OUT.rglob("*"):
        if path.is_file():
            path.chmod(0o644)


if __name__ == "__main__":
    main()
