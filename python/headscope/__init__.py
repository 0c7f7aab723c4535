"""Attention of any model, in NumPy and in Headscope.

    import headscope as hs

    hs.capture(model, tokenizer, "When Mary and John …", path="run.npz")   # a transformers model, also with SDPA or FlashAttention
    hs.save("run.npz", attn, tokens=tokens)                                # weights from anywhere: PyTorch, JAX, llama.cpp
    trace = hs.run("The cat sat", model="gpt2", edits=["1.0: ablate zero"])   # Headscope's own forward pass
    trace["blocks.1.attn.hook_pattern"]                                     # (head, query, key)
    hs.heads(trace)                                                         # a picture, shown in a notebook
    hs.open(trace)                                                          # the window

Needs NumPy; `capture` needs torch and transformers, the others the program headscope-cli.
"""

from ._capture import Capture, capture
from ._cli import HeadscopeError, metrics, open, run
from ._pictures import Picture, head, heads, patches, row
from ._save import save
from ._trace import Trace, load

__all__ = ["Capture", "HeadscopeError", "Picture", "Trace", "capture", "head", "heads", "load", "metrics", "open", "patches",
           "row", "run", "save"]
__version__ = "0.1.0"
