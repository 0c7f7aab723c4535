#!/usr/bin/env python3
"""Small LoRA adapters of the tiny models beside this, as the package peft writes them, and what merging them makes, in NumPy
float64: W + s B A with s = alpha / r, or alpha / sqrt(r) (Hu et al. 2021, Kalajdzievski 2023).

    python3 -m pip install numpy safetensors && python3 tests/reference/make_adapters.py

Writes tests/reference/adapters/NAME: adapter_config.json, adapter_model.safetensors (or .bin), and the tensors of the base model
that it changes, merged.safetensors whole and half.safetensors with half of s.
"""
import json
import math
import pathlib

import numpy as np
from make_transformer_lens import Call, Named, Stored, torch_save
from reference_model import write_safetensors
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).parent
OUT = HERE / "adapters"

# What peft writes besides.
DEFAULTS = dict(alora_invocation_tokens=None, alpha_pattern={}, auto_mapping=None, bias="none", corda_config=None, eva_config=None,
                exclude_modules=None, fan_in_fan_out=False, inference_mode=True, init_lora_weights=True, layer_replication=None,
                layers_pattern=None, layers_to_transform=None, loftq_config={}, lora_alpha=8, lora_bias=False, lora_dropout=0.0,
                megatron_config=None, megatron_core="megatron.core", modules_to_save=None, peft_type="LORA", qalora_group_size=16,
                r=8, rank_pattern={}, revision=None, target_parameters=None, task_type="CAUSAL_LM", trainable_token_indices=None,
                use_dora=False, use_qalora=False, use_rslora=False)

# name → (base, settings)
ADAPTERS = {
    "qwen2": ("families/qwen2", dict(
        r=3, lora_alpha=5, target_modules=["down_proj", "gate_proj", "o_proj", "q_proj", "v_proj"], rank_pattern={"v_proj": 2},
        alpha_pattern={"layers.1.self_attn.q_proj": 7})),
    "gpt2": ("training-gpt2", dict(r=4, lora_alpha=6, use_rslora=True, fan_in_fan_out=True, target_modules=["c_attn", "c_fc", "c_proj"])),
    "phi3": ("families/phi3", dict(r=2, lora_alpha=3, target_modules=["gate_up_proj", "o_proj", "qkv_proj"])),
    "granite": ("families/granite", dict(r=2, lora_alpha=3, target_modules=["down_proj", "k_proj", "o_proj", "up_proj"])),
    "falcon": ("families/falcon-new", dict(r=2, lora_alpha=3, target_modules=["dense", "query_key_value"])),
    "saved": ("families/qwen2-r1", dict(r=2, lora_alpha=3, target_modules=["embed_tokens", "q_proj"], modules_to_save=["lm_head"])),
}


def pattern_of(patterns, module, usual):
    return next((v for k, v in patterns.items() if module == k or module.endswith("." + k)), usual)


def make(name):
    base, settings = ADAPTERS[name]
    config = dict(sorted((DEFAULTS | settings | {"base_model_name_or_path": "../../" + base}).items()))
    random = np.random.default_rng(sum(map(ord, name)))
    draw = lambda *shape: (random.standard_normal(shape) * 0.5).astype("<f4")
    adapter, merged, half = {}, {}, {}
    for key, weight in load_file(HERE / base / "model.safetensors").items():
        module = key.removesuffix(".weight")
        last = module.rsplit(".", 1)[-1]
        if key == module:  # a bias
            continue
        # What transformers calls modules whose published files leave the outermost name out.
        path = f"base_model.model.{module if module.startswith(('model.', 'transformer.', 'lm_head')) else 'transformer.' + module}"
        if last in (config["modules_to_save"] or []):
            merged[key] = half[key] = adapter[path + ".weight"] = draw(*weight.shape)
            continue
        if last not in config["target_modules"]:
            continue
        rank, alpha = pattern_of(config["rank_pattern"], module, config["r"]), pattern_of(config["alpha_pattern"], module, config["lora_alpha"])
        scale = alpha / (math.sqrt(rank) if config["use_rslora"] else rank)
        embedding = last == "embed_tokens"
        outputs, inputs = weight.shape if not (config["fan_in_fan_out"] or embedding) else weight.shape[::-1]
        a, b = draw(rank, inputs), draw(outputs, rank)
        if embedding:
            adapter[path + ".lora_embedding_A"], adapter[path + ".lora_embedding_B"] = a, b
        else:
            adapter[path + ".lora_A.weight"], adapter[path + ".lora_B.weight"] = a, b
        change = scale * b.astype(float) @ a.astype(float)
        change = change.T if config["fan_in_fan_out"] or embedding else change
        merged[key], half[key] = ((weight.astype(float) + share * change).astype("<f4") for share in (1, 0.5))
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    if name == "gpt2":
        arrays = {str(i): array for i, array in enumerate(adapter.values())}
        state = {key: Call(Named("torch._utils", "_rebuild_tensor_v2"), Stored(str(i), "FloatStorage", array.size), 0, array.shape,
                           (array.shape[1], 1), False, Call(Named("collections", "OrderedDict")))
                 for i, (key, array) in enumerate(adapter.items())}
        torch_save(folder / "adapter_model.bin", state, arrays)
    else:
        write_safetensors(folder / "adapter_model.safetensors", adapter, {"format": "pt"})
    write_safetensors(folder / "merged.safetensors", merged)
    write_safetensors(folder / "half.safetensors", half)
    print(name, len(adapter), "tensors,", sum(file.stat().st_size for file in folder.iterdir()), "bytes")


if __name__ == "__main__":
    for each in ADAPTERS:
        make(each)
