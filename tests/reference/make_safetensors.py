#!/usr/bin/env python3
"""Writes tests/reference/safetensors/: files of the official Python library that core/io/safetensors must read.

    python3 -m pip install numpy 'safetensors>=0.8' && python3 tests/reference/make_safetensors.py

Values of the tensors `ramp_*` are ramp(i) = ((37 i) mod 101 - 50) / 8, which every float dtype here holds exactly.
Conversions between half and float come from NumPy, so they check ours against an independent definition.
"""
import json
import pathlib

import numpy as np
from safetensors import TensorSpec, serialize_file

OUT = pathlib.Path(__file__).parent / "safetensors"


def ramp(*shape):
    i = np.arange(int(np.prod(shape)))
    return (((37 * i) % 101 - 50) / 8).reshape(shape)


def save(path, tensors, metadata=None):
    """tensors: name -> array, or (dtype, array of raw bits) for what NumPy has no type for."""
    specs, alive = {}, []
    for name, value in tensors.items():
        dtype, array = value if isinstance(value, tuple) else (str(value.dtype), value)
        array = np.asarray(array, order="C")
        alive.append(array)
        specs[name] = TensorSpec(dtype=dtype, shape=list(array.shape), data_ptr=array.ctypes.data, data_len=array.nbytes)
    serialize_file(specs, str(path), metadata)
    path.chmod(0o644)


def bfloat16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return "bfloat16", (bits >> 16).astype(np.uint16)


def main():
    OUT.mkdir(exist_ok=True)
    rng = np.random.default_rng(20)
    halves = np.concatenate([np.arange(0, 65536, 97), [0, 0x8000, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0xFC00]]).astype(np.uint16)
    halves = halves[~np.isnan(halves.view(np.float16))]
    floats = np.concatenate([
        rng.standard_normal(200), rng.standard_normal(100) * 1e-5, rng.standard_normal(50) * 1e-7, rng.standard_normal(50) * 6e4,
        (np.arange(64) + 0.5) * 2.0**-24,       # ties among subnormals
        1 + (np.arange(64) + 0.5) * 2.0**-10,   # ties among normals
        [65504, 65519.996, 65520, 65536, 1e30, -65520, np.inf, -np.inf, 2.0**-14, 2.0**-14 * (1 - 2.0**-12), 2.0**-25, 0.0, -0.0],
    ]).astype(np.float32)
    with np.errstate(over="ignore"):
        rounded = floats.astype(np.float16)
    save(OUT / "mixed.safetensors", {
        "ramp_f32": ramp(3, 5).astype(np.float32),
        "ramp_f16": ramp(3, 5).astype(np.float16),
        "ramp_bf16": bfloat16(ramp(3, 5)),
        "ramp_f64": ramp(2, 3, 4).astype(np.float64),
        "third_f64": np.array([1 / 3, -2 / 3, 1e-50]),
        "ints_i64": np.array([-2**63, -1, 0, 2**63 - 1], np.int64),
        "ints_i32": np.array([-2**31, 7, 2**31 - 1], np.int32),
        "ints_i16": np.array([-2**15, 2**15 - 1], np.int16),
        "ints_i8": np.array([-128, 127], np.int8),
        "ints_u8": np.array([0, 255, 3], np.uint8),
        "flags": np.array([True, False, True]),
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 4), np.float32),
        "five_axes": ramp(1, 2, 1, 2, 1).astype(np.float32),
        "half_bits": ("float16", halves),
        "half_as_float": halves.view(np.float16).astype(np.float32),
        "floats": floats,
        "floats_as_half": rounded,
    }, {"format": "np", "note": "ünïcode ✓ \"quoted\"\nsecond line"})

    shards = OUT / "sharded"
    shards.mkdir(exist_ok=True)
    save(shards / "model-00001-of-00002.safetensors", {"a": ramp(2, 2).astype(np.float32), "b": ramp(3).astype(np.float16)}, {"format": "pt"})
    save(shards / "model-00002-of-00002.safetensors", {"c": bfloat16(ramp(4))}, {"format": "pt"})
    weight_map = {"a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"}
    (shards / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 30}, "weight_map": weight_map}, indent=2) + "\n")


if __name__ == "__main__":
    main()
