"""Measures the example that make_induction.py built (float64, on the weights as stored) and writes its card.
It refuses to write one whose heads do not do what the card says."""

import numpy as np

import make_models
import reference_model as reference

# layer, head, name, what it was built to do, what is measured, least score
HEADS = [
    (0, 0, "previous token", "attends to the position before, and copies that byte's code into the group `before`", "previous", 0.99),
    (0, 1, "two back", "attends two positions back, and copies that byte's tie code into `two_before_tie`", "two_back", 0.95),
    (0, 2, "earlier copies", "attends to the earliest copy of its own byte (a near one shares with itself), itself when there is none; writes nothing, so "
     "ablating it changes no logit however striking its picture is", "copies", 0.85),
    (0, 3, "word start", "attends to the latest space, and to the first position before there is one; writes nothing", "space", 0.9),
    (1, 0, "induction", "looks for a position whose `before` is its own byte, prefers one whose two bytes before match its "
     "own last two, and copies the byte found there to the output; rests on the first position when there is none", "prefix", 0.9),
    (1, 1, "itself", "attends to itself and takes its own byte out of the output, which tied embeddings would "
     "otherwise predict again", "self", 0.99),
    (1, 2, "mean", "attends to everything alike: the letters used so far become a little more likely", "uniform", 0.99),
    (1, 3, "sink", "attends to the first position, where the massive number leaves next to nothing to read: it has no "
     "effect, as resting heads in trained models have none", "sink", 0.99),
]


def measure(a, ids):
    """a (layer, head, query, key) → name → (layer, head)"""
    n, space = len(ids), make_models.byte_ids(" ")[0]
    metrics = reference.all_head_metrics(a, ids)
    two_back = np.mean([a[:, :, q, q - 2] for q in range(2, n)], 0)
    first_of = [ids.index(i) for i in ids]
    copies = np.mean([a[:, :, q, first_of[q]] for q in range(n)], 0)
    latest = [max([k for k in range(q + 1) if ids[k] == space], default=0) for q in range(n)]
    word = np.mean([a[:, :, q, latest[q]] for q in range(n)], 0)
    uniform = 1 - np.mean([np.abs(a[:, :, q, : q + 1] * (q + 1) - 1).max(-1) for q in range(n)], 0)
    return {"previous": metrics["previous_token"], "two_back": two_back, "copies": copies, "space": word,
            "prefix": metrics["prefix_matching"], "self": metrics["self_attention"], "uniform": uniform, "sink": metrics["sink"]}


def write_card(folder, text, side_lobe):
    config, weights = reference.read_folder(folder)
    ids = make_models.byte_ids(text)
    sites = reference.forward(config, weights, ids)
    scores = measure(reference.patterns(sites), ids)
    block = list(map(int, np.random.default_rng(1).permutation(256)[:60]))
    random_ids = [256, *block, *block]
    random_scores = measure(reference.patterns(reference.forward(config, weights, random_ids)), random_ids)

    characters = dict(enumerate(chr(byte) for byte, _ in make_models.byte_symbols()))
    continuation, _ = reference.greedy(config, weights, ids, 20)
    said = "".join(characters.get(i, "?") for i in continuation)
    probability = reference.softmax(sites["logits"][-1])[continuation[0]]
    block_losses = reference.losses(reference.forward(config, weights, random_ids)["logits"], random_ids)
    values = np.linalg.norm(sites["blocks.1.attn.hook_v"], axis=-1)  # (position, head)
    assert text.count(said[:3]) and said[:3] == text[text.index("Qu") + 2 :][:3], said

    meaning = {"previous": "weight on the position before", "two_back": "weight two positions back",
               "copies": "weight on the earliest copy", "space": "weight on the latest space",
               "prefix": "prefix matching", "self": "weight on itself", "uniform": "1 − largest deviation from uniform",
               "sink": "weight on the first position"}
    rows = []
    for layer, head, name, does, metric, least in HEADS:
        score, other = scores[metric][layer, head], random_scores[metric][layer, head]
        assert score >= least, (name, score)
        shown = "" if metric == "space" else f"{other:.4f}"  # random bytes hold no words
        rows.append(f"| {layer}.{head} | {name} | {does} | {meaning[metric]} | {score:.4f} | {shown} |")

    card = f"""# An induction circuit written by hand

A GPT-2 of two layers with four heads each, in which every weight was put in place by
[make_induction.py](../make_induction.py); nothing was trained. It reads bytes (256 and `<|endoftext|>`), up to
{config["n_positions"]} of them, and continues a text that repeats itself. It knows nothing else: on a text without repeats
its predictions are worth nothing. Because each head is known exactly, the model shows what the usual patterns look like
when they are pure, and what a measurement of them ought to say. Licence: MIT, like the rest of Headscope.

On the example

> {text}

it says **{said[:1]}** with probability {probability:.3f}, and goes on "{said}".

| head | name | what it does | measured | example | random bytes twice |
|---|---|---|---|---|---|
{chr(10).join(rows)}

Measured in float64 on the stored (F16) weights; the example has {len(ids)} bytes, the last column is `<|endoftext|>` and 60
random bytes written twice. Mean loss there: {block_losses[:60].mean():.2f} nats in the first copy, {block_losses[61:].mean():.3f} in the second.

The first position carries one massive number, {np.abs(sites["blocks.1.hook_resid_pre"][0]).max():.0f} where others stay below
{np.abs(sites["blocks.1.hook_resid_pre"][1:]).max():.2f}, written by the MLP of layer 0. LayerNorm then leaves little else of that position: in layer 1 its
value vectors have length {values[0].max():.3f}, all others {values[1:].mean():.2f}. The MLP of layer 1 is all zeros.

A position is a point on each of 19 circles; no two of the {config["n_positions"]} positions agree better than {side_lobe:.2f} of a full match.
"""
    (folder / "README.md").write_text(card)
    print(card)
