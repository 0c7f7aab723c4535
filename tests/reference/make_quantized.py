#!/usr/bin/env python3
"""Writes tests/reference/quantized: one small Llama, its matrices rounded and packed by the libraries that people use,
as folders of Hugging Face. Beside each, in expected.safetensors, down_proj as that library unpacks it (float32), and
logits of transformers in float64 with all matrices unpacked.

Needs torch, transformers, safetensors, gptqmodel, bitsandbytes, compressed-tensors and mlx (mlx[cpu] on Linux).
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

OUT = Path(__file__).resolve().parent / "quantized"
CONFIG = dict(vocab_size=40, hidden_size=32, intermediate_size=96, num_hidden_layers=1, num_attention_heads=2,
              num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=False)
IDS = [3, 17, 31, 8, 25, 39, 0]
WATCHED = "model.layers.0.mlp.down_proj"


def model():
    torch.manual_seed(4)
    m = LlamaForCausalLM(LlamaConfig(**CONFIG)).eval()
    for name, p in m.named_parameters():
        torch.nn.init.normal_(p, std=0.25)
        if "norm" in name:
            p.data += 1
    return m


# Each takes a matrix (out, in) and gives {ending behind the module's name: tensor} and the matrix unpacked.


def gptq(bits, group, format="gptq", ordered=True, sym=True):
    from gptqmodel.quantization.awq.utils.packing_utils import _pack_contiguous
    from gptqmodel.utils.model_dequant import _revert_gptq_v1_qzeros_correction, unpack_cols, unpack_rows

    def pack(w):
        out, count = w.shape
        groups = count // group
        g_idx = torch.arange(count, dtype=torch.int32) // group
        if not ordered:
            g_idx = g_idx[torch.randperm(count)].contiguous()
        top = 2**bits - 1
        parts = [w[:, g_idx == g] for g in range(groups)]
        if sym:
            scale = torch.stack([p.abs().amax(1) * 2 / top for p in parts]).half()
            zero = torch.full_like(scale, 2 ** (bits - 1)).int()
        else:
            low = torch.stack([p.amin(1).clamp(max=0) for p in parts])
            scale = ((torch.stack([p.amax(1).clamp(min=0) for p in parts]) - low) / top).half()
            zero = torch.round(-low / scale).clamp(1, top).int()
        q = torch.round(w.t() / scale[g_idx.long()] + zero[g_idx.long()]).clamp(0, top).int()  # (in, out)
        qweight = _pack_contiguous(q.t().contiguous(), bits).t().contiguous()
        qzeros = _pack_contiguous(zero, bits)
        assert torch.equal(unpack_rows(qweight, bits).int(), q) and torch.equal(unpack_cols(qzeros, bits).int(), zero)
        unpacked = (q.float() - zero.float()[g_idx.long()]) * scale.float()[g_idx.long()]
        if format == "gptq":
            qzeros = _revert_gptq_v1_qzeros_correction(qzeros, bits)
        return {".qweight": qweight, ".qzeros": qzeros, ".scales": scale, ".g_idx": g_idx,
                ".bias": torch.zeros(out).half()}, unpacked.t()

    return pack, dict(quant_method="gptq", bits=bits, group_size=group, desc_act=not ordered, sym=sym,
                      checkpoint_format=format)


def awq(group):
    from gptqmodel.quantization.awq.utils.packing_utils import dequantize_gemm, pack_awq

    def pack(w):
        t = w.t().contiguous()
        parts = t.reshape(-1, group, t.shape[1])
        low = parts.amin(1).clamp(max=0)
        scale = ((parts.amax(1).clamp(min=0) - low) / 15).half()
        zero = torch.round(-low / scale).clamp(0, 15).int()
        spread = lambda x: x.repeat_interleave(group, 0)
        q = torch.round(t / spread(scale) + spread(zero)).clamp(0, 15).int()
        qweight, qzeros = pack_awq(q, zero, 4)
        return ({".qweight": qweight, ".qzeros": qzeros, ".scales": scale},
                dequantize_gemm(qweight, qzeros, scale.float(), 4, group).t())

    return pack, dict(quant_method="awq", bits=4, group_size=group, version="gemm", zero_point=True)


def four_bits(kind, nested):
    import bitsandbytes.functional as F
    from bitsandbytes.backends.default.ops import _dequantize_4bit_compute

    def pack(w):
        q, state = F.quantize_4bit(w, blocksize=64, quant_type=kind, compress_statistics=nested)
        tensors = {".weight": q} | {"." + k.removeprefix("."): v for k, v in
                                    (("weight." + k, v) for k, v in state.as_dict(packed=True).items())}
        # Not dequantize_4bit(): its kernel for processors (0.50) takes blocks that go on in the next row for others.
        absmax = F.dequantize_blockwise(state.absmax, state.state2) + state.offset if nested else state.absmax
        return tensors, _dequantize_4bit_compute(q.reshape(-1), absmax, state.code, 64, w.shape, torch.float32)

    return pack, dict(quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type=kind,
                      bnb_4bit_use_double_quant=nested)


def eight_bits():
    def pack(w):
        largest = w.abs().amax(1)
        q = torch.round(w * (127 / largest)[:, None]).to(torch.int8)
        return ({".weight": q, ".SCB": largest, ".weight_format": torch.tensor(0, dtype=torch.uint8)},
                q.float() * (largest / 127)[:, None])

    return pack, dict(quant_method="bitsandbytes", load_in_8bit=True)


def compressed(kind, **weights):
    from compressed_tensors.compressors.base import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization.lifecycle.forward import dequantize
    from compressed_tensors.quantization.utils import calculate_qparams

    args = QuantizationArgs(**weights)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    compressor = BaseCompressor.get_value_from_registry(kind)

    def pack(w):
        group = args.group_size or w.shape[1]
        parts = w.reshape(w.shape[0], -1, group)
        state = {"weight": w}
        if kind.startswith("nvfp4"):
            state["weight_global_scale"] = torch.tensor([2688.0 / w.abs().max()])
            state["weight_scale"] = (parts.abs().amax(2) / 6 * state["weight_global_scale"]).to(
                torch.float8_e4m3fn).float()
        elif kind.startswith("mxfp4"):
            state["weight_scale"] = 2.0 ** torch.ceil(torch.log2(parts.abs().amax(2) / 6))
        else:
            state["weight_scale"], state["weight_zero_point"] = calculate_qparams(parts.amin(2), parts.amax(2), args)
            if args.symmetric:  # as folders in float16 have them
                state["weight_scale"] = state["weight_scale"].half()
        packed = compressor.compress(state, scheme)
        if kind == "pack-quantized":  # as older versions wrote it
            packed["weight_shape"] = torch.tensor(w.shape)
        if kind.startswith("nvfp4"):  # which compressor.decompress() rounds to bfloat16
            numbers = unpack_fp4_from_uint8(packed["weight_packed"], *w.shape, dtype=torch.float32)
            unpacked = dequantize(x_q=numbers, scale=packed["weight_scale"].float(), args=args,
                                  global_scale=state["weight_global_scale"], dtype=torch.float32)
        else:
            scale = packed["weight_scale"]
            wide = packed | {"weight_scale": scale.float() if scale.is_floating_point() else scale}
            unpacked = compressor.decompress(wide, scheme)["weight"].float()
        return {"." + k: v.data.contiguous() for k, v in packed.items() if v is not None}, unpacked

    return pack, dict(quant_method="compressed-tensors", format=kind, config_groups=dict(
        group_0=dict(targets=["Linear"], weights=weights)))


def modelopt():
    nvfp4, _ = compressed("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16,
                          symmetric=True)

    def pack(w):
        t, _ = nvfp4(w)
        second = (1 / t[".weight_global_scale"]).reshape(())
        values = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
        bytes = t[".weight_packed"].int()
        numbers = values[torch.stack([bytes & 15, bytes >> 4], 2).reshape(w.shape).long()]
        unpacked = numbers * (t[".weight_scale"].float() * second).repeat_interleave(16, 1)
        return {".weight": t[".weight_packed"], ".weight_scale": t[".weight_scale"], ".weight_scale_2": second,
                ".input_scale": torch.tensor(0.5)}, unpacked

    return pack, dict(quant_method="modelopt", quant_algo="NVFP4")


def mlx(bits, group, mode="affine"):
    import mlx.core as mx
    import numpy as np

    def pack(w):
        parts = mx.quantize(mx.array(w.numpy()).astype(mx.bfloat16), group_size=group, bits=bits, mode=mode)
        floats = [p.astype(mx.float32) if p.dtype == mx.bfloat16 else p for p in parts]
        # In float32, of the numbers as they are stored.
        unpacked = mx.dequantize(*floats, group_size=group, bits=bits, mode=mode)
        tensors = {}
        for ending, part, wide in zip((".weight", ".scales", ".biases"), parts, floats):
            bf16 = part.dtype == mx.bfloat16
            found = torch.from_numpy(np.array(wide))
            tensors[ending] = found.bfloat16() if bf16 else found
        return tensors, torch.from_numpy(np.array(unpacked.astype(mx.float32)))

    how = dict(group_size=group, bits=bits) | ({} if mode == "affine" else {"mode": mode})
    return pack, how


CASES = {
    "gptq-2": gptq(2, 32),
    "gptq-3": gptq(3, 32, ordered=False),
    "gptq-4": gptq(4, 16, ordered=False, sym=False),
    "gptq-4-v2": gptq(4, 32, format="gptq_v2", sym=False),
    "gptq-8": gptq(8, 32),
    "awq": awq(32),
    "nf4": four_bits("nf4", True),
    "fp4": four_bits("fp4", False),
    "int8": eight_bits(),
    "w4a16": compressed("pack-quantized", num_bits=4, strategy="group", group_size=32, symmetric=True),
    "w4a16-asymmetric": compressed("pack-quantized", num_bits=4, strategy="channel", symmetric=False),
    "w3a16": compressed("pack-quantized", num_bits=3, strategy="group", group_size=32, symmetric=False),
    "w8a8": compressed("int-quantized", num_bits=8, strategy="channel", symmetric=True),
    "f8": compressed("float-quantized", num_bits=8, type="float", strategy="channel", symmetric=True),
    "nvfp4": compressed("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16,
                        symmetric=True),
    "mxfp4": compressed("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32,
                        symmetric=True),
    "modelopt": modelopt(),
    "mlx-3": mlx(3, 32),
    "mlx-4": mlx(4, 32),
    "mlx-6": mlx(6, 32),
    "mlx-mxfp4": mlx(4, 32, "mxfp4"),
}


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    ids = torch.tensor([IDS])
    for name, (pack, how) in CASES.items():
        m, folder = model(), OUT / name
        folder.mkdir(parents=True)
        tensors, expected = {}, {}
        apple = name.startswith("mlx")
        for key, p in m.named_parameters():
            module = key.removesuffix(".weight")
            if not (module.endswith("_proj") or apple and module in ("model.embed_tokens", "lm_head")):
                tensors[key] = p.data.half()
                p.data = p.data.half().float()
                continue
            parts, unpacked = pack(p.data.clone())
            tensors |= {module + ending: part.contiguous() for ending, part in parts.items()}
            p.data = unpacked.float().contiguous()
        with torch.no_grad():
            expected["logits"] = m.double()(ids).logits[0].float()
        expected["down_proj"] = m.get_parameter(WATCHED + ".weight").data.float().contiguous()
        expected["ids"] = torch.tensor(IDS, dtype=torch.int32)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "mlx" if apple else "pt"})
        save_file(expected, folder / "expected.safetensors")
        config = json.loads(m.config.to_json_string(use_diff=False))
        kept = {k: config[k] for k in list(CONFIG) + ["rms_norm_eps", "hidden_act"]}
        kept |= dict(architectures=["LlamaForCausalLM"], model_type="llama", rope_theta=10000.0)
        kept |= {"quantization": how, "quantization_config": how} if apple else {"quantization_config": how}
        (folder / "config.json").write_text(json.dumps(kept, indent=1) + "\n")
        print(name, sorted(k.removeprefix(WATCHED) for k in tensors if k.startswith(WATCHED)))


if __name__ == "__main__":
    main()
