#!/usr/bin/env python3
"""Writes tests/reference/quantized/bitnet-*: small models of few bits as transformers packs them (packed ternary numbers
with a scale, and numbers that it rounds by itself), and their logits by its own layers in float64, which round what they
read to 8 bits too. Beside make_quantized.py, whose files these have; needs torch and transformers alone.

No number stands so near the middle of two steps that float32 and float64 round it otherwise.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers.integrations import bitnet

OUT = Path(__file__).resolve().parent / "quantized"
CONFIG = dict(vocab_size=40, hidden_size=32, intermediate_size=96, num_hidden_layers=1, num_attention_heads=2,
              num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=False)
IDS = [3, 17, 31, 8, 25, 39, 0]
WATCHED = "model.layers.0.mlp.down_proj"
CASES = {
    "bitnet-packed": ("BitNet", "autobitlinear", "offline"),
    "bitnet-online": ("BitNet", "autobitlinear", "online"),
    "bitnet-llama": ("Llama", "bitlinear", "offline"),
}


def in_doubles(module):
    class Doubles:
        float32 = torch.float64

        def __getattr__(self, name):
            return getattr(torch, name)

    module.torch = Doubles()
    torch.Tensor.float = torch.Tensor.double


def layer_of(linear, how, mode):
    """(the library's layer, its tensors in a file, its matrix)"""
    w, shape = linear.weight.data.double(), dict(in_features=linear.in_features, out_features=linear.out_features, bias=False)
    scale = w.abs().mean().float().double()
    ternary = (w / scale).round().clamp(-1, 1)
    if how == "bitlinear":
        made = bitnet.BitLinear(**shape, dtype=torch.float64)
        made.weight.data, made.weight_scale.data = bitnet.pack_weights(ternary.clone()), (1 / scale).reshape(1)
        return made, {"weight": made.weight.data, "weight_scale": made.weight_scale.data}, ternary * scale
    made = bitnet.AutoBitLinear(**shape, dtype=torch.float64, online_quant=mode == "online")
    if mode == "online":
        made.weight.data = w
        return made, {"weight": w.half()}, bitnet.WeightQuant.apply(w)
    made.weight.data, made.weight_scale.data = ternary, scale.reshape(1)
    return made, {"weight": bitnet.pack_weights(ternary.clone()), "weight_scale": scale.reshape(1)}, ternary * scale


def make(name, seed):
    kind, how, mode = CASES[name]
    torch.manual_seed(seed)
    m = getattr(transformers, kind + "ForCausalLM")(getattr(transformers, kind + "Config")(**CONFIG)).eval().double()
    in_doubles(sys.modules[type(m).__module__])
    for key, p in m.named_parameters():
        torch.nn.init.normal_(p, std=0.25)
        p.data += 1 if "norm" in key else 0
        p.data = p.data.half().double()
    tensors, nearest = {}, []
    expected = {}
    for key, module in list(m.named_modules()):
        if not key.endswith("_proj"):
            continue
        made, parts, matrix = layer_of(module, how, mode)
        tensors |= {f"{key}.{part}": value.contiguous() for part, value in parts.items()}
        if key == WATCHED:
            expected["down_proj"] = matrix.to(torch.float32).contiguous()

        def near(_, inputs):
            x = inputs[0] * 127 / inputs[0].abs().amax(-1, keepdim=True)
            nearest.append(float((x - x.floor() - 0.5).abs().min()))
        made.register_forward_pre_hook(near)
        m.set_submodule(key, made)
    for key, p in m.named_parameters():
        if not key.removesuffix(".weight").endswith("_proj"):
            tensors[key] = p.data.half()
    with torch.no_grad():
        expected["logits"] = m(torch.tensor([IDS])).logits[0].to(torch.float32)
    if min(nearest) < 1e-4:
        return make(name, seed + 1)
    expected["ids"] = torch.tensor(IDS, dtype=torch.int32)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tensors = {key: value.to(torch.float16) if value.is_floating_point() and value.numel() > 1 else
               value.to(torch.float32) if value.is_floating_point() else value for key, value in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    save_file(expected, folder / "expected.safetensors")
    config = json.loads(m.config.to_json_string(use_diff=False))
    kept = {k: config[k] for k in list(CONFIG) + ["rms_norm_eps", "hidden_act", "rope_parameters"]}
    kept |= dict(architectures=[kind + "ForCausalLM"], model_type=kind.lower(), quantization_config=dict(
        quant_method="bitnet", linear_class=how, quantization_mode=mode, modules_to_not_convert=["lm_head"]))
    (folder / "config.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(name, "seed", seed, "nearest to the middle of two steps", min(nearest))


if __name__ == "__main__":
    torch.compiler.set_stance("force_eager")
    for case in CASES:
        make(case, 4)
