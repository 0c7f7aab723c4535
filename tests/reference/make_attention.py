#!/usr/bin/env python3
"""Writes tests/reference/attention/: captures of other programs, whose numbers are known by hand, and some that lie.

    python3 -m pip install numpy && python3 tests/reference/make_attention.py
"""
import json
import pathlib
import struct

import numpy as np

OUT = pathlib.Path(__file__).parent / "attention"


def safetensors(path, tensors, metadata=None):
    """`tensors`: name -> (dtype, shape, bytes)."""
    header, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def bf16(array):
    """The upper halves of float32: exact for the sums of powers of two used here."""
    bits = np.ascontiguousarray(array, "<f4").view("<u4")
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype("<u2")


def main():
    OUT.mkdir(exist_ok=True)
    # Three queries of one text, two keys of another. (layer 1, head 2, query 3, key 2)
    cross = np.array([[[[1, 0], [0.5, 0.5], [0.25, 0.75]], [[0, 1], [0, 1], [0, 1]]]], np.float64)
    french, english = np.array(["le", " chat", " dort"]), np.array(["the", " chat"])
    np.savez_compressed(OUT / "cross.npz", attn=cross, query_tokens=french, key_tokens=english,
                        model=np.array("tiny translator"), source=np.array("cross-attention of the decoder"))
    np.savez_compressed(OUT / "cross_ids.npz", attn=cross.astype(np.float16), query_ids=[7, 8, 9], key_ids=[5, 7])
    np.savez_compressed(OUT / "cross_alias.npz", attn=cross.astype(np.float32), tokens=french, key_tokens=english)
    np.save(OUT / "cross_bare.npy", cross[0].astype(np.float32))
    half = bf16(cross)
    safetensors(OUT / "cross_bf16.safetensors", {"attn": ("BF16", cross.shape, half.tobytes())},
                {"query_tokens": json.dumps(french.tolist()), "key_tokens": json.dumps(english.tolist()),
                 "model": "tiny translator"})
    with open(OUT / "bf16.npy", "wb") as file:  # as NumPy writes ml_dtypes.bfloat16
        np.lib.format.write_array_header_1_0(file, {"descr": "<V2", "fortran_order": False, "shape": cross.shape})
        file.write(half.tobytes())

    # One text.
    causal = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    four = np.array(["a", " b", "a", "c"])
    layers = np.broadcast_to(causal, (2, 1, 3, 4, 4)).astype(np.float32)  # (layer, batch 1, head, query, key)
    np.savez_compressed(OUT / "batch_of_one.npz", attn=layers, tokens=four[None])
    np.savez_compressed(OUT / "batch_of_two.npz", attn=np.repeat(layers, 2, axis=1))
    np.savez_compressed(OUT / "by_name.npz", **{f"blocks.{i}.attn.hook_pattern": layers[i] for i in range(2)}, tokens=four)
    np.savez_compressed(OUT / "tail.npz", attn=causal[None, None, 2:].astype(np.float32), tokens=four)
    padded = np.zeros((1, 2, 4, 256), np.float32)
    padded[..., :4] = causal
    np.savez_compressed(OUT / "padded.npz", attn=padded, tokens=four)  # as llama.cpp pads its cache

    # A picture of 6 x 4 pixels under 2 x 2 patches after one CLS token: one colour for each patch.
    image = np.zeros((4, 6, 3), np.uint8)
    image[:2, :3], image[:2, 3:], image[2:, :3], image[2:, 3:] = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
    vit = np.full((1, 1, 5, 5), 0.2, np.float32)
    vit[0, 0, 0] = [0.125, 0.0, 0.125, 0.25, 0.5]
    np.savez_compressed(OUT / "picture.npz", attn=vit, grid=[2, 2, 1], image=image)
    np.savez_compressed(OUT / "picture_cross.npz", attn=vit[:, :, :2, 1:], query_tokens=np.array(["a", "dog"]), grid=[2, 2],
                        image=image)
    np.savez_compressed(OUT / "grid_alone.npz", attn=vit, grid=[2, 2])

    # Files that lie.
    few = dict(attn=cross.astype(np.float32), query_tokens=french)
    np.savez_compressed(OUT / "bad_key_tokens.npz", key_tokens=french, **few)
    np.savez_compressed(OUT / "bad_one_list.npz", attn=cross.astype(np.float32), tokens=french)
    np.savez_compressed(OUT / "bad_grid.npz", attn=vit, grid=[3, 3, 1], image=image)
    np.savez_compressed(OUT / "bad_grid_huge.npz", attn=vit, grid=[2**62, 4, 1], image=image)
    np.savez_compressed(OUT / "bad_image.npz", attn=vit, grid=[2, 2, 1], image=image / 255)
    np.savez_compressed(OUT / "bad_image_first.npz", attn=vit, grid=[2, 2, 1], image=image.transpose(2, 0, 1))
    np.savez_compressed(OUT / "bad_image_alone.npz", attn=vit, image=image)
    nan = cross.copy()
    nan[0, 1, 2, 0] = np.inf
    np.savez_compressed(OUT / "bad_infinite.npz", attn=nan, **{k: few[k] for k in ("query_tokens",)})
    np.savez_compressed(OUT / "bad_layers.npz", **{"blocks.0.attn.hook_pattern": layers[0],
                                                   "blocks.1.attn.hook_pattern": layers[1][..., :3]})
    safetensors(OUT / "bad_f8.safetensors", {"attn": ("F8_E4M3", (1, 1, 2, 2), bytes(4))})
    safetensors(OUT / "bad_tokens.safetensors", {"attn": ("BF16", cross.shape, half.tobytes())}, {"key_tokens": "[1, 2]"})


if __name__ == "__main__":
    main()
