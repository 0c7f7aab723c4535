"""A tiny random encoder-decoder of every family and what it computes, by `transformers` in float64.

    python tests/reference/make_encoder_decoders.py [name …]      # needs torch, transformers and sentencepiece

Writes tests/reference/encoder-decoders/NAME: config.json, model.safetensors (float32, every weight drawn), a tokenizer
where one is of use, and expected.safetensors: source, target, patterns of the three stacks, streams, what the encoder
puts out, logits and the greedy continuation. Settings are unusual on purpose: an odd number of heads, heads whose widths
do not add up to the model's, an encoder and a decoder of unequal depth, few buckets of distances.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from make_families import drawn, in_doubles, of_all_keys
from reference_model import write_safetensors

HERE = pathlib.Path(__file__).parent / "encoder-decoders"
SOURCE = [3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 2]
TARGET = [19, 7, 30, 7, 19, 11, 36]
STEPS = 6

t5 = dict(vocab_size=43, d_model=18, d_kv=5, d_ff=22, num_layers=2, num_decoder_layers=3, num_heads=3,
          relative_attention_num_buckets=8, relative_attention_max_distance=9, decoder_start_token_id=0, eos_token_id=2,
          pad_token_id=0)
bart = dict(vocab_size=43, d_model=18, encoder_layers=3, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=3, encoder_ffn_dim=20, decoder_ffn_dim=26, max_position_embeddings=40,
            pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None)

led = {key: value for key, value in bart.items() if key != "max_position_embeddings"} | dict(
    max_encoder_position_embeddings=36, max_decoder_position_embeddings=30)
fsmt = {key: value for key, value in bart.items() if key != "vocab_size"} | dict(
    src_vocab_size=43, tgt_vocab_size=39, activation_function="relu", tie_word_embeddings=False)
gemma = dict(vocab_size=43, hidden_size=18, head_dim=6, num_attention_heads=3, num_key_value_heads=1, intermediate_size=22,
             max_position_embeddings=40, rms_norm_eps=0.01, query_pre_attn_scalar=5, attn_logit_softcapping=3.0,
             final_logit_softcapping=4.0, sliding_window=3, pad_token_id=0, bos_token_id=1, eos_token_id=2,
             rope_parameters=dict(rope_type="default", rope_theta=50.0))

# name → (config class, model class, settings)
MODELS = {
    "t5": ("T5Config", "T5ForConditionalGeneration", t5),
    "t5-gated": ("T5Config", "T5ForConditionalGeneration", t5 | dict(
        feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_layers=3, num_decoder_layers=2,
        relative_attention_num_buckets=10, relative_attention_max_distance=40)),
    "mt5": ("MT5Config", "MT5ForConditionalGeneration", t5 | dict(feed_forward_proj="gated-silu", tie_word_embeddings=False)),
    "bart": ("BartConfig", "BartForConditionalGeneration", bart),
    "bart-scaled": ("BartConfig", "BartForConditionalGeneration", bart | dict(
        scale_embedding=True, activation_function="relu", encoder_layers=1, decoder_layers=3)),
    "marian": ("MarianConfig", "MarianMTModel", bart | dict(
        scale_embedding=True, activation_function="swish", decoder_start_token_id=42, pad_token_id=42, eos_token_id=2)),
    "marian-apart": ("MarianConfig", "MarianMTModel", bart | dict(
        share_encoder_decoder_embeddings=False, decoder_vocab_size=39, decoder_start_token_id=38, pad_token_id=38)),
    "umt5": ("UMT5Config", "UMT5ForConditionalGeneration", t5),
    "umt5-untied": ("UMT5Config", "UMT5ForConditionalGeneration", t5 | dict(
        feed_forward_proj="gated-silu", tie_word_embeddings=False, num_layers=3, num_decoder_layers=2)),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", bart | dict(scale_embedding=True, decoder_start_token_id=41)),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", bart | dict(
        scale_embedding=True, activation_function="relu", pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)),
    "blenderbot": ("BlenderbotConfig", "BlenderbotForConditionalGeneration", bart | dict(
        encoder_layers=1, decoder_layers=3, decoder_start_token_id=1, pad_token_id=0)),
    "blenderbot-small": ("BlenderbotSmallConfig", "BlenderbotSmallForConditionalGeneration", bart | dict(
        scale_embedding=True, activation_function="gelu_new", decoder_start_token_id=1, pad_token_id=0)),
    "m2m_100": ("M2M100Config", "M2M100ForConditionalGeneration", bart | dict(scale_embedding=True, activation_function="relu")),
    # An odd width has a 0 at the end of its sinusoids, and positions begin behind another padding.
    "m2m_100-odd": ("M2M100Config", "M2M100ForConditionalGeneration", bart | dict(
        d_model=15, encoder_attention_heads=5, pad_token_id=4, scale_embedding=False)),
    "plbart": ("PLBartConfig", "PLBartForConditionalGeneration", bart | dict(decoder_start_token_id=41)),
    "mvp": ("MvpConfig", "MvpForConditionalGeneration", bart | dict(encoder_layers=1, activation_function="gelu_new")),
    # Vocabularies of unequal size; positions begin behind another padding.
    "fsmt": ("FSMTConfig", "FSMTForConditionalGeneration", fsmt | dict(pad_token_id=4)),
    "fsmt-bare": ("FSMTConfig", "FSMTForConditionalGeneration", fsmt | dict(
        src_vocab_size=41, tgt_vocab_size=47, scale_embedding=False, decoder_start_token_id=46)),
    # A source of up to (5 + 2 · 1) · 2 tokens is seen whole.
    "bigbird_pegasus": ("BigBirdPegasusConfig", "BigBirdPegasusForConditionalGeneration", bart | dict(
        block_size=2, num_random_blocks=1, pad_token_id=0, eos_token_id=1, activation_function="gelu_new")),
    "bigbird_pegasus-full": ("BigBirdPegasusConfig", "BigBirdPegasusForConditionalGeneration", bart | dict(
        attention_type="original_full", use_bias=True, scale_embedding=False, pad_token_id=0, encoder_layers=1)),
    # Windows narrower than the source; encoder and decoder have positions of their own number.
    "led": ("LEDConfig", "LEDForConditionalGeneration", led | dict(attention_window=[4, 8, 4])),
    "t5gemma": ("T5GemmaConfig", "T5GemmaForConditionalGeneration", dict(
        vocab_size=43, encoder=gemma | dict(num_hidden_layers=3), decoder=gemma | dict(num_hidden_layers=2),
        decoder_start_token_id=1)),
    # An expert takes two tokens of a text: more come to some. Of the encoder every layer has experts, of the decoder none
    # (said as the library understands it): with a cache it would count anew at every step.
    "switch_transformers": ("SwitchTransformersConfig", "SwitchTransformersForConditionalGeneration", t5 | dict(
        num_experts=3, expert_capacity=2, num_sparse_encoder_layers=2, num_sparse_decoder_layers=4, router_bias=True)),
    "switch_transformers-untied": ("SwitchTransformersConfig", "SwitchTransformersForConditionalGeneration", t5 | dict(
        num_experts=3, expert_capacity=64, num_layers=3, num_sparse_encoder_layers=1, num_sparse_decoder_layers=3,
        dense_act_fn="gelu_new", tie_word_embeddings=False)),
    # Every head has keys of its own, nothing bends, an unembedding of its own.
    "t5gemma-plain": ("T5GemmaConfig", "T5GemmaForConditionalGeneration", dict(
        vocab_size=43, tie_word_embeddings=False, decoder_start_token_id=1,
        encoder=gemma | dict(num_hidden_layers=1, num_key_value_heads=3, attn_logit_softcapping=None, head_dim=4),
        decoder=gemma | dict(num_hidden_layers=3, num_key_value_heads=3, attn_logit_softcapping=None, head_dim=8,
                             final_logit_softcapping=None, attention_bias=True, sliding_window=2))),
}


ENGLISH = "the old man sees a small dog . a dog sees the man . the small man runs . dogs run and see a man . the end ."
GERMAN = "der alte mann sieht einen kleinen hund . ein hund sieht den mann . der kleine mann rennt . das ende ."
TEXTS = ["the old man sees a dog .", "a  small man", "the zoo runs", "see the end.", ">>deu<< the dog", "ein Hund"]


def t5_tokenizer(folder):
    """A tokenizer.json as T5's: the likeliest pieces, and </s> behind every text."""
    import tokenizers
    words = ENGLISH.split()
    pieces = ["\u2581" + w for w in dict.fromkeys(words)] + list("\u2581aehimnorstd")
    vocab = [("<pad>", 0.0), ("<unk>", 0.0), ("</s>", 0.0)]
    vocab += [(piece, -1.5 - 0.07 * i) for i, piece in enumerate(dict.fromkeys(pieces))]
    vocab += [(f"<extra_id_{i}>", 0.0) for i in range(43 - len(vocab))][::-1]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(vocab[:43], unk_id=1, byte_fallback=False))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.Metaspace(prepend_scheme="always")])
    made.decoder = tokenizers.decoders.Metaspace(prepend_scheme="always")
    made.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    made.add_special_tokens(["<pad>", "<unk>", "</s>"])
    made.save(str(folder / "tokenizer.json"))
    return {text: made.encode(text).ids for text in TEXTS}, None


def nllb_tokenizer(folder):
    """A tokenizer.json as NLLB's and mBART-50's: the code of a language before every text, English where none is written."""
    import tokenizers
    pieces = ["\u2581" + w for w in dict.fromkeys((ENGLISH + " " + GERMAN).split())] + list("\u2581aehimnorstd")
    codes = ["eng_Latn", "deu_Latn"]
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = list(dict.fromkeys(pieces))[-(43 - len(names) - len(codes)):]
    vocab = [(name, 0.0) for name in names] + [(piece, -1.5 - 0.07 * i) for i, piece in enumerate(pieces)]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(vocab + [(code, 0.0) for code in codes], unk_id=3))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="always")
    made.decoder = tokenizers.decoders.Metaspace(prepend_scheme="always")
    made.add_special_tokens(names + codes)
    texts = {}
    for code in reversed(codes):  # English is what the file says
        ids = made.token_to_id(code)
        made.post_processor = tokenizers.processors.TemplateProcessing(
            single=f"{code} $A </s>", special_tokens=[(code, ids), ("</s>", 2)])
        texts |= {f"{code} {text}": made.encode(text).ids for text in ("ein hund sieht den mann .", "the old man")}
    made.save(str(folder / "tokenizer.json"))
    return texts | {text: made.encode(text).ids for text in TEXTS}, None


def marian_tokenizer(folder, vocabulary):
    """source.spm, target.spm and vocab.json as Marian's: pieces of each side, one numbering for both."""
    import io
    import sentencepiece
    pieces = []
    for side, text in (("source", ENGLISH), ("target", GERMAN)):
        made = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter((text + " ").split(".")), model_writer=made, vocab_size=26, model_type="unigram",
            normalization_rule_name="identity", hard_vocab_limit=False, minloglevel=2, pad_id=-1, bos_id=-1)
        (folder / f"{side}.spm").write_bytes(made.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
        pieces += [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    pieces = [p for p in dict.fromkeys(pieces) if p not in ("<unk>", "</s>")]
    names = ["</s>", "<unk>", ">>deu<<"] + pieces
    names = (names + [f"word{i}" for i in range(vocabulary)])[:vocabulary - 1] + ["<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}, ensure_ascii=False) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}) + "\n")
    reader = transformers.MarianTokenizer.from_pretrained(folder)
    return {t: reader(t).input_ids for t in TEXTS}, {t: reader(text_target=t).input_ids for t in TEXTS}


def see_whole(model):
    """What BigBird does by itself with so short a source, but before its attention is watched."""
    import copy
    ids = dict(input_ids=torch.tensor([SOURCE]), decoder_input_ids=torch.tensor([TARGET]))
    with torch.no_grad():
        alone = copy.deepcopy(model)(**ids).logits
        model.model.encoder.set_attention_type("original_full")
        assert (model(**ids).logits - alone).abs().max() == 0


def make(name):
    config_class, model_class, settings = MODELS[name]
    if name.startswith("t5gemma"):  # its norms and softmax would be of float32
        in_doubles(sys.modules[transformers.T5GemmaModel.__module__])
    if name.startswith("switch"):  # its routers
        in_doubles(sys.modules[transformers.SwitchTransformersModel.__module__])
    if name.startswith("fsmt"):  # whose mask would be of float32
        in_doubles(sys.modules[transformers.FSMTModel.__module__])
    config = getattr(transformers, config_class)(**settings)
    untied = settings.get("tie_word_embeddings") is False
    torch.set_default_dtype(torch.float64)
    config._attn_implementation = "eager"
    model = getattr(transformers, model_class)(config).eval().to(torch.float64)
    if untied and hasattr(model, "lm_head"):  # newer versions of the library tie what they were not given
        head = getattr(model.lm_head, "out_proj", model.lm_head)
        head.weight = torch.nn.Parameter(torch.zeros_like(head.weight))
    tables = {n: p.clone() for n, p in model.named_parameters() if name.startswith(("marian", "pegasus", "fsmt")) and "embed_positions" in n}
    drawn(model, seed=sum(map(ord, name)), gain_around=0.0 if name.startswith("t5gemma") else 0.7)  # which adds 1
    with torch.no_grad():
        for n, p in model.named_parameters():
            if n in tables:
                p.copy_(tables[n])
            elif "relative_attention_bias" in n:
                p.mul_(2.5)
        if hasattr(model, "final_logits_bias"):
            generator = torch.Generator().manual_seed(3)
            model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=generator))

    if getattr(config, "attention_type", None) == "block_sparse":
        see_whole(model)
    turned_away = []
    for part, module in model.named_modules():
        if part.endswith(".mlp.router"):  # a token whose expert is nearly another's is no test
            def look(_, inputs, output):
                best = output[2].softmax(-1).topk(2).values
                assert (best[..., 0] - best[..., 1]).min() > 1e-3, "a close choice"
                turned_away.append(int((output[0].sum(-1) == 0).sum()))
            module.register_forward_hook(look)
    source, target = torch.tensor([SOURCE]), torch.tensor([[config.decoder_start_token_id] + TARGET])
    with torch.no_grad():
        out = model(source, decoder_input_ids=target, output_attentions=True, output_hidden_states=True, use_cache=False)
        written, margins = target[0].tolist(), []
        for _ in range(STEPS):
            row = model(source, decoder_input_ids=torch.tensor([written]), use_cache=False).logits[0, -1]
            best = row.topk(2).values
            margins.append(float(best[0] - best[1]))
            written.append(int(row.argmax()))
    assert min(margins) > 1e-3, (name, margins)
    assert sum(turned_away) > 0 or name != "switch_transformers", "nobody was turned away"

    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    f32 = lambda t: t.detach().to(torch.float32).numpy()
    i32 = lambda ids: np.array(ids, dtype=np.int32)
    expected = {"source": i32(SOURCE), "target": i32(target[0].tolist()), "greedy": i32(written[target.shape[1]:]),
                "logits": f32(out.logits[0]), "memory": f32(out.encoder_last_hidden_state[0])}
    for stack, attentions in (("encoder", out.encoder_attentions), ("decoder", out.decoder_attentions),
                              ("cross", out.cross_attentions)):
        for layer, pattern in enumerate(attentions):
            banded = name == "led" and stack == "encoder"
            expected[f"{stack}.{layer}.pattern"] = f32(of_all_keys(pattern[0][:, :len(SOURCE)]) if banded else pattern[0])
    for stack, states in (("encoder", out.encoder_hidden_states), ("decoder", out.decoder_hidden_states)):
        for layer, state in enumerate(states[1:-1]):  # the last one is behind the last norm
            expected[f"{stack}.{layer}.resid_post"] = f32(state[0])
    write_safetensors(folder / "expected.safetensors", expected)

    weights, seen = {}, set()
    for key, value in model.state_dict().items():
        tied = value.data_ptr() in seen
        seen.add(value.data_ptr())
        if not tied and key not in tables:
            weights[key] = f32(value)
    write_safetensors(folder / "model.safetensors", weights)
    written = json.loads(config.to_json_string(use_diff=False))
    keep = set(settings) | {"model_type", "is_encoder_decoder", "tie_word_embeddings", "scale_decoder_outputs",
                            "feed_forward_proj", "activation_function", "scale_embedding", "eos_token_id"}
    own = {k: v for k, v in written.items() if k in keep and v is not None}
    if untied:
        own["tie_word_embeddings"] = False
    for stack in ("encoder", "decoder"):
        if stack in own:  # without what says nothing of the model
            own[stack] = {k: v for k, v in own[stack].items() if k in gemma or k in (
                "num_hidden_layers", "hidden_activation", "layer_types", "attention_bias", "is_decoder")}
    own["architectures"] = [model_class]
    (folder / "config.json").write_text(json.dumps(own, indent=2, sort_keys=True) + "\n")
    if name in ("t5", "marian", "m2m_100"):
        source, target = (t5_tokenizer(folder) if name == "t5" else nllb_tokenizer(folder) if name == "m2m_100"
                          else marian_tokenizer(folder, settings["vocab_size"]))
        (folder / "texts.json").write_text(json.dumps({"source": source, "target": target}, indent=1) + "\n")
    print(name, sum(f.stat().st_size for f in folder.iterdir()), "bytes", "margin", min(margins), sorted(weights)[:0])


if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        make(each)
