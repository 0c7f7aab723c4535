"""A tiny random model of speech of every kind, what it computes, and a sound.

    python tests/reference/make_speech.py [name …]      # needs torch, transformers and tokenizers

Writes tests/reference/speech/sound.wav (half a second of tones and noise) and tests/reference/speech/NAME: config.json,
generation_config.json, preprocessor_config.json, tokenizer.json, model.safetensors (float32, every weight drawn) and
expected.safetensors: the log-mel spectrogram of transformers' WhisperFeatureExtractor (`log_mel`, frame by frame; where
the model's rate is another, of the sound resampled here), when each token was said (`times`), patterns of the three stacks, streams, what the encoder puts
out, logits of `target`, and `written`: what generate() gives, prompt and all, with the tokens that
generation_config.json suppresses. Models in float64. Settings are unusual on purpose: heads that differ by stack, an
encoder and a decoder of unequal depth, few mels.
"""

import json
import pathlib
import sys
import wave

import numpy as np
import torch
import transformers
from make_families import drawn
from reference_model import write_safetensors

HERE = pathlib.Path(__file__).parent / "speech"
RATE = 16000
TARGET = [72, 101, 258, 32, 257, 101]  # behind the prompt
STEPS = 6
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>",
           "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
FIRST = 260  # of these
VOCAB = FIRST + len(SPECIAL) + 3  # and some times
ID = {name: FIRST + i for i, name in enumerate(SPECIAL)}

base = dict(vocab_size=VOCAB, d_model=18, encoder_layers=3, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=3, encoder_ffn_dim=20, decoder_ffn_dim=26, max_target_positions=24, max_source_positions=50,
            num_mel_bins=20, pad_token_id=ID["<|endoftext|>"], bos_token_id=ID["<|endoftext|>"],
            eos_token_id=ID["<|endoftext|>"], decoder_start_token_id=ID["<|startoftranscript|>"])
several = dict(lang_to_id={"<|en|>": ID["<|en|>"], "<|de|>": ID["<|de|>"]}, is_multilingual=True,
               task_to_id={"transcribe": ID["<|transcribe|>"], "translate": ID["<|translate|>"]},
               no_timestamps_token_id=ID["<|notimestamps|>"],
               forced_decoder_ids=[[1, None], [2, ID["<|transcribe|>"]]], alignment_heads=[[0, 1], [1, 0], [1, 2]])
english = dict(is_multilingual=False, no_timestamps_token_id=ID["<|notimestamps|>"],
               forced_decoder_ids=[[1, ID["<|notimestamps|>"]]])

# name → (settings, of the feature extractor, of generation, the prompt that is meant)
MODELS = {
    "whisper": (base, dict(feature_size=20, chunk_length=1), several,
                ["<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]),
    # Another rate, another length of what is read, other frames; a matrix to logits of its own; scale_embedding, which is read by nobody.
    "whisper-english": (base | dict(scale_embedding=True, activation_function="relu", encoder_layers=2, decoder_layers=3,
                                    max_source_positions=80, num_mel_bins=12, tie_word_embeddings=False),
                        dict(feature_size=12, chunk_length=2, sampling_rate=8000, hop_length=100, n_fft=250), english,
                        ["<|startoftranscript|>", "<|notimestamps|>"]),
}


def sound():
    """±1, at RATE."""
    t = np.arange(int(0.5 * RATE)) / RATE
    rng = np.random.default_rng(7)
    x = 0.3 * np.sin(2 * np.pi * 330 * t) + 0.2 * np.sin(2 * np.pi * (600 + 1500 * t) * t) * (t > 0.15)
    return np.clip(np.round((x + 0.02 * rng.standard_normal(t.size)) * np.hanning(t.size) * 32768), -32768, 32767).astype("<i2")


def resampled(x, old, new):
    """Smith's windowed sinc: a Kaiser window (beta 9) over 64 zero crossings to each side, cut off at 0.955."""
    density = 0.955 * min(1, new / old)
    n = np.arange(-(-x.size * new // old))[:, None]
    at = density * (np.arange(x.size)[None, :] - n * old / new)
    window = np.where(np.abs(at) < 64, np.i0(9 * np.sqrt(np.maximum(0, 1 - (at / 64) ** 2))) / np.i0(9.0), 0)
    return (density * np.sinc(at) * window) @ x


def tokenizer(folder):
    """A tokenizer.json as Whisper's: bytes and their merges, then the tokens that steer the model, then times."""
    import tokenizers
    bytes_ = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    order = {chr(b) if chr(b) in bytes_ else None: b for b in range(256)}
    letters = sorted(bytes_, key=lambda c: (order.get(c, 1000), c))
    # GPT-2's alphabet: printable bytes stand for themselves, and so at their own number here.
    table, rest = {}, [c for c in letters if c not in order]
    for b in range(256):
        table[chr(b) if chr(b) in bytes_ else rest.pop(0)] = b
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o")]
    for i, (a, b) in enumerate(merges):
        table[a + b] = 256 + i
    made = tokenizers.Tokenizer(tokenizers.models.BPE(table, merges))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(SPECIAL)
    made.add_tokens([tokenizers.AddedToken(f"<|{i * 0.02:.2f}|>", special=False, normalized=False) for i in range(3)])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<|startoftranscript|> <|notimestamps|> $A <|endoftext|>",
        special_tokens=[(name, ID[name]) for name in ("<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>")])
    assert made.token_to_id("<|0.04|>") == VOCAB - 1
    made.save(str(folder / "tokenizer.json"))
    own = {"bos_token": SPECIAL[0], "eos_token": SPECIAL[0], "tokenizer_class": "WhisperTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(own, indent=2) + "\n")


def make(name):
    settings, extraction, generation, names = MODELS[name]
    config = transformers.WhisperConfig(**settings)
    torch.set_default_dtype(torch.float64)
    config._attn_implementation = "eager"
    model = transformers.WhisperForConditionalGeneration(config).eval().to(torch.float64)
    untied = settings.get("tie_word_embeddings") is False
    if untied:
        model.proj_out.weight = torch.nn.Parameter(torch.zeros_like(model.proj_out.weight))
    drawn(model, seed=sum(map(ord, name)), gain_around=0.7)
    with torch.no_grad():
        for n, p in model.named_parameters():
            if "conv" in n or "embed_positions" in n:
                p.mul_(2)

    extractor = transformers.WhisperFeatureExtractor(**extraction)
    samples = sound().astype(np.float64) / 32768
    if extractor.sampling_rate != RATE:
        samples = resampled(samples, RATE, extractor.sampling_rate)

    def one(x):
        torch.set_default_dtype(torch.float32)  # as the extractor is used
        found = extractor(x, sampling_rate=extractor.sampling_rate, return_tensors="np").input_features
        torch.set_default_dtype(torch.float64)
        return torch.tensor(found)

    features = one(samples.astype(np.float32)).to(torch.float64)
    prompt = [ID[n] for n in names]
    target = torch.tensor([prompt + TARGET])
    with torch.no_grad():
        out = model(features, decoder_input_ids=target, output_attentions=True, output_hidden_states=True, use_cache=False)
        # What it would say first and second is suppressed, so that suppressing counts.
        suppress, first = [], []

        def write():
            tokens, margins = list(prompt), []
            for step in range(STEPS):
                row = model(features, decoder_input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1].clone()
                row[suppress] = -torch.inf
                if step == 0:
                    row[first] = -torch.inf
                best = row.topk(2)
                margins.append(float(best.values[0] - best.values[1]))
                tokens.append(int(best.indices[0]))
            return tokens, margins

        first.append(write()[0][len(prompt)])
        suppress.append(write()[0][len(prompt)])
        written, margins = write()
    assert min(margins) > 1e-3, (name, margins)
    with torch.no_grad():
        looked = model(features, decoder_input_ids=torch.tensor([written]), output_attentions=True, use_cache=False)
    heads = generation.get("alignment_heads") or [
        [l, h] for l in range(config.decoder_layers // 2, config.decoder_layers) for h in range(config.decoder_attention_heads)]
    times = model._extract_token_timestamps(
        transformers.utils.ModelOutput(cross_attentions=(tuple(looked.cross_attentions),), sequences=torch.tensor([written])),
        heads, time_precision=2 * extractor.hop_length / extractor.sampling_rate,
        num_frames=int(0.5 * extractor.sampling_rate) // extractor.hop_length, num_input_ids=len(prompt))[0]
    rules = generation | dict(suppress_tokens=suppress, begin_suppress_tokens=first, decoder_start_token_id=prompt[0],
                              eos_token_id=ID["<|endoftext|>"], pad_token_id=ID["<|endoftext|>"],
                              bos_token_id=ID["<|endoftext|>"], max_length=24)
    model.generation_config = transformers.GenerationConfig(**rules)
    extra = dict(language="en", task="transcribe") if generation["is_multilingual"] else {}
    made = model.generate(features, max_new_tokens=STEPS, return_timestamps=False, num_beams=1, do_sample=False, **extra)
    made = made[0].tolist()
    short = made[len(prompt):] if made[:len(prompt)] == prompt else made
    assert short == written[len(prompt):], (name, made, written)

    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    f32 = lambda t: t.detach().to(torch.float32).contiguous().numpy()
    i32 = lambda ids: np.array(ids, dtype=np.int32)
    expected = {"target": i32(target[0].tolist()), "prompt": i32(prompt), "written": i32(written), "times": f32(times[len(prompt):-1]),
                "logits": f32(out.logits[0]),
                "memory": f32(out.encoder_last_hidden_state[0]), "log_mel": f32(features[0].T),
                "mel_filters": extractor.mel_filters.T.astype(np.float32).copy()}
    for stack, attentions in (("encoder", out.encoder_attentions), ("decoder", out.decoder_attentions),
                              ("cross", out.cross_attentions)):
        for layer, pattern in enumerate(attentions):
            expected[f"{stack}.{layer}.pattern"] = f32(pattern[0])
    for stack, states in (("encoder", out.encoder_hidden_states), ("decoder", out.decoder_hidden_states)):
        for layer, state in enumerate(states[1:-1]):  # the last one is behind the last norm
            expected[f"{stack}.{layer}.resid_post"] = f32(state[0])
    # A louder, longer sound than is read, that ends in the middle of a wave: cut off there.
    t = np.arange(int(2.3 * extractor.sampling_rate)) / extractor.sampling_rate
    expected["long_log_mel"] = f32(one((np.sin(2 * np.pi * 700 * t) * (0.2 + 0.3 * t)).astype(np.float32))[0].T)
    write_safetensors(folder / "expected.safetensors", expected)

    weights = {k: f32(v) for k, v in model.state_dict().items() if untied or k != "proj_out.weight"}
    write_safetensors(folder / "model.safetensors", weights)
    kept = set(settings) | {"model_type", "is_encoder_decoder", "tie_word_embeddings", "scale_embedding", "activation_function"}
    own = {k: v for k, v in json.loads(config.to_json_string(use_diff=False)).items() if k in kept and v is not None}
    own |= {"architectures": ["WhisperForConditionalGeneration"], "tie_word_embeddings": not untied}
    for file, values in (("config", own), ("generation_config", rules), ("preprocessor_config", extractor.to_dict())):
        values.pop("mel_filters", None)
        (folder / f"{file}.json").write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")
    tokenizer(folder)
    print(name, sum(f.stat().st_size for f in folder.iterdir()), "bytes, margin", min(margins))


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    with wave.open(str(HERE / "sound.wav"), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(sound().tobytes())
    for each in sys.argv[1:] or MODELS:
        make(each)
