"""Writes examples/induction: a GPT-2 of two layers and four heads whose every weight is put there by hand, none trained.

    python3 make_induction.py       # deterministic; measures the result in float64 and writes it into induction/README.md

It reads bytes, and finishes a text that repeats itself by induction (Olsson et al., In-context Learning and Induction
Heads, 2022). How it works:

* A residual stream is 160 numbers, divided into groups that each hold one thing (GROUPS). A group of m + 1 numbers holds a
  vector of m as a point of the hyperplane whose numbers sum to zero, so LayerNorm's centring leaves it alone; every group
  has a fixed length, so LayerNorm's division is the same everywhere. LayerNorm does all it does in any GPT-2, and the
  weights are written for what comes out of it.
* A byte is one of 257 unit vectors in 32 dimensions with inner products 0 and ±1/4: signs of Tr(a x³ + b x) over the field of
  32 elements (Gold 1968). Bytes that go together in English are orthogonal. A second code of 7 signs breaks ties.
* A position is 19 turning pairs (cos ωt, sin ωt). Turning them by −ω finds the position before, whatever t is.
* Layer 0's MLP writes one huge number at the first position, as trained models do (Sun et al., Massive Activations in Large
  Language Models, 2024). After LayerNorm nothing else is left of that position: its value vectors are nearly zero, and a
  head that has nothing to say can rest there (a sink).
"""

import json
import math
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "reference"))
import make_models  # noqa: E402
import reference_model as reference  # noqa: E402

LAYERS, HEADS, D_HEAD, CONTEXT, VOCAB, D_MLP = 2, 4, 40, 192, 257, 8
D = HEADS * D_HEAD
CODE, TIE, PAIRS = 32, 7, 19
MASSIVE = 300.0

# name → numbers held. "flags": first, rest, sine and cosine of an angle that grows with the position.
GROUPS = {"token": CODE, "token_tie": TIE, "before": CODE, "before_tie": TIE, "two_before_tie": TIE,
          "position": 2 * PAIRS, "flags": 4}

# ---- layout of the residual stream -----------------------------------------------------------------------------------


def hyperplane(m):
    """(m + 1, m): an isometry onto the vectors that sum to zero; all but the last row nearly the identity."""
    beta = 1 / math.sqrt(m + 1)
    return np.vstack([np.eye(m) - (1 - beta) / m, np.full((1, m), -beta)])


def layout():
    groups, begin = {}, 0
    for name, m in GROUPS.items():
        groups[name] = np.zeros((D, m))
        groups[name][begin : begin + m + 1] = hyperplane(m)
        begin += m + 1
    massive = np.zeros((D, 1))
    massive[begin] = 1
    assert begin + 1 <= D
    return groups, massive


# ---- codes -----------------------------------------------------------------------------------------------------------


def field_multiply(a, b):
    """In GF(32), modulo x⁵ + x² + 1."""
    product = 0
    for bit in range(5):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(8, 4, -1):
        if product >> bit & 1:
            product ^= 0b100101 << (bit - 5)
    return product


def trace(x):
    total, power = 0, x
    for _ in range(5):
        total ^= power
        power = field_multiply(power, power)
    return total & 1


def gold_code(index):
    """Unit vector number `index`: 32 orthogonal ones for each a; |inner product| ≤ 1/4 between any two."""
    a, b = divmod(index, 32)
    cube = lambda x: field_multiply(x, field_multiply(x, x))
    bits = [trace(field_multiply(a, cube(x))) ^ trace(field_multiply(b, x)) for x in range(32)]
    return (1 - 2 * np.array(bits)) / math.sqrt(32)


def tie_code(index):
    """64 sign vectors of even weight, inner products at most 3/7; later ones repeat."""
    bits = [index % 64 >> i & 1 for i in range(6)]
    return (1 - 2 * np.array([*bits, sum(bits) % 2])) / math.sqrt(7)


def token_codes():
    together = "abcdefghijklmnopqrstuvwxyz ,.'-\n" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ!?\":;(" + "0123456789)"
    order = make_models.byte_ids(together)
    order += [i for i in range(VOCAB) if i not in set(order)]
    codes, ties = np.zeros((VOCAB, CODE)), np.zeros((VOCAB, TIE))
    for place, token in enumerate(order):
        codes[token], ties[token] = gold_code(place), tie_code(place)
    return codes, ties


def position_frequencies():
    """Of many random choices the one whose Σ cos(ωΔ) stays smallest away from Δ = 0."""
    random, best = np.random.default_rng(0), (math.inf, None)
    distance = np.arange(1, CONTEXT)
    for _ in range(4000):
        omega = random.uniform(0.03, math.pi, PAIRS)
        best = min(best, (np.cos(np.outer(distance, omega)).mean(1).max(), tuple(omega)))
    return np.array(best[1]), best[0]


def turn(omega, by):
    """(2·pairs, 2·pairs): position t → position t − by."""
    matrix = np.zeros((2 * PAIRS, 2 * PAIRS))
    for i, w in enumerate(omega):
        c, s = math.cos(w * by), math.sin(w * by)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]
    return matrix


# ---- weights ---------------------------------------------------------------------------------------------------------


class Head:
    """Rows of query, key and value are what the head computes from the normalised stream; `write` is what it adds."""

    def __init__(self):
        self.query, self.key, self.value = (np.zeros((D_HEAD, D)) for _ in range(3))
        self.query_bias = np.zeros(D_HEAD)
        self.write = np.zeros((D, D_HEAD))
        self.used, self.carried = 0, 0

    def match(self, query, key, strength):
        """Adds strength · ⟨query read, key read⟩ to the score. Both (numbers, D)."""
        rows = slice(self.used, self.used + len(query))
        self.query[rows], self.key[rows] = strength * math.sqrt(D_HEAD) * query, key
        self.used += len(query)

    def prefer(self, key, strength):
        """Adds strength · (key read) whatever the query is. Key (1, D)."""
        self.query_bias[self.used], self.key[self.used] = strength * math.sqrt(D_HEAD), key[0]
        self.used += 1

    def carry(self, value, write):
        """Copies what `value` (numbers, D) reads at the key into the columns of `write` (D, numbers) at the query."""
        rows = slice(self.carried, self.carried + len(value))
        self.value[rows], self.write[:, rows] = value, write
        self.carried += len(value)


def build():
    g, massive = layout()
    codes, ties = token_codes()
    omega, side_lobe = position_frequencies()
    time = np.arange(CONTEXT)
    angle = (2 * time / (CONTEXT - 1) - 1) * math.pi / 4
    pairs = np.stack([np.cos(np.outer(time, omega)), np.sin(np.outer(time, omega))], -1).reshape(CONTEXT, -1)
    first = (time == 0).astype(float)
    flags = np.stack([first, 1 - first, np.sin(angle), np.cos(angle)], 1)
    wte = codes @ g["token"].T + ties @ g["token_tie"].T
    wpe = pairs / math.sqrt(PAIRS) @ g["position"].T + flags @ g["flags"].T

    # Squared length of the stream: token, tie, position, first/rest, angle = 5; after layer 0 three copies more = 8.
    scale = [math.sqrt(D / 5), math.sqrt(D / 8)]
    reads = [{name: matrix.T / s for name, matrix in g.items()} for s in scale]
    flag = [{"first": r["flags"][0:1], "time": r["flags"][2:3]} for r in reads]
    per_position = math.sin(math.pi / 4) * 2 / (CONTEXT - 1)  # mean growth of the sine from one position to the next
    massive_read = massive.T / math.sqrt(D)                   # 1 at the first position, 0 elsewhere

    def previous(by, strength):
        head, r = Head(), reads[0]
        head.match(turn(omega, by) @ r["position"], r["position"], strength)
        head.prefer(flag[0]["first"], 0.45 * strength)         # where there is no such position
        return head

    r = reads[0]
    one_before = previous(1, 36)
    one_before.carry(r["token"], g["before"])
    one_before.carry(r["token_tie"], g["before_tie"])
    two_before = previous(2, 36)
    two_before.carry(r["token_tie"], g["two_before_tie"])
    copies = Head()
    copies.match(r["token"], r["token"], 80)
    copies.prefer(flag[0]["time"], -0.28 / per_position)
    word = Head()
    space = codes[make_models.byte_ids(" ")[0]]
    word.prefer(space[None] @ r["token"], 26)
    word.prefer(flag[0]["time"], 0.7 / per_position)
    word.prefer(flag[0]["first"], 18)

    r = reads[1]
    induction = Head()
    induction.match(r["token"], r["before"], 28)
    induction.match(r["before_tie"], r["two_before_tie"], 9)
    induction.prefer(massive_read, 18)
    induction.carry(r["token"], 2.5 * g["token"])
    current = Head()
    current.match(r["position"], r["position"], 30)
    current.carry(r["token"], -g["token"])
    mean = Head()
    mean.carry(r["token"], 2.5 * g["token"])
    sink = Head()
    sink.prefer(massive_read, 16)
    sink.carry(r["token"], g["token"])

    w = {"wte.weight": wte, "wpe.weight": wpe}
    for i, heads in enumerate([[one_before, two_before, copies, word], [induction, current, mean, sink]]):
        h = f"h.{i}."
        stack = lambda part: np.concatenate([getattr(head, part) for head in heads], 0).T
        c_attn = np.concatenate([stack("query"), stack("key"), stack("value")], 1)
        bias = np.concatenate([head.query_bias for head in heads] + [np.zeros(2 * D)])
        c_proj = np.concatenate([head.write.T for head in heads], 0)
        w |= {h + "ln_1.weight": np.ones(D), h + "ln_1.bias": np.zeros(D)}
        w |= {h + "attn.c_attn.weight": c_attn, h + "attn.c_attn.bias": bias}
        w |= {h + "attn.c_proj.weight": c_proj, h + "attn.c_proj.bias": np.zeros(D)}
        w |= {h + "ln_2.weight": np.ones(D), h + "ln_2.bias": np.zeros(D)}
        w |= {h + "mlp.c_fc.weight": np.zeros((D, D_MLP)), h + "mlp.c_fc.bias": np.zeros(D_MLP)}
        w |= {h + "mlp.c_proj.weight": np.zeros((D_MLP, D)), h + "mlp.c_proj.bias": np.zeros(D)}
    # One neuron: +10 where "first" is set, −10 (GELU: nothing) elsewhere.
    w["h.0.mlp.c_fc.weight"][:, 0] = 20 * reads[1]["flags"][0]
    w["h.0.mlp.c_fc.bias"][0] = -10
    w["h.0.mlp.c_proj.weight"][0] = MASSIVE / 10 * massive[:, 0]
    # Only the token group speaks to the vocabulary.
    gain = np.zeros(D)
    gain[: CODE + 1] = 1.3
    w |= {"ln_f.weight": gain, "ln_f.bias": np.zeros(D)}
    return {"transformer." + name: value for name, value in w.items()}, side_lobe


CONFIG = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new", "n_embd": D,
    "n_head": HEADS, "n_inner": D_MLP, "n_layer": LAYERS, "n_positions": CONTEXT, "vocab_size": VOCAB,
    "layer_norm_epsilon": 1e-5, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False, "tie_word_embeddings": True, "bos_token_id": 256, "eos_token_id": 256,
}


def main():
    folder = HERE / "induction"
    folder.mkdir(exist_ok=True)
    weights, side_lobe = build()
    file = {name: value.astype("<f2") for name, value in weights.items()}
    reference.write_safetensors(folder / "model.safetensors", file, {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    make_models.write_byte_vocabulary(folder)
    import describe_induction

    describe_induction.write_card(folder, (HERE / "induction.txt").read_text().rstrip("\n"), side_lobe)


if __name__ == "__main__":
    main()
