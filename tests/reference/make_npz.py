#!/usr/bin/env python3
"""Writes tests/reference/npz/: NumPy files that core/io/npz must read, and some that it must refuse.

    python3 -m pip install numpy && python3 tests/reference/make_npz.py

Values of the arrays `ramp_*` are ramp(i) = ((37 i) mod 101 - 50) / 8 in C order, which every float dtype here holds exactly.
"""
import pathlib

import numpy as np
from numpy.lib import format as npy

OUT = pathlib.Path(__file__).parent / "npz"


def ramp(*shape):
    i = np.arange(int(np.prod(shape)))
    return (((37 * i) % 101 - 50) / 8).reshape(shape)


def main():
    OUT.mkdir(exist_ok=True)
    arrays = {
        "ramp_f2": ramp(3, 5).astype("<f2"),
        "ramp_f4": ramp(3, 5).astype("<f4"),
        "ramp_f8": ramp(2, 3, 4).astype("<f8"),
        "ramp_fortran2": np.asfortranarray(ramp(3, 5).astype("<f4")),
        "ramp_fortran4": np.asfortranarray(ramp(2, 3, 4, 5).astype("<f8")),
        "ramp_vector": ramp(7),
        "ints_i1": np.array([-128, 127], np.int8),
        "ints_i2": np.array([[-2**15], [2**15 - 1]], np.int16),
        "ints_i4": np.array([-2**31, 2**31 - 1], np.int32),
        "ints_i8": np.array([-2**63, 2**63 - 1], np.int64),
        "ints_fortran": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        "ints_u1": np.array([0, 255], np.uint8),
        "ints_u2": np.array([0, 65535], np.uint16),
        "ints_u4": np.array([0, 2**32 - 1], np.uint32),
        "ints_u8": np.array([0, 2**63 - 1], np.uint64),
        "too_large_u8": np.array([2**63], np.uint64),
        "flags": np.array([True, False, True]),
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 4), np.float32),
        "five_axes": ramp(1, 2, 1, 2, 1).astype(np.float32),
        "tokens": np.array(["The", " qüick", "狐", "🦊", "", "e\u0301"]),
        "bytes": np.array([b"ab", b"c", b""]),
        "big_endian": np.array([1.5], ">f4"),
        "complex": np.array([1j]),
        "record": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]),
        "object": np.array([{"a": 1}], dtype=object),
    }
    np.savez_compressed(OUT / "deflated.npz", **arrays)
    np.savez(OUT / "stored.npz", **{k: arrays[k] for k in ("ramp_f4", "ramp_fortran4", "tokens", "ints_i4", "scalar")})
    np.save(OUT / "alone.npy", ramp(3, 5).astype("<f4"))
    with open(OUT / "version2.npy", "wb") as f:
        npy.write_array(f, ramp(3, 5).astype("<f4"), version=(2, 0))

    # attn[l, h, q, k] = 1 / (q + 1) on and below the diagonal; head 2 of layer 1 looks at the previous token.
    even = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    attn = np.broadcast_to(even, (2, 3, 4, 4)).astype(np.float32).copy()
    attn[1, 2] = np.eye(4, k=-1)
    attn[1, 2, 0, 0] = 1
    np.savez_compressed(OUT / "attention.npz", attn=attn, tokens=np.array(["a", " b", "a", "c"]))
    np.save(OUT / "one_layer.npy", np.full((2, 3, 3), 2 / 3))
    three = np.tril(np.ones((1, 2, 3, 3))) / np.arange(1, 4)[:, None]
    bad = three.copy()
    bad[0, 1, 2, 0] = np.nan
    np.savez_compressed(OUT / "attention_ids.npz", attn=three.astype(np.float16), ids=np.array([50, 60, 50]))
    np.savez_compressed(OUT / "attention_bad_ids.npz", attn=three, ids=np.array([50, -1, 50]))
    np.savez_compressed(OUT / "attention_few_tokens.npz", attn=three, tokens=np.array(["a", "b"]))
    np.savez_compressed(OUT / "attention_nan.npz", attn=bad)
    np.savez_compressed(OUT / "attention_batch.npz", attn=three[None])


if __name__ == "__main__":
    main()
