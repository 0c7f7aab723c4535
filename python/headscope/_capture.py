"""Attention weights of any transformers model, whichever kernel computes them.

Eager attention returns its weights. SDPA and FlashAttention do not ("output_attentions returns None"): there the function
that transformers looks up in ALL_ATTENTION_FUNCTIONS is wrapped while the model runs, under its own name. The kernel still
computes the output; beside it the weights are computed from the same queries and keys, masks, position biases, scaling,
soft-cap and sinks, and softmax(…)·v is compared with what the kernel returned, so that a wrong weight does not go unnoticed
(`deviation`).
"""

import os
import tempfile
import warnings
from contextlib import contextmanager

import numpy as np

from ._cli import HeadscopeError
from ._save import as_numpy, save

_TOLERANCE = 0.05  # of deviation: far above rounding in bfloat16, far below a wrong mask or scale


class Capture:
    """Attention of one model on one input: attn (layer, head, query, key), tokens, and what they are of."""

    def __init__(self, attn, *, tokens=None, query_tokens=None, ids=None, grid=None, image=None, model="", source="",
                 deviation=None):
        self.attn, self.tokens, self.query_tokens, self.ids = attn, tokens, query_tokens, ids
        self.grid, self.image, self.model, self.source = grid, image, model, source
        #: largest |softmax(…)·v − output of the kernel| ÷ largest |output|; None where the model itself returned the weights
        self.deviation = deviation
        self._folder = None

    def save(self, path):
        """Writes a .npz that Headscope opens; returns its path."""
        both = self.query_tokens is not None
        return save(path, self.attn, tokens=None if both else self.tokens, key_tokens=self.tokens if both else None,
                    query_tokens=self.query_tokens, ids=None if both else self.ids, grid=self.grid, image=self.image,
                    model=self.model, source=self.source)

    def file(self):
        """A file of it, for pictures and for the window; written once."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="headscope-")
            self.save(os.path.join(self._folder.name, "capture.npz"))
        return os.path.join(self._folder.name, "capture.npz")

    def __repr__(self):
        return f"<headscope.Capture of {self.model or 'a model'}: {self.attn.shape} (layer, head, query, key)>"


def capture(model, tokenizer=None, text=None, *, path=None, image=None, target=None, **inputs):
    """Runs a transformers model once and keeps its attention weights.

    model      any model of transformers: eager, sdpa, flash_attention_2, …; on one device or spread over several (device_map)
    tokenizer  its tokenizer; for pictures its image processor
    text       what it reads; or `image` (PIL, or uint8 height × width × 3); or tensors as the model takes them: input_ids=…
    target     of an encoder-decoder model: the text of the decoder (default: its start token)
    path       written there as .npz; in a job of several processes by rank 0 alone

    Returns a Capture; of an encoder-decoder model {"encoder": …, "decoder": …, "cross": …}, written to
    NAME.encoder.npz, NAME.decoder.npz and NAME.cross.npz. In a tensor-parallel job the heads of all ranks are put together.
    """
    torch, _ = _libraries()
    inputs = _inputs(torch, model, tokenizer, text, image, target, inputs)
    _check_batch(inputs)
    how = getattr(model.config, "_attn_implementation", None) or "eager"
    seen = None
    with torch.no_grad(), _evaluating(model):
        if how == "eager":
            maps = _returned_by(model, inputs)
        else:
            with _recording(torch, model, how) as seen:
                model(**inputs)
            maps = {kind: [seen.weights[name] for name in names] for kind, names in seen.kinds().items()}
        if not any(maps.values()):
            maps, seen, how = _by_eager(torch, model, inputs, how), None, "eager"
    deviation = None if seen is None else max(seen.deviation.values())
    if deviation is not None and deviation > _TOLERANCE:
        warnings.warn(f"headscope: the weights computed beside {how} give another output than it does ({deviation:.2g} of the "
                      'largest): the kernel does something that is not known here. attn_implementation="eager" returns its own',
                      stacklevel=2)
    source = f"{type(model).__name__}, {how}" + ("" if seen is None else ", weights from q and k")
    captures = _captures(model, tokenizer, inputs, maps, source, deviation)
    result = captures if len(captures) > 1 else next(iter(captures.values()))
    if path is not None and _rank() == 0:
        stem, _ = os.path.splitext(os.fspath(path))
        for kind, each in captures.items():
            each.save(path if len(captures) == 1 else f"{stem}.{kind}.npz")
    return result


def _libraries():
    try:
        import torch
        import transformers
    except ImportError as missing:
        raise HeadscopeError(f"capture: expected torch and transformers, found none ({missing})\n  hint: pip install torch "
                             "transformers; weights that you have already are written by headscope.save") from None
    return torch, transformers


# --- what goes in -------------------------------------------------------------------------------------------------------

def _inputs(torch, model, tokenizer, text, image, target, inputs):
    inputs = dict(inputs)
    if sum(x is not None for x in (text, image)) + bool(inputs) != 1:
        raise ValueError("capture: expected one of text, image and tensors such as input_ids=…, found several or none")
    if not inputs:
        if tokenizer is None:
            raise ValueError("capture: expected a tokenizer (for a picture: an image processor), found none")
        if text is not None:
            inputs = dict(tokenizer(text, return_tensors="pt"))
            if not _takes(model, "token_type_ids"):
                inputs.pop("token_type_ids", None)
        else:
            inputs = dict(tokenizer(images=image, return_tensors="pt"))
    if getattr(model.config, "is_encoder_decoder", False) and "decoder_input_ids" not in inputs:
        start = model.config.decoder_start_token_id
        ids = [start if start is not None else model.config.bos_token_id]
        if target is not None:
            ids += tokenizer(target, add_special_tokens=False)["input_ids"]
        inputs["decoder_input_ids"] = torch.tensor([ids])
    device = next(model.parameters()).device  # where the first layer lies; device_map moves the rest itself
    return {name: value.to(device) if hasattr(value, "to") else value for name, value in inputs.items()}


def _takes(model, name):
    import inspect

    return name in inspect.signature(model.forward).parameters


def _check_batch(inputs):
    for name, value in inputs.items():
        if name in ("input_ids", "pixel_values", "inputs_embeds", "decoder_input_ids") and value.shape[0] != 1:
            raise ValueError(f"{name}: expected one text, a batch axis of 1, found {value.shape[0]}")


@contextmanager
def _evaluating(model):
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


# --- weights ------------------------------------------------------------------------------------------------------------

def _returned_by(model, inputs):
    """What eager attention returns, by kind: lists of (head, query, key)."""
    out = model(**inputs, output_attentions=True, return_dict=True)

    def layers(name):
        return [as_numpy(layer)[0] for layer in (getattr(out, name, None) or ()) if layer is not None]

    if getattr(model.config, "is_encoder_decoder", False):
        return {"encoder": layers("encoder_attentions"), "decoder": layers("decoder_attentions"),
                "cross": layers("cross_attentions")}
    return {"self": layers("attentions"), "cross": layers("cross_attentions")}


def _by_eager(torch, model, inputs, how):
    """For models whose attention is not looked up by name: eager for this one pass."""
    try:
        model.set_attn_implementation("eager")
    except Exception as failed:
        raise HeadscopeError(f"capture: expected attention that can be recorded, found {type(model).__name__} with {how} ({failed})"
                             '\n  hint: load the model with attn_implementation="eager"') from None
    try:
        maps = _returned_by(model, inputs)
    finally:
        model.set_attn_implementation(how)
    if not any(maps.values()):
        raise HeadscopeError(f"capture: expected attention weights of {type(model).__name__}, found none (output_attentions "
                             "returns None)")
    return maps


class _Seen:
    """Weights of every attention module that ran, by its name."""

    def __init__(self, model):
        self.names = {id(module): name for name, module in model.named_modules()}
        self.two_stacks = getattr(model.config, "is_encoder_decoder", False)
        self.weights, self.deviation = {}, {}  # in the order in which they ran

    def kinds(self):
        kinds = {}
        for name in self.weights:
            parts = name.lower().split(".")
            cross = any("cross" in part or part in ("encoder_attn", "encdecattention") for part in parts)
            kind = "cross" if cross else "self"
            if self.two_stacks and not cross:
                kind = "decoder" if "decoder" in parts else "encoder"
            kinds.setdefault(kind, []).append(name)
        return kinds


@contextmanager
def _recording(torch, model, how):
    """While it lasts, the attention function called `how` tells its weights."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as known

    seen = _Seen(model)
    usual = known[how] if how in known else None
    if usual is None:
        yield seen
        return

    def attention(module, query, key, value, attention_mask=None, *args, **kwargs):
        result = usual(module, query, key, value, attention_mask, *args, **kwargs)
        name = seen.names.get(id(module))
        if name is not None:
            weights = _weights(torch, module, query, key, attention_mask, how, kwargs)
            seen.deviation[name] = _deviation(torch, weights, value, result[0])
            seen.weights[name] = as_numpy(_all_heads(torch, weights[0], model.config).float())
        return result

    known[how] = attention
    try:
        yield seen
    finally:
        known[how] = usual


def _weights(torch, module, query, key, mask, how, kwargs):
    """softmax of what the kernel scores, in float32 (float64 of float64): (batch, head, query, key).

    query (batch, head, query, d), key (batch, kv_head, key, d): shared keys serve equal groups of heads (GQA).
    """
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scaling = kwargs.get("scaling")
    scores = query.to(wide) @ key.to(wide).transpose(-1, -2) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    # PyTorch's kernel knows neither soft-cap nor sinks, and does without them.
    cap = kwargs.get("softcap") if how != "sdpa" else None
    if cap:
        scores = torch.tanh(scores / cap) * cap
    n_query, n_key = scores.shape[-2:]
    bias = kwargs.get("position_bias")
    if bias is not None:  # T5's, by distance: beside the mask
        scores = scores + bias[..., :n_key].to(wide)
    hidden = None
    if mask is not None and mask.ndim == 4:
        mask = mask[..., :n_key]
        if mask.dtype == torch.bool:
            hidden = ~mask
        else:
            scores = scores + mask.to(wide)
    else:
        causal = kwargs.get("is_causal")
        causal = getattr(module, "is_causal", True) if causal is None else causal
        if causal and (n_query > 1 or how != "sdpa"):
            distance = torch.arange(n_query)[:, None] + (0 if how == "sdpa" else n_key - n_query) - torch.arange(n_key)
            hidden = distance < 0
            window = kwargs.get("sliding_window") if how != "sdpa" else None
            if window is not None:
                hidden |= distance >= window
            hidden = hidden.to(scores.device)
        if mask is not None:  # (batch, key), as FlashAttention takes it: 0 is padding
            padding = (mask[:, None, None, :n_key] == 0).to(scores.device)
            hidden = padding if hidden is None else hidden | padding
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    sinks = kwargs.get("s_aux") if how != "sdpa" else None
    if sinks is not None:  # a score of every head that no key has, and that takes its share
        column = sinks.to(wide).reshape(1, -1, 1, 1).expand(scores.shape[0], -1, n_query, 1)
        return torch.softmax(torch.cat([scores, column], dim=-1), dim=-1)[..., :-1].nan_to_num(0.0)
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)  # a query that sees nothing has no weights


def _deviation(torch, weights, value, output):
    """How far softmax(…)·v is from what the kernel returned, (batch, query, head, d)."""
    value = value.repeat_interleave(weights.shape[1] // value.shape[1], dim=1).to(weights.dtype)
    expected, output = (weights @ value).transpose(1, 2), output.to(weights.dtype).reshape(weights.shape[0], weights.shape[2], weights.shape[1], -1)
    seen = weights.sum(-1).transpose(1, 2)[..., None] > 0  # what a kernel writes for a row that sees nothing means nothing
    largest = (output * seen).abs().max()
    return float(((expected - output) * seen).abs().max() / largest) if largest > 0 else 0.0


def _all_heads(torch, weights, config):
    """(head, query, key) of all heads: in a tensor-parallel job each rank computes some."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return weights
    ranks, heads = torch.distributed.get_world_size(), getattr(config, "num_attention_heads", None)
    if heads is None or weights.shape[0] * ranks != heads or ranks == 1:
        return weights  # this rank has all of them (pipeline, data parallel, FSDP)
    parts = [torch.empty_like(weights) for _ in range(ranks)]
    torch.distributed.all_gather(parts, weights.contiguous())
    return torch.cat(parts)


def _rank():
    import torch

    return torch.distributed.get_rank() if torch.distributed.is_available() and torch.distributed.is_initialized() else 0


# --- what comes out -----------------------------------------------------------------------------------------------------

def _captures(model, tokenizer, inputs, maps, source, deviation):
    name = getattr(model.config, "name_or_path", "") or type(model).__name__
    read, written = _tokens(tokenizer, inputs.get("input_ids")), _tokens(tokenizer, inputs.get("decoder_input_ids"))
    ids = inputs.get("input_ids")
    out = {}
    for kind, layers in maps.items():
        if not layers:
            continue
        shapes = {layer.shape for layer in layers}
        if len(shapes) > 1:
            raise HeadscopeError(f"capture: expected layers of one shape, found {sorted(shapes)} (heads, queries, keys)")
        attn = np.stack(layers)
        n_query, n_key = attn.shape[-2:]
        each = Capture(attn, model=name, source=f"{source}, {kind} attention" if len(maps) > 1 and kind != "self" else source,
                       deviation=deviation)
        keys, queries = (written, written) if kind == "decoder" else (read, written if kind == "cross" else read)
        each.tokens = keys if keys is not None and len(keys) == n_key else None
        if kind == "cross" or n_query != n_key:
            each.tokens = each.tokens or [str(i) for i in range(n_key)]
            each.query_tokens = queries if queries is not None and len(queries) == n_query else [str(i) for i in range(n_query)]
        elif kind == "self" and ids is not None and ids.shape[-1] == n_key:
            each.ids = as_numpy(ids)[0]
        if "pixel_values" in inputs and kind in ("self", "encoder"):
            _add_picture(each, model, tokenizer, inputs["pixel_values"], n_key)
        out[kind] = each
    return out


def _tokens(tokenizer, ids):
    """What every token stands for, spaces and line breaks as they are."""
    if ids is None:
        return None
    ids = [int(i) for i in ids[0]]
    if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
        return [f"#{i}" for i in ids]
    special = set(getattr(tokenizer, "all_special_ids", ()))
    out = []
    for i, piece in zip(ids, tokenizer.convert_ids_to_tokens(ids)):
        if i in special or not isinstance(piece, str):
            out.append(str(piece))
        elif "▁" in piece:
            out.append(piece.replace("▁", " "))
        else:
            out.append(tokenizer.convert_tokens_to_string([piece]) or piece)
    return out


def _add_picture(each, model, processor, pixels, n_key):
    """The grid of patches, and the picture as the model saw it."""
    config = getattr(model.config, "vision_config", model.config)
    patch = getattr(config, "patch_size", None)
    if patch is None:
        return
    high, wide = patch if isinstance(patch, (tuple, list)) else (patch, patch)
    pixels = as_numpy(pixels.float())[0].transpose(1, 2, 0)
    rows, columns = pixels.shape[0] // high, pixels.shape[1] // wide
    leading = n_key - rows * columns
    if leading < 0:
        return  # a model that merges patches (Swin): its keys lie on no one grid
    mean, std = getattr(processor, "image_mean", None), getattr(processor, "image_std", None)
    if mean is None:
        low, high_value = pixels.min(), pixels.max()
        pixels = (pixels - low) / (high_value - low or 1)
    else:
        pixels = pixels * np.asarray(std) + np.asarray(mean)
    each.grid = (rows, columns, leading)
    each.image = (255 * np.clip(pixels, 0, 1)).round().astype(np.uint8)
    if each.image.shape[2] == 1:
        each.image = np.repeat(each.image, 3, axis=2)
    lead = ["CLS" if i == 0 else f"<{i}>" for i in range(leading)]
    each.tokens = lead + [f"{r},{c}" for r in range(rows) for c in range(columns)]
