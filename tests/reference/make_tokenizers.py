"""Writes tokenizers/: small tokenizers of every form that Headscope reads, and what each must make of some hard strings.

    python3 make_tokenizers.py            # rewrites the files; needs the package `regex`
    python3 make_tokenizers.py --check    # compares the expected ids with the packages tokenizers and sentencepiece

The vocabularies are trained here, on the text below, which was written for this script. The expected ids come from the
definitions in reference_tokenizer.py and from nothing else. Last --check: tokenizers 0.23.3 and sentencepiece 0.2.3
agree on every string.
"""

import argparse
import json
import pathlib
import random
import struct
import unicodedata

import regex

from reference_tokenizer import (
    GPT2_WORDS,
    LLAMA3_WORDS,
    ByteFallback,
    ByteLevel,
    Metaspace,
    spell,
    train,
    with_specials,
)

HERE = pathlib.Path(__file__).parent / "tokenizers"

TEXT = """
The lighthouse keeper counted the ships every evening. There were three on Monday, twelve on Tuesday and none at all on
Wednesday, because of the fog. She'd written every number down since 1987, and she wasn't going to stop now: "If I don't
count them, who will?" The lamp turned, the light went out over the water, and the water gave nothing back.

Her brother didn't believe in counting. He'd say that the sea can't be counted, that it's all one thing, and that they'll
never know what's in it. "You've got your numbers, I've got my nets." He mended the nets in the kitchen, in winter, where
it was warm, and he'd sing there; the songs were older than the lighthouse, and nobody knew who had made them.

One evening the numbers stopped making sense. There were thirteen ships, then 14, then 13 again, and the fourteenth was
not a ship. It was longer than a ship and lower in the water, and it did not answer the lamp. The keeper wrote "13 (14?)"
in the book. Her brother looked at it for a long time. "That's the one we don't sing about," he said, in the end.

    for ship in harbour:
        if ship.answers(lamp):
            count += 1

Née à Brest, la gardienne comptait aussi les étoiles; ihre Brüder zählten Fische. 東京の灯台も夜ごとに光る。
"""

STRINGS = [
    "",
    " ",
    "  ",
    "   x",
    "a",
    "A",
    "the",
    " the",
    "The lighthouse",
    "the lighthouse keeper counted the ships.",
    "She wasn't there; they'll know, I've said, he'd say it's WE'RE.",
    "'s't're've'm'll'd 'S'T",
    "don''t",
    "'",
    "Hello, world!",
    "There were 14 ships, then 13 again, 1987 and 100000.",
    "1234567890 12345678901",
    "½ ² Ⅷ ٣ 3rd",
    "for ship in harbour:\n    if ship.answers(lamp):\n\t\tcount += 1\n",
    "\n",
    "\n\n\n",
    " \n \n  \n",
    "\r\n\r\n",
    "\t",
    "a\u00a0b",
    "a\u180eb \u180e c",
    "\u0085x\u2028y\u2029 z\u3000w\u200bv\ufeff",
    "tabs\t\tand  two  spaces   three ",
    "trailing space ",
    "trailing spaces   ",
    "née à Brest",
    "e\u0301 vs é",
    "Brüder zählten Fische",
    "東京の灯台も夜ごとに光る。",
    "灯火 lamp 灯",
    "한국어",
    "Ελληνικά",
    "привет",
    "שלום עולם",
    "नमस्ते",
    "ﬁ ﬂ ß ẞ İ ı ſ K",
    "🙂",
    "👩‍👧‍👦 👍🏽",
    "\U0001f1eb\U0001f1f7!",
    "\x00\x01\x1b[0m\x7f",
    "a" * 200,
    "the" * 40,
    "she quoted zz, zzz",
    " " * 50 + "x",
    "thethethe the",
    "lighthouselighthouse",
    "Ġ Ġthe ▁ ▁the",
    "<|endoftext|>",
    " <|endoftext|> ",
    "the<|endoftext|>the",
    "<|endoftext|><|endoftext|>",
    "<s>the</s>",
    "<s> the",
    "<unk>",
    "<0x41>",
    "<0x0A>",
    "over-the-top_snake_case camelCase HTTPServer",
    '"quoted" (in brackets) [x] {y}',
    "...!!!???",
    "a,b;c:d",
    "\u0301leading mark",
    "\ufffd\ufffe\U0010ffff",
]


def more_strings():
    rng = random.Random(20240607)
    pool = [
        "the",
        " ",
        "  ",
        "ship",
        "'s",
        "\n",
        "é",
        "1",
        "22",
        "灯",
        "🙂",
        ".",
        "They'll",
        "keeper",
        "\t",
        "Q",
        "x",
        "▁",
    ]
    return ["".join(rng.choice(pool) for _ in range(rng.randint(1, 16))) for _ in range(40)]


STRINGS += more_strings()


# ---- files ----------------------------------------------------------------------------------------------------------


def write(folder, name, value):
    (HERE / folder).mkdir(parents=True, exist_ok=True)
    path = HERE / folder / name
    if isinstance(value, bytes):
        path.write_bytes(value)
    elif isinstance(value, str):
        path.write_text(value, encoding="utf-8", newline="\n")
    else:
        path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def write_cases(folder, encode, specials, spans=True):
    lines = []
    for text in STRINGS:
        tokens = encode(text)
        case = {"utf8": text.encode().hex(), "ids": [t[0] for t in tokens]}
        if spans:
            case["ends"] = [t[2] for t in tokens]  # a token begins where the one before it ends
            assert all(t[1] == (tokens[i - 1][2] if i else 0) for i, t in enumerate(tokens))
        special = [t[0] for t in with_specials(encode, specials, text)] if specials else case["ids"]
        if special != case["ids"]:
            case["ids_special"] = special
        lines.append(json.dumps(case, separators=(",", ":")))
    write(folder, "cases.jsonl", "\n".join(lines) + "\n")


def tokenizer_json(model, added, **steps):
    keys = dict.fromkeys(["normalizer", "pre_tokenizer", "post_processor", "decoder"]) | steps
    base = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
    }
    entries = [
        {
            "id": i,
            "content": c,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for c, i in added.items()
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": entries,
        **keys,
        "model": base | model,
    }


def sequence(kind, *steps):
    key = {"pre_tokenizer": "pretokenizers", "normalizer": "normalizers", "decoder": "decoders"}[kind]
    return {"type": "Sequence", key: list(steps)}


def byte_level(**options):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True} | options


def bos_template(token, i):
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {token: {"id": token, "ids": [i], "tokens": [token]}},
    }


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    """One protobuf field: int (varint), float (fixed 32) or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def sentencepiece_model(definition):
    """sentencepiece_model.proto: pieces = 1, trainer_spec = 2, normalizer_spec = 3."""
    kinds = {"<unk>": 2, "<s>": 3, "</s>": 3}
    out = b""
    for name in definition.vocab:
        kind = kinds.get(name, 6 if regex.fullmatch("<0x..>", name) else 1)
        score = -float(definition.ranks[name]) if name in definition.ranks else 0.0
        out += field(1, field(1, name) + field(2, score) + field(3, kind))
    trainer = field(3, 2) + field(4, len(definition.vocab)) + field(35, 1) + field(40, 0) + field(41, 1) + field(42, 2)
    normalizer = field(1, "identity") + field(3, 1) + field(4, 0) + field(5, 1)
    return out + field(2, trainer) + field(3, normalizer)


def pieces_of(words, merges, alphabet=None):
    """Characters of the words (or `alphabet`) and what the merges make of them."""
    characters = sorted(set("".join(words))) if alphabet is None else list(alphabet)
    return list(dict.fromkeys([a + b for a, b in merges] + characters))


def make():
    end = "<|endoftext|>"
    words = regex.findall(GPT2_WORDS, TEXT)
    merges = train([spell(w) for w in words], 220)

    gpt2 = ByteLevel(merges, lambda t: regex.findall(GPT2_WORDS, t))
    vocab = gpt2.vocab | {end: len(gpt2.vocab)}
    write("gpt2", "vocab.json", vocab)
    write("gpt2", "merges.txt", "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    write("gpt2", "special_tokens_map.json", {"bos_token": end, "eos_token": {"content": end}, "unk_token": end})
    write_cases("gpt2", gpt2.encode, {end: vocab[end]})
    strings = [f"{a} {b}" for a, b in merges]
    write(
        "gpt2-json",
        "tokenizer.json",
        tokenizer_json(
            {"vocab": vocab, "merges": strings},
            {end: vocab[end]},
            pre_tokenizer=byte_level(),
            decoder=byte_level(),
            post_processor=byte_level(trim_offsets=False),
        ),
    )
    write(
        "gpt2-json", "config.json", {"model_type": "gpt2", "bos_token_id": vocab[end], "eos_token_id": [vocab[end], 3]}
    )
    write_cases("gpt2-json", gpt2.encode, {end: vocab[end]})

    words3 = regex.findall(LLAMA3_WORDS, TEXT)
    merges3 = train([spell(w) for w in words3], 160)
    # Two words of the vocabulary that no merge leads to: only ignore_merges finds them.
    llama3 = ByteLevel(merges3, lambda t: regex.findall(LLAMA3_WORDS, t), ignore_merges=True)
    for word in ["Ġquoted", "zz"]:
        llama3.vocab[word] = len(llama3.vocab)
    special = {"<|begin_of_text|>": len(llama3.vocab), end: len(llama3.vocab) + 1}
    write(
        "llama3",
        "tokenizer.json",
        tokenizer_json(
            {"vocab": llama3.vocab, "merges": [list(m) for m in merges3], "ignore_merges": True},
            special,
            pre_tokenizer=sequence(
                "pre_tokenizer",
                {"type": "Split", "pattern": {"Regex": LLAMA3_WORDS}, "behavior": "Isolated", "invert": False},
                byte_level(use_regex=False),
            ),
            decoder=byte_level(),
            post_processor={
                "type": "Sequence",
                "processors": [
                    byte_level(trim_offsets=False),
                    bos_template("<|begin_of_text|>", special["<|begin_of_text|>"]),
                ],
            },
        ),
    )
    write("llama3", "tokenizer_config.json", {"eos_token": end, "tokenizer_class": "PreTrainedTokenizerFast"})
    write_cases("llama3", llama3.encode, special)

    def digits_first(text):
        return [w for part in regex.split(r"(\p{N})", text) if part for w in regex.findall(GPT2_WORDS, part)]

    smol = ByteLevel(merges[:120], digits_first, first_id=1, normalize=lambda t: unicodedata.normalize("NFC", t))
    write(
        "smol",
        "tokenizer.json",
        tokenizer_json(
            {"vocab": {end: 0} | smol.vocab, "merges": strings[:120]},
            {end: 0},
            normalizer={"type": "NFC"},
            pre_tokenizer=sequence("pre_tokenizer", {"type": "Digits", "individual_digits": True}, byte_level()),
            decoder=byte_level(),
        ),
    )
    write("smol", "tokenizer_config.json", {"bos_token": end, "eos_token": end, "add_bos_token": False})
    write_cases("smol", smol.encode, {end: 0}, spans=False)

    marked = ["▁" + w for w in TEXT.split()]
    llama2 = ByteFallback(pieces_of(marked, train(marked, 150)))
    special = {s: llama2.vocab[s] for s in ["<unk>", "<s>", "</s>"]}
    model = {
        "vocab": llama2.vocab,
        "merges": [f"{a} {b}" for a, b in llama2.merges()],
        "unk_token": "<unk>",
        "fuse_unk": True,
        "byte_fallback": True,
    }
    space = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    write(
        "llama2",
        "tokenizer.json",
        tokenizer_json(
            model,
            special,
            normalizer=sequence(
                "normalizer",
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ),
            decoder=sequence(
                "decoder",
                space,
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ),
            post_processor=bos_template("<s>", 1),
        ),
    )
    write("llama2", "tokenizer_config.json", {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "</s>"})
    write_cases("llama2", llama2.encode, special)
    write("sentencepiece", "tokenizer.model", sentencepiece_model(llama2))
    write_cases("sentencepiece", llama2.encode, special)

    common = ["▁" + w for w in TEXT.split() if w.isascii()]
    meta = Metaspace(pieces_of(common, train(common, 90)))
    halves = [
        (p[:i], p[i:]) for p in meta.pieces for i in range(1, len(p)) if p[:i] in meta.ranks and p[i:] in meta.ranks
    ]
    write(
        "metaspace",
        "tokenizer.json",
        tokenizer_json(
            {"vocab": meta.vocab, "merges": [list(h) for h in halves], "unk_token": "<unk>", "fuse_unk": True},
            {"<unk>": 0},
            pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
            decoder={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        ),
    )
    write_cases("metaspace", meta.encode, {})

    write("letters", "vocab.json", {"b": 0, "a": 1, " ": 2, "é": 3, "灯": 4})


# ---- other people's implementations ---------------------------------------------------------------------------------


def check():
    import sentencepiece
    import tokenizers

    for folder in sorted(p.parent for p in HERE.glob("*/cases.jsonl")):
        cases = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
        texts = [bytes.fromhex(case["utf8"]).decode() for case in cases]
        if (folder / "tokenizer.json").exists():
            other = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            encode = lambda t: other.encode(t, add_special_tokens=False).ids
            other.encode_special_tokens = True
            found = [encode(t) for t in texts]
            other.encode_special_tokens = False
            special = [encode(t) for t in texts]
        elif (folder / "tokenizer.model").exists():
            other = sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model"))
            found, special = [other.encode(t) for t in texts], None
        else:
            continue  # gpt2: gpt2-json holds the same
        for i, case in enumerate(cases):
            assert found[i] == case["ids"], (folder.name, texts[i], found[i], case["ids"])
            if special and folder.name != "metaspace":
                expected = case.get("ids_special", case["ids"])
                assert special[i] == expected, (folder.name, texts[i], special[i], expected)
        print(folder.name, len(cases), "strings agree")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    check() if parser.parse_args().check else make()
