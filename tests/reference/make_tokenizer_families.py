"""Writes tokenizer-families/: a small tokenizer.json with the rules of each published family, and what it makes of hard
strings.

    python3 make_tokenizer_families.py                    # trains all anew and rewrites the files
    python3 make_tokenizer_families.py --only bert,t5     # these alone
    python3 make_tokenizer_families.py --many 10000 DIR   # more strings, for the tokenizers as they are, under DIR

Needs the packages tokenizers and sentencepiece. The rules (normalizer, pre_tokenizer, post_processor, decoder, options
of the model, kinds of added tokens) are those of the families' published files; vocabularies are trained here on the text
of make_tokenizers.py and some lines in other scripts. tokenizers 0.23.3 defines the expected ids, and the text that they
decode to where it is not the text itself. The test reads a folder made with --many where HEADSCOPE_TOKENIZER_CASES names
one.
"""

import argparse
import base64
import json
import pathlib
import random
import tempfile
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as pre

from make_tokenizers import STRINGS, TEXT

HERE = pathlib.Path(__file__).parent / "tokenizer-families"
LINES = TEXT.splitlines() + [
    "Die Straße, die Häuser und zwölf Brüder. L’été, où ça ? ¿Qué pasó en España, señor?",
    "Привет, мир! Корабли считали каждый вечер. Ελληνικά γράμματα και αριθμοί 12345.",
    "שלום עולם, كانت السفن ثلاث سفن يوم الاثنين. नमस्ते दुनिया, जहाज़ गिने गए।",
    "灯台守は毎晩船を数えた。三隻、十二隻。 船は全部で１４隻です。 한국어 문장도 하나 있습니다.",
    "def count(ships):\n    return sum(1 for s in ships if s.answers(lamp))\n\n\treturn None  # 3.14159, 1000000",
]

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK_LETTERS = (
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕ"
    r"ℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)
DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"


def split(pattern, behavior="isolated", invert=False):
    return pre.Split(Regex(pattern), behavior, invert)


def byte_level(use_regex=False, add_prefix_space=False):
    return pre.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)


def special(text, **flags):
    return AddedToken(text, special=True, normalized=False, **flags)


def template(before, after, *names):
    single = " ".join([*before, "$A", *after])
    return lambda t: processors.TemplateProcessing(single, None, [(n, t.token_to_id(n)) for n in [*before, *after]])


def train_bytes(tokenizer, size, specials):
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, show_progress=False, initial_alphabet=pre.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(LINES * 2, trainer)


def bytes_bpe(pre_tokenizer, normalizer=None, post=None, added=(), specials=("<|endoftext|>",), size=420, **options):
    """Byte-level BPE: nearly every family of decoders."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    train_bytes(tokenizer, size, [special(s) for s in specials])
    return finish(tokenizer, post, added, options)


def piece_bpe(normalizer, pre_tokenizer, decoder, post=None, added=(), specials=("<unk>", "<s>", "</s>"), **options):
    """BPE of characters with bytes for the others: Llama 2, Mistral, Phi 3, Gemma."""
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if normalizer:
        tokenizer.normalizer = normalizer
    words = tokenizers.Tokenizer(models.BPE())  # the published vocabularies were trained on words
    words.normalizer = normalizers.Replace(" ", "▁")
    words.pre_tokenizer = split("▁", "merged_with_next")
    names = [special(s) for s in [*specials, *(f"<0x{i:02X}>" for i in range(256))]]
    words.train_from_iterator(
        [" " + line for line in LINES], trainers.BpeTrainer(vocab_size=640, special_tokens=names, show_progress=False)
    )
    model = json.loads(words.to_str())["model"]
    spec = json.loads(tokenizer.to_str())
    spec["model"] |= {"vocab": model["vocab"], "merges": model["merges"]}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(spec))
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens([special(s) for s in specials])
    return finish(tokenizer, post, added, options)


def unigram(normalizer, pre_tokenizer, post=None, added=(), specials=("<pad>", "</s>", "<unk>"), decoder=None, **options):
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder or decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=[special(s) for s in specials], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(LINES[:-2], trainer)
    return finish(tokenizer, post, added, options)


def word_piece(normalizer, pre_tokenizer, added=(), **options):
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    names = [special(s) for s in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]]
    tokenizer.train_from_iterator(
        LINES[:-2], trainers.WordPieceTrainer(vocab_size=420, special_tokens=names, show_progress=False)
    )
    post = lambda t: processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    return finish(tokenizer, post, added, options)


def finish(tokenizer, post, added, options):
    for token in added:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    if post:
        tokenizer.post_processor = post(tokenizer) if not isinstance(post, processors.PostProcessor) else post
    spec = json.loads(tokenizer.to_str())
    spec["model"] |= options
    return tokenizers.Tokenizer.from_str(json.dumps(spec))


def charsmap(rules):
    """SentencePiece's own compiled form of some rules: characters and what becomes of them."""
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        points = lambda text: " ".join(f"{ord(c):X}" for c in text)
        (folder / "rules.tsv").write_text("".join(f"{points(a)}\t{points(b)}\n" for a, b in rules.items()))
        (folder / "text").write_text("\n".join(LINES))
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "text"),
            model_prefix=str(folder / "m"),
            vocab_size=300,
            normalization_rule_tsv=str(folder / "rules.tsv"),
            minloglevel=2,
        )
        spec = fields((folder / "m.model").read_bytes())[3][-1]
        return fields(spec)[2][-1]


def fields(message):
    """A protobuf message's fields by number, values as they stand."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        size = varint() if kind in (0, 2) else {5: 4, 1: 8}[kind]
        if kind:
            found.setdefault(key >> 3, []).append(message[at : at + size])
            at += size
    return found


def nfkc_like():
    rules = {chr(c): unicodedata.normalize("NFKC", chr(c)) for c in [*range(0xFF01, 0xFF5F), *range(0xFB00, 0xFB05)]}
    rules |= {c: unicodedata.normalize("NFKC", c) for c in "²³½①②ªﷺ℃㌔Å\u3000\u00a0"}
    rules |= {a + m: unicodedata.normalize("NFC", a + m) for a in "aeiouAEO" for m in "\u0301\u0308\u0300"}
    rules = {a: b for a, b in rules.items() if a != b}
    return rules | {c: " " for c in "\t\n\r\u200b\u2028"} | {c: "" for c in "\x01\x02\x7f\xad"}


def precompiled():
    return normalizers.Precompiled(charsmap(nfkc_like()))


def metaspace(scheme="always", cut=True):
    return pre.Metaspace(replacement="▁", prepend_scheme=scheme, split=cut)


SPACES = [AddedToken(" " * n, normalized=True) for n in (8, 4, 2)] + [AddedToken("\t\t", normalized=True)]
PIECES = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
BOS = template(["<s>"], [])
LLAMA3_POST = lambda t: processors.Sequence(
    [processors.ByteLevel(trim_offsets=False), template(["<|begin_of_text|>"], [])(t)]
)

FAMILIES = {
    "gpt_neox": lambda: bytes_bpe(byte_level(True), normalizers.NFC(), added=[special("<|padding|>"), *SPACES]),
    "llama3": lambda: bytes_bpe(
        pre.Sequence([split(LLAMA3), byte_level()]),
        post=LLAMA3_POST,
        specials=["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"],
        ignore_merges=True,
    ),
    "qwen2": lambda: bytes_bpe(
        pre.Sequence([split(QWEN2), byte_level()]),
        normalizers.NFC(),
        processors.ByteLevel(trim_offsets=False),
        [special("<|im_start|>"), special("<|im_end|>"), AddedToken("<tool_call>", normalized=False), AddedToken("<think>", normalized=False)],
    ),
    "gpt_oss": lambda: bytes_bpe(
        pre.Sequence([split(O200K, "removed", True), byte_level()]),
        added=[special("<|start|>"), special("<|message|>")],
        ignore_merges=True,
    ),
    "gemma": lambda: piece_bpe(
        normalizers.Replace(" ", "▁"),
        pre.Split(" ", "merged_with_previous"),
        decoders.Sequence(PIECES),
        template(["<bos>"], []),
        [AddedToken(s, normalized=False) for s in ["\n\n", "\n\n\n", "▁▁", "▁▁▁", "\t\t", "<table>", "<start_of_image>"]],
        ["<pad>", "<eos>", "<bos>", "<unk>"],
    ),
    "phi3": lambda: piece_bpe(
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        None,
        decoders.Sequence([*PIECES, decoders.Strip(" ", 1, 0)]),
        BOS,
        [special("<|assistant|>", rstrip=True), special("<|user|>", rstrip=True), AddedToken("</s>", rstrip=True, normalized=False)],
    ),
    "mistral": lambda: piece_bpe(
        None, metaspace("first", False), decoders.Sequence([*PIECES, decoders.Strip(" ", 1, 0)]), BOS, [special("[INST]")]
    ),
    "deepseek": lambda: bytes_bpe(
        pre.Sequence(
            [
                split("[\r\n]"),
                split(DEEPSEEK_LETTERS),
                split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
                split(r"\s+$"),
                split("[一-龥ࠀ-一가-퟿]+"),
                pre.Digits(individual_digits=True),
                byte_level(),
            ]
        ),
        added=[AddedToken("ø", normalized=True), AddedToken("<｜User｜>", normalized=True)],
        specials=["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
        post=template(["<｜begin▁of▁sentence｜>"], []),
    ),
    "deepseek3": lambda: bytes_bpe(
        pre.Sequence([split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3), byte_level()]),
        normalizers.Sequence([]),
        specials=["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
        post=template(["<｜begin▁of▁sentence｜>"], []),
    ),
    "olmo2": lambda: bytes_bpe(
        pre.Sequence([split(LLAMA3, "removed", True), byte_level()]),
        added=[special("<|im_start|>", lstrip=True, rstrip=True), AddedToken("|||IP_ADDRESS|||", normalized=True)],
    ),
    "falcon": lambda: bytes_bpe(
        pre.Sequence(
            [pre.Punctuation("contiguous"), byte_level(True), pre.Digits(False), split("[0-9][0-9][0-9]")]
        ),
        added=[special(">>TITLE<<"), special(">>ABSTRACT<<")],
    ),
    "starcoder": lambda: bytes_bpe(
        pre.Sequence([pre.Digits(individual_digits=True), byte_level(True)]), added=[special("<fim_prefix>")]
    ),
    "cohere": lambda: bytes_bpe(
        pre.Sequence([pre.Digits(individual_digits=True), byte_level(True)]),
        normalizers.NFC(),
        template(["<BOS_TOKEN>"], ["<|END_OF_TURN_TOKEN|>", "<EOS_TOKEN>"]),
        specials=["<BOS_TOKEN>", "<EOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"],
    ),
    "bloom": lambda: bytes_bpe(pre.Sequence([split(BLOOM), byte_level()]), specials=["<unk>", "<s>", "</s>", "<pad>"]),
    "phi": lambda: bytes_bpe(byte_level(True), added=SPACES),
    "roberta": lambda: bytes_bpe(
        byte_level(True),
        post=lambda t: processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>"))),
        specials=["<s>", "<pad>", "</s>", "<unk>"],
        added=[special("<mask>", lstrip=True)],
    ),
    "t5": lambda: unigram(
        precompiled(),
        pre.Sequence([pre.WhitespaceSplit(), metaspace()]),
        template([], ["</s>"]),
        [special("<extra_id_0>"), special("<extra_id_1>", lstrip=True, rstrip=True)],
    ),
    "xlm_roberta": lambda: unigram(
        normalizers.Sequence([precompiled(), normalizers.Replace(Regex(" {2,}"), " ")]),
        metaspace(),
        template(["<s>"], ["</s>"]),
        [special("<mask>", lstrip=True)],
        ["<s>", "<pad>", "</s>", "<unk>"],
    ),
    "albert": lambda: unigram(
        normalizers.Sequence(
            [
                normalizers.Replace("``", '"'),
                normalizers.Replace("''", '"'),
                normalizers.NFKD(),
                normalizers.StripAccents(),
                normalizers.Lowercase(),
                normalizers.Replace(Regex(" {2,}"), " "),
            ]
        ),
        metaspace(),
        template(["[CLS]"], ["[SEP]"]),
        specials=["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
    ),
    "unigram_bytes": lambda: unigram(
        normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip()]),
        metaspace("first", False),
        specials=["<unk>", *(f"<0x{i:02X}>" for i in range(256))],
        decoder=decoders.Sequence([*PIECES, decoders.Strip(" ", 1, 0)]),
        byte_fallback=True,
    ),
    "bert": lambda: word_piece(normalizers.BertNormalizer(), pre.BertPreTokenizer()),
    "bert_cased": lambda: word_piece(
        normalizers.BertNormalizer(lowercase=False),
        pre.BertPreTokenizer(),
        [AddedToken("lighthouse", single_word=True), AddedToken("Q&A")],
        max_input_chars_per_word=12,
    ),
    "words": lambda: word_piece(
        normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip()]),
        pre.Sequence([pre.Whitespace(), pre.CharDelimiterSplit("_"), pre.Digits()]),
    ),
    # Codes of languages in the text: the first stands in front of every one.
    "mbart50": lambda: unigram(
        precompiled(),
        metaspace(),
        template(["en_XX"], ["</s>"]),
        [special("<mask>", lstrip=True)],
        ["<s>", "<pad>", "</s>", "<unk>", "en_XX", "de_DE", "zh_CN"],
    ),
    "nllb": lambda: piece_bpe(
        precompiled(),
        metaspace(),
        decoders.Metaspace(prepend_scheme="always"),
        template(["eng_Latn"], ["</s>"]),
        [special("eng_Latn"), special("deu_Latn"), special("<mask>", lstrip=True)],
        ["<s>", "<pad>", "</s>", "<unk>", "eng_Latn"],
    ),
}

NASTY = [
    *STRINGS,
    *["\r", "a\r\nb\r\n\r\n c", " \t \n\t  x", "x  \n  ", "\x0b\x0c\x1c\x85", "\u200b\u200c\u200d\u2060\ufeff", "\xad",
    "¯", "´ab", "##)n't0##", "ᑙအ಄؉ᧉ", "½¯ ¨",
],
    *["e\u0301\u0316\u0301", "\u0301", "\u0327\u0301 \u0308x", "a\u0308\u0323", "ą́", "①\u0301 ²\u0308", "각\u1100\u1161\u11a8"],
    *["👩‍🚀👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "☎️1️⃣", "ᾳ ῼ Ǆ ǅ", "𝔘𝔫𝔦 𝒳", "ﷺ ㌔ ℃", "½⅓ ²³ ⅷ Ⅻ ①", "٣٤٥ १२३ １２３ 一二三 1٣2²3"],
    *["العربية مع أرقام ١٢٣", "هٰذَا", "การทดสอบ", "தமிழ்", "বাংলা", "ქართული", "Հայերեն", "ᚠᛇᚻ", "𐍈", "\U000e0001"],
    *["1", "12", "123", "1234", "12345", "3.14159e-10", "1,000,000.00", "v1.2.3-rc4", "0x1F", "2²", "a1b22c333d4444"],
    *["don't DON'T Don’t 'S 'll'LL", "it's'it", "’s", "I'M 'mad'", "\u017f's 'ſ", "'\u017f", "K k"],
    *["...", "?!?!", "--->", "a--b", "(x[y]{z})", "_a_ __b__", "http://a.b/c?d=e&f#g", "C:\\x\\y", "¡¿«»„“”", "，。！？、；：", "$€£+<=>^`|~", "``quoted''"],
    *["Straße STRASSE İSTANBUL ıI", "ΣΑΣ Σας ς", "Ÿ ÿ", "ǰ ŉ ẖ", "Å Å Å", "ff ﬀ ﬃ"],
    *["a" * 300, "ab" * 150, "灯" * 100, "é" * 101, " " * 33, "\n" * 9, "=" * 70, "the " * 30, "lighthouse" * 11],
    *["\x00a\x00", "\x01\x02", "\x1b[31m", "\x7f\x80\x9f", "\ufffd", "\ufdd0", "\ue000x", "\U0010fffd"],
    *["▁", "▁▁a", " ▁ ", "a▁b", "Ġ", "Ċĉ", "##ing ##", "<0x41><0x>", "[UNK] [CLS]a[SEP]", "<pad><s></s><unk>", "[MASK]ed"],
    *["lighthouse", "lighthouses", " lighthouse ", "the_lighthouse", "Q&A", "q&a", "Q&As", "\u00a0lighthouse\u2003x"],
]
POOL = [
    *"abceimnstxyzQKT 0123456789.,;:!?'\"-_()[]{}<>|/\\@#$%^&*+=~`",
    *[" "] * 8, *["\n", "\r\n", "\t", "  ", "    ", "\u00a0", "\u3000", "\u2009", "\u2028", "\x85"],
    *"éüßñçøÆŒſİıǅµªº¼²³¹½٣५１①Ⅷ灯台船数가한の ー、。！？“”’…—«»₹€→∑🙂👍🏽❤️☎",
    *["\u0301", "\u0308", "\u0327", "\u0323", "\u200d", "\u200c", "\ufe0f", "\u20e3", "\u0e33", "\u093f", "\u064b", "\ufeff", "\xad"],
    *["👩‍🚀", "🇩🇪", "e\u0301", "각", "שלום", "كانت", "नमस्ते", "Привет", "Ελλη", "\x00", "\x01", "\x1b", "\x7f", "\ufffd", "\ue000"],
    *["the", " the", " ship", "The", "'s", "'LL", "n't", "lighthouse", "counted", "1987", "12345", "HTTPServer", "getX", "▁", "▁▁", "##", "Ġ", "<0x0A>", "``", "''"],
]  # fmt: skip


def strings(count, names, seed):
    rng = random.Random(seed)
    pool = POOL + names * max(1, len(POOL) // (6 * len(names) or 1))
    words = TEXT.split(" ")
    made = []
    while len(made) < count:
        kind = rng.random()
        if kind < 0.7:
            text = "".join(rng.choice(pool) for _ in range(rng.randint(1, 24)))
        elif kind < 0.85:
            text = " ".join(rng.choice(words if rng.random() < 0.8 else pool) for _ in range(rng.randint(2, 12)))
        elif kind < 0.95:
            low, high = rng.choice([(0, 0x7F), (0x80, 0x24F), (0x250, 0x2000), (0x2000, 0x3400), (0x3400, 0x11000), (0x10000, 0x1FA00)])
            text = "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 10)))
        else:
            text = rng.choice(pool) * rng.randint(2, 40) + rng.choice(pool) * rng.randint(0, 5)
        if all(0xD800 > ord(c) or ord(c) > 0xDFFF for c in text) and known(text):
            made.append(text)
    return made


def known(text):
    """Whether libraries agree on what its characters are: later ones than Unicode 13's are not in all of them (and what is
    punctuation or a mark, the tokenizers package tells by Unicode 8)."""
    return all(unicodedata.category(c) != "Cn" or ord(c) in (0xFDD0, 0xFFFE, 0x10FFFF) for c in text) and not any(
        low <= ord(c) <= high
        for c in text
        for low, high in [(0x870, 0x89F), (0x8B5, 0x8B5), (0x8C8, 0x8D2), (0xC3C, 0xC3C), (0xC5D, 0xC5D), (0xCDD, 0xCDD), (0x1700, 0x171F), (0x180F, 0x180F), (0x1AC1, 0x1ACE), (0x1B4C, 0x1B7E), (0x1DFA, 0x1DFA), (0x20C0, 0x20C0), (0x2C2F, 0x2C5F), (0x2E43, 0x2E5D), (0x9FFD, 0x9FFF), (0xA7C0, 0xA7D9), (0xA7F2, 0xA7F4), (0xFBC2, 0xFBC2), (0xFD40, 0xFDCF), (0xFDFE, 0xFDFF), (0x10570, 0x107BA), (0x10F30, 0x10F59), (0x11000, 0x1F000), (0x1F6DD, 0x1F6DF), (0x1F7F0, 0x1F7F0), (0x1F8FF, 0x1FAFF)]
    )


def write_cases(path, tokenizer, texts):
    lines = []
    for text in texts:
        tokenizer.encode_special_tokens = True
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        with_special = tokenizer.encode(text, add_special_tokens=False).ids
        case = {"utf8": text.encode().hex(), "ids": ids}
        if with_special != ids:
            case["ids_special"] = with_special
        decoded = tokenizer.decode(ids, skip_special_tokens=True)
        if decoded.count("\ufffd") > text.count("\ufffd"):
            decoded = text  # the package takes an added "ø" for the spelling of a byte
        if decoded != text:
            case["decoded"] = decoded.encode().hex()
        lines.append(json.dumps(case, separators=(",", ":")))
    path.write_text("\n".join(lines) + "\n")


def names_of(tokenizer):
    return [t.content for t in tokenizer.get_added_tokens_decoder().values() if not t.content.startswith("<0x")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    parser.add_argument("--many", nargs=2, metavar=("COUNT", "DIR"))
    options = parser.parse_args()
    for seed, (name, make) in enumerate(FAMILIES.items()):
        if options.only and name not in options.only.split(","):
            continue
        folder = HERE / name
        if options.many:
            tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            folder = pathlib.Path(options.many[1]) / name
            folder.mkdir(parents=True, exist_ok=True)
            texts = strings(int(options.many[0]), names_of(tokenizer), 1000 + seed)
        else:
            tokenizer = make()
            folder.mkdir(parents=True, exist_ok=True)
            names = names_of(tokenizer)
            glued = [f"the{n}ship  {n} \n{n}{n}s" for n in names]
            texts = NASTY + glued + strings(40, names, seed)
            texts = texts[::3] if name == "unigram_bytes" else texts  # its ids take the most room
        spec = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
        (folder / "tokenizer.json").write_text(spec + "\n", encoding="utf-8")
        write_cases(folder / "cases.jsonl", tokenizer, texts)
        print(name, len(texts), sum(f.stat().st_size for f in folder.iterdir()))


if __name__ == "__main__":
    main()
