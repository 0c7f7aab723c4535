"""Trace files of `headscope-cli capture`: safetensors, read with NumPy alone."""

import json
import math
import os
import struct
from collections.abc import Mapping

import numpy as np

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
           "U8": "u1", "BOOL": "?"}


def read_safetensors(path):
    """The tensors and the metadata of a safetensors file. BF16 becomes float32. Raises ValueError on a file that is none."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))[0]
        if length > min(size - 8, 100 << 20):
            raise ValueError(f"{path}: expected a safetensors file, found a header of {length} bytes in a file of {size}")
        try:
            header = json.loads(file.read(length))
            metadata = header.pop("__metadata__", {})
            tensors = {}
            for name, entry in header.items():
                begin, end = entry["data_offsets"]
                dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
                if end - begin != dtype.itemsize * math.prod(shape) or not 0 <= begin <= end <= size - 8 - length:
                    raise ValueError(f"tensor {name}: {entry}")
                file.seek(8 + length + begin)
                array = np.frombuffer(file.read(end - begin), dtype).reshape(shape)
                if entry["dtype"] == "BF16":
                    array = (array.astype("<u4") << 16).view("<f4")
                tensors[name] = array
        except (KeyError, TypeError, AttributeError, ValueError) as broken:
            raise ValueError(f"{path}: expected a safetensors file, found a broken one ({broken})") from None
    return tensors, metadata


class Trace(Mapping):
    """What one run left behind: arrays under TransformerLens' names, and what they are of.

    trace["blocks.0.attn.hook_pattern"] is (head, query, key); trace["tokens"] the ids; trace["logits"] (query, vocab).
    """

    def __init__(self, path, keep=None):
        self.path = os.fspath(path)
        self._keep = keep  # the temporary folder that the file lies in
        self._arrays, metadata = read_safetensors(self.path)
        if "headscope" not in metadata:
            raise ValueError(f"{self.path}: expected a trace of headscope-cli capture, found other safetensors")
        self.description = json.loads(metadata["headscope"])

    def __getitem__(self, name):
        return self._arrays[name]

    def __iter__(self):
        return iter(self._arrays)

    def __len__(self):
        return len(self._arrays)

    @property
    def tokens(self):
        """The text of every token."""
        return [_text(token["bytes"]) or token["label"] for token in self.description["tokens"]]

    @property
    def text(self):
        return _text(self.description["text"])

    @property
    def model(self):
        """Name, family and extents of the model."""
        return self.description["model"]

    @property
    def patterns(self):
        """(layer, head, query, key) of all recorded layers."""
        names = [f"blocks.{i}.attn.hook_pattern" for i in range(self.model["layers"])]
        return np.stack([self._arrays[name] for name in names if name in self._arrays])

    def __repr__(self):
        return f"<headscope.Trace of {self.model['name']}: {len(self.tokens)} tokens, {len(self)} arrays, {self.path}>"


def _text(value):
    return value if isinstance(value, str) else bytes.fromhex(value["hex"]).decode("utf-8", "replace")


def load(path):
    """The trace in a file that `headscope-cli capture`, or `run` here, wrote."""
    return Trace(path)
