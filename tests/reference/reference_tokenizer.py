"""What the tokenizers of make_tokenizers.py must do, written down in plain loops: train pairs, split words, merge one pair
at a time, cut out special tokens. Independent of Headscope and of every tokenizer library.

A token is (id, begin, end), counted in bytes of the text.
"""

import regex

GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_symbols():
    """GPT-2's printable stand-in for each byte."""
    table, extra = {}, 0
    for b in range(256):
        if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or 0xAE <= b <= 0xFF:
            table[b] = chr(b)
        else:
            table[b] = chr(0x100 + extra)
            extra += 1
    return table


BYTES = byte_symbols()


def merge_all(symbols, a, b):
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == (a, b):
            out.append(a + b)
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def train(words, count):
    """The `count` most frequent pairs, one after another (ties: the smaller pair)."""
    words, merges = [list(w) for w in words], []
    for _ in range(count):
        pairs = {}
        for w in words:
            for pair in zip(w, w[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        if not pairs:
            break
        a, b = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append((a, b))
        words = [merge_all(w, a, b) for w in words]
    return merges


def spell(word):
    return [BYTES[b] for b in word.encode()]


def bpe(symbols, rank):
    """Sennrich's loop. A symbol is (spelling, begin, end); `rank` gives a pair's place or None."""
    symbols = list(symbols)
    while True:
        best = None
        for i in range(len(symbols) - 1):
            r = rank(symbols[i][0], symbols[i + 1][0])
            if r is not None and (best is None or r < best[0]):
                best = (r, i)
        if best is None:
            return symbols
        i = best[1]
        left, right = symbols[i], symbols[i + 1]
        symbols[i : i + 2] = [(left[0] + right[0], left[1], right[2])]


class ByteLevel:
    """split: text -> words. Spans count bytes of the text that comes out of `normalize`."""

    def __init__(self, merges, split, first_id=0, ignore_merges=False, normalize=lambda t: t):
        spellings = [BYTES[b] for b in range(256)] + [a + b for a, b in merges]
        self.vocab = {s: first_id + i for i, s in enumerate(dict.fromkeys(spellings))}
        self.merges, self.split, self.ignore_merges, self.normalize = merges, split, ignore_merges, normalize
        self.ranks = {pair: i for i, pair in enumerate(merges)}

    def encode(self, text):
        at, tokens = 0, []
        for word in self.split(self.normalize(text)):
            symbols = spell(word)
            whole = "".join(symbols)
            if self.ignore_merges and whole in self.vocab:
                tokens.append((self.vocab[whole], at, at + len(symbols)))
            else:
                placed = [(s, at + i, at + i + 1) for i, s in enumerate(symbols)]
                tokens += [(self.vocab[s], b, e) for s, b, e in bpe(placed, lambda *p: self.ranks.get(p))]
            at += len(symbols)
        return tokens


class ByteFallback:
    """Llama 2: "▁" for a space and in front, characters merged by the rank of what they make, bytes for the rest."""

    def __init__(self, pieces):
        names = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + pieces
        self.vocab = {s: i for i, s in enumerate(names)}
        self.pieces, self.ranks = pieces, {s: i for i, s in enumerate(pieces)}

    def encode(self, text):
        if not text:
            return []
        symbols, at = [("▁", 0, 0)], 0
        for c in text:
            size = len(c.encode())
            symbols.append(("▁" if c == " " else c, at, at + size))
            at += size
        tokens = []
        for s, begin, end in bpe(symbols, lambda a, b: self.ranks.get(a + b)):
            if s in self.ranks:
                tokens.append((self.vocab[s], begin, end))
            else:
                raw = s.encode()
                tokens += [(self.vocab[f"<0x{b:02X}>"], begin + i, begin + i + 1) for i, b in enumerate(raw)]
        return tokens

    def merges(self):
        """Every way to make a piece of two others, in the order of the pieces (as converters of such models write it)."""
        out = []
        for piece in self.pieces:
            halves = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
            out += [h for h in halves if h[0] in self.ranks and h[1] in self.ranks]
        return out


class Metaspace:
    """ "▁" before every word that begins the text or follows a space; unknown characters are <unk>, side by side as one."""

    def __init__(self, pieces):
        self.vocab = {s: i for i, s in enumerate(["<unk>"] + pieces)}
        self.pieces, self.ranks = pieces, {s: i for i, s in enumerate(pieces)}

    def encode(self, text):
        if not text:
            return []
        symbols, at = [], 0
        if not text.startswith((" ", "▁")):
            symbols.append(("▁", 0, 0))
        for c in text:
            size = len(c.encode())
            symbols.append(("▁" if c == " " else c, at, at + size))
            at += size
        words = []
        for symbol in symbols:
            if symbol[0] == "▁" or not words:
                words.append([])
            words[-1].append(symbol)
        tokens = []
        for word in words:
            start = len(tokens)
            for s, begin, end in bpe(word, lambda a, b: self.ranks.get(a + b)):
                if s in self.ranks:
                    tokens.append((self.vocab[s], begin, end))
                elif len(tokens) > start and tokens[-1][0] == 0:
                    tokens[-1] = (0, tokens[-1][1], end)
                else:
                    tokens.append((0, begin, end))
        return tokens


def with_specials(encode, specials, text):
    """Specials are cut out first; what lies between is encoded by itself."""
    tokens, at = [], 0
    for part in regex.split("(" + "|".join(regex.escape(s) for s in specials) + ")", text):
        size = len(part.encode())
        tokens += (
            [(specials[part], at, at + size)]
            if part in specials
            else [(i, at + b, at + e) for i, b, e in encode(part)]
        )
        at += size
    return tokens
