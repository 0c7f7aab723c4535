#!/usr/bin/env python3
"""Opens a file written by our SafetensorsWriter with the official Python library and prints what it holds as JSON.
Exit code 3: NumPy or safetensors is not installed here."""
import json
import sys

try:
    import numpy as np
    from safetensors import safe_open
except ImportError:
    sys.exit(3)

with safe_open(sys.argv[1], framework="np") as f:
    tensors = {}
    for name in f.keys():
        array = f.get_tensor(name)
        tensors[name] = {"dtype": str(array.dtype), "shape": list(array.shape), "values": array.astype(np.float64).ravel().tolist()}
    print(json.dumps({"metadata": f.metadata(), "tensors": tensors}))
