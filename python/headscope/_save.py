"""Writes what the program opens (docs/formats.md, "Attention captured elsewhere")."""

import os
import tempfile

import numpy as np


def as_numpy(array):
    """NumPy, PyTorch (any device, also bfloat16), JAX, TensorFlow, or nested lists, as an array NumPy can save."""
    if hasattr(array, "detach"):  # a torch tensor
        array = array.detach()
        if str(array.dtype) == "torch.bfloat16":
            array = array.float()
        array = array.cpu().numpy()
    array = np.asarray(array)
    if array.dtype.kind == "V" or array.dtype.name == "bfloat16":  # JAX
        array = array.astype(np.float32)
    return array


def _layers(attn):
    """One array, or a list with one for each layer, as transformers returns it."""
    if isinstance(attn, (list, tuple)) and len(attn) and getattr(attn[0], "ndim", 0) >= 3:
        layers = [as_numpy(layer) for layer in attn]
        shapes = {layer.shape for layer in layers}
        if len(shapes) > 1:
            raise ValueError(f"attn: expected layers of one shape, found {sorted(shapes)}")
        attn = np.stack(layers)
    attn = as_numpy(attn)
    if attn.ndim == 5:
        if attn.shape[1] != 1:
            raise ValueError(f"attn: expected one text, a batch axis of 1, found {attn.shape[1]} texts in {attn.shape}")
        attn = attn[:, 0]
    if attn.ndim not in (3, 4) or attn.size == 0:
        raise ValueError(f"attn: expected (layer, head, query, key) or (head, query, key), found {attn.shape}")
    if attn.dtype.kind != "f":
        raise ValueError(f"attn: expected floating-point weights, found {attn.dtype}")
    return attn


def _texts(name, texts, count, what):
    texts = [str(text) for text in texts]
    if len(texts) != count:
        raise ValueError(f"{name}: expected {count} texts, one for each {what}, found {len(texts)}")
    return np.array(texts, dtype=np.str_)


def save(path, attn, *, tokens=None, query_tokens=None, key_tokens=None, ids=None, grid=None, image=None, model="", source="",
         compress=False):
    """Writes attention weights to a .npz that Headscope opens; whoever watches the folder never sees half a file.

    attn           (layer, head, query, key) or (head, query, key), or a list of layers; an axis for a batch of 1 may stand
                   before the heads. From NumPy, PyTorch (bfloat16 too) or JAX.
    tokens         texts of the tokens (ids: their numbers), of queries and keys alike
    query_tokens,  instead, where queries are of another text than keys (cross-attention)
    key_tokens
    grid           (rows, columns) or (rows, columns, leading): keys are patches of a picture, after `leading` others (CLS)
    image          that picture, (height, width, 3), uint8
    Returns the path. Raises ValueError on shapes that disagree.
    """
    attn = _layers(attn)
    n_query, n_key = attn.shape[-2:]
    arrays = {"attn": attn}
    if tokens is not None and (query_tokens is not None or key_tokens is not None):
        raise ValueError("tokens: expected either tokens of one text or query_tokens and key_tokens, found both")
    if tokens is not None:
        arrays["tokens"] = _texts("tokens", tokens, n_key, "key")
    if query_tokens is not None:
        arrays["query_tokens"] = _texts("query_tokens", query_tokens, n_query, "query")
    if key_tokens is not None:
        arrays["key_tokens"] = _texts("key_tokens", key_tokens, n_key, "key")
    if ids is not None:
        arrays["ids"] = as_numpy(ids).reshape(-1).astype(np.int64)
        if len(arrays["ids"]) != n_key:
            raise ValueError(f"ids: expected {n_key}, one for each key, found {len(arrays['ids'])}")
    if image is not None:
        image = as_numpy(image)
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            raise ValueError(f"image: expected (height, width, 3) in uint8, found {image.shape} in {image.dtype}")
        if grid is None:
            raise ValueError("grid: expected (rows, columns, leading) beside an image, found none")
        arrays["image"] = image
    if grid is not None:
        grid = [int(n) for n in grid]
        rows, columns, leading = grid if len(grid) == 3 else (*grid, n_key - grid[0] * grid[1])
        if rows < 1 or columns < 1 or leading < 0 or leading + rows * columns != n_key:
            raise ValueError(f"grid: expected patches and leading tokens for {n_key} keys, found {grid}")
        arrays["grid"] = np.array([rows, columns, leading])
    for name, text in (("model", model), ("source", source)):
        if text:
            arrays[name] = np.array(str(text))
    path = os.fspath(path)
    if not path.endswith(".npz"):
        path += ".npz"
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=".", suffix=".npz", dir=folder)  # the watcher passes over names with a dot
    try:
        with os.fdopen(handle, "wb") as file:
            (np.savez_compressed if compress else np.savez)(file, **arrays)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(part, 0o666 & ~umask)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    return path
