"""Files: what save() writes the program reads, with the same numbers; what lies is refused once."""

import json
import math
import os
import struct

import numpy as np
import pytest

import headscope as hs

CROSS = np.array([[[[1, 0], [0.5, 0.5], [0.25, 0.75]], [[0, 1], [0, 1], [0, 1]]]])


def test_attention_between_two_texts_is_measured_as_numpy_measures_it(tmp_path):
    path = hs.save(tmp_path / "cross", CROSS, query_tokens=["le", " chat", " dort"], key_tokens=["the", " cat"],
                   model="tiny", source="by hand")
    assert path.endswith("cross.npz") and os.listdir(tmp_path) == ["cross.npz"]
    heads = hs.metrics(path)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.nan_to_num(-CROSS * np.log(CROSS)).sum(-1).mean(-1)[0]
    for h in range(2):
        values = heads[h]["values"]
        assert values["entropy"] == pytest.approx(entropy[h], abs=1e-6)
        assert values["sink"] == pytest.approx(CROSS[0, h, :, 0].mean(), abs=1e-6)
        assert values["max_weight"] == pytest.approx(CROSS[0, h].max(-1).mean(), abs=1e-6)
        assert values["column_mass"] == pytest.approx(CROSS[0, h].mean(0).max(), abs=1e-6)
        assert values["previous_token"] is None  # of two texts none is before the other
    assert entropy[0] == pytest.approx((0 + math.log(2) + 0.25 * math.log(4) + 0.75 * math.log(4 / 3)) / 3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_float_and_a_batch_of_one(tmp_path, dtype):
    causal = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    layers = [np.broadcast_to(causal, (1, 3, 4, 4)).astype(dtype)] * 2  # as transformers: a tuple, batch first
    path = hs.save(tmp_path / "x.npz", layers, tokens=["a", " b", "a", "c"])
    heads = hs.metrics(path)
    assert len(heads) == 6
    assert heads[5]["values"]["self_attention"] == pytest.approx(np.trace(causal) / 4, abs=1e-3)


@pytest.mark.parametrize("words, kwargs", [
    ("a batch axis of 1, found 2 texts", dict(attn=np.zeros((1, 2, 3, 4, 4)))),
    ("(head, query, key), found (4, 4)", dict(attn=np.zeros((4, 4)))),
    ("floating-point weights, found int64", dict(attn=np.zeros((1, 2, 2), np.int64))),
    ("expected 2 texts, one for each key, found 3", dict(attn=CROSS, key_tokens="abc")),
    ("either tokens of one text or query_tokens", dict(attn=CROSS, tokens="ab", key_tokens="ab")),
    ("patches and leading tokens for 2 keys, found [3, 3]", dict(attn=CROSS, grid=(3, 3))),
    ("(rows, columns, leading) beside an image", dict(attn=CROSS, image=np.zeros((2, 2, 3), np.uint8))),
    ("in uint8, found (2, 2, 3) in float64", dict(attn=CROSS, grid=(1, 2), image=np.zeros((2, 2, 3)))),
    ("layers of one shape", dict(attn=[np.zeros((2, 3, 3)), np.zeros((2, 3, 2))])),
])
def test_what_lies_is_refused_and_leaves_nothing(tmp_path, words, kwargs):
    with pytest.raises(ValueError) as refused:
        hs.save(tmp_path / "x.npz", **kwargs)
    assert words in str(refused.value)
    assert os.listdir(tmp_path) == []


def test_the_programs_words_reach_python(tmp_path):
    np.savez(tmp_path / "nan.npz", attn=np.full((1, 2, 2), np.nan))
    with pytest.raises(hs.HeadscopeError, match="expected finite weights, found nan at head 0, query 0, key 0"):
        hs.metrics(tmp_path / "nan.npz")
    with pytest.raises(hs.HeadscopeError, match="found nothing"):
        hs.metrics(tmp_path / "absent.npz")
    with pytest.raises(hs.HeadscopeError, match="no-such-model"):
        hs.run("x", model="no-such-model")


def test_broken_safetensors(tmp_path):
    path = tmp_path / "x.safetensors"
    for broken in (b"", b"short", struct.pack("<Q", 1 << 60) + b"{}", struct.pack("<Q", 2) + b"[]",
                   struct.pack("<Q", 60) + b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}     ' + b"abcd"):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="x.safetensors: expected"):
            hs.load(path)


def test_bfloat16_is_read_exactly(tmp_path):
    from headscope._trace import read_safetensors

    values = np.array([1.0, -0.5, 3.140625], np.float32)
    data = (values.view("<u4") >> 16).astype("<u2").tobytes()
    header = json.dumps({"a": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
    (tmp_path / "b.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    tensors, _ = read_safetensors(tmp_path / "b.safetensors")
    assert (tensors["a"] == values).all()
