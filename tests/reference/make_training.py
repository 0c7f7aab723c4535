"""Writes training-gpt2 and training-llama: a tiny model each, and what three training steps make of it, by definition.

The forward pass is reference_model.py's (NumPy, float64). Gradients are central differences of its loss, one parameter
at a time, so that nothing here knows how to differentiate. AdamW is written from its paper (Loshchilov & Hutter 2019).
    python3 make_training.py        (half a minute)
"""

import json
import math
import pathlib

import numpy as np

import make_models
import reference_model as reference

HERE = pathlib.Path(__file__).parent
SETTINGS = {"learning_rate": 1e-2, "final_learning_rate": 1e-3, "warmup_steps": 2, "schedule_steps": 5, "beta1": 0.9,
            "beta2": 0.95, "epsilon": 1e-4, "weight_decay": 0.1, "clip_norm": 0.5}
SEQUENCES, LENGTH, STEPS, DELTA = 2, 5, 3, 1e-5


def loss(config, weights, tokens, targets):
    total, counted = 0.0, 0
    for ids, wanted in zip(tokens, targets):
        logits = reference.forward(config, weights, list(map(int, ids)))["logits"]
        for row, target in zip(logits, wanted):
            if target >= 0:
                total += np.log(np.exp(row - row.max()).sum()) + row.max() - row[target]
                counted += 1
    return total / counted


def gradients(config, weights, tokens, targets):
    out = {}
    for name, value in weights.items():
        gradient = np.zeros_like(value)
        for place in np.ndindex(value.shape):
            here = value[place]
            value[place] = here + DELTA
            up = loss(config, weights, tokens, targets)
            value[place] = here - DELTA
            gradient[place] = (up - loss(config, weights, tokens, targets)) / (2 * DELTA)
            value[place] = here
        out[name] = gradient
    return out


def rate(step):
    """Of step 0, 1, …: linear to the top, then half a cosine."""
    s = SETTINGS
    if step < s["warmup_steps"]:
        return s["learning_rate"] * (step + 1) / s["warmup_steps"]
    done = (step - s["warmup_steps"]) / (s["schedule_steps"] - s["warmup_steps"])
    return s["final_learning_rate"] + (s["learning_rate"] - s["final_learning_rate"]) * (1 + math.cos(math.pi * done)) / 2


def make(name, config, weights):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    stored = {key: np.asarray(value, "<f4") for key, value in weights.items()}
    weights = {key: value.astype(np.float64) for key, value in stored.items()}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    reference.write_safetensors(folder / "model.safetensors", stored, {"format": "pt"})

    random = np.random.default_rng(3)
    expected = {}
    first = {key: np.zeros_like(value) for key, value in weights.items()}
    second = {key: np.zeros_like(value) for key, value in weights.items()}
    for step in range(STEPS):
        tokens = random.integers(0, config["vocab_size"], (SEQUENCES, LENGTH))
        targets = random.integers(0, config["vocab_size"], (SEQUENCES, LENGTH))
        targets[step % SEQUENCES, step] = -1
        gradient = gradients(config, weights, tokens, targets)
        norm = math.sqrt(sum((g**2).sum() for g in gradient.values()))
        mark = f"step{step + 1}/"
        expected |= {mark + "tokens": tokens.astype("<i4"), mark + "targets": targets.astype("<i4")}
        expected[mark + "numbers"] = np.array([loss(config, weights, tokens, targets), norm, rate(step)], "<f4")
        clip = min(1.0, SETTINGS["clip_norm"] / norm)
        for key in weights:
            expected[mark + "gradient/" + key] = gradient[key].astype("<f4")
            g = gradient[key] * clip
            first[key] = SETTINGS["beta1"] * first[key] + (1 - SETTINGS["beta1"]) * g
            second[key] = SETTINGS["beta2"] * second[key] + (1 - SETTINGS["beta2"]) * g**2
            m = first[key] / (1 - SETTINGS["beta1"] ** (step + 1))
            v = second[key] / (1 - SETTINGS["beta2"] ** (step + 1))
            decay = SETTINGS["weight_decay"] if weights[key].ndim == 2 else 0
            weights[key] -= rate(step) * (m / (np.sqrt(v) + SETTINGS["epsilon"]) + decay * weights[key])
            expected[mark + "weights/" + key] = weights[key].astype("<f4")
        print(name, mark, expected[mark + "numbers"])
    reference.write_safetensors(folder / "expected.safetensors", expected)


def main():
    config = make_models.gpt2_config(n_embd=8, n_head=2, n_inner=12, n_positions=6, vocab_size=11)
    make("training-gpt2", config, make_models.gpt2_weights(config, 21, "transformer."))
    config = make_models.llama_config(hidden_size=8, num_attention_heads=4, num_key_value_heads=2, head_dim=4,
                                      intermediate_size=10, vocab_size=11, max_position_embeddings=6)
    make("training-llama", config, make_models.llama_weights(config, 22, "model."))


if __name__ == "__main__":
    main()
