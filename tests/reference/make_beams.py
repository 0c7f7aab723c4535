"""What beam search of small random models finds, by `transformers` in float64.

    python tests/reference/make_beams.py      # needs torch and transformers

Writes tests/reference/beams.json: for each model below and each setting the sequences that
`generate(num_beams=…, do_sample=False)` returns, best first, and their scores. The library adds up logarithms in
float32; each score is counted again here from a pass over the whole sequence in float64, and both have to agree. The
token that ends texts is one that the search without an end comes upon, so that texts of several lengths are finished.
"""

import json
import pathlib

import torch
import transformers

HERE = pathlib.Path(__file__).parent
SOURCE = [3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 2]
PROMPT = [3, 14, 15, 9, 2, 6]
MODELS = ["gpt2-random", "llama-gqa", "encoder-decoders/bart", "encoder-decoders/marian", "encoder-decoders/t5",
          "families/mamba", "families/mamba2"]
TOKENS = 9
# width, length penalty, early stopping
SETTINGS = [(1, 1.0, False), (3, 1.0, False), (4, 0.0, False), (4, 2.0, False), (3, -1.0, False), (4, 1.0, True),
            (3, 1.5, "never")]


def beams(model, source, prompt, end, width, penalty, stopping):
    # The encoder's text would be taken for what is continued: an encoder-decoder is given its own beginning.
    settings = transformers.GenerationConfig(
        num_beams=width, do_sample=False, max_new_tokens=TOKENS, length_penalty=penalty, early_stopping=stopping,
        num_return_sequences=width, return_dict_in_generate=True, output_scores=True, eos_token_id=end, pad_token_id=0,
        decoder_start_token_id=prompt[0], use_cache=False)  # which T5 of two unequal stacks cannot have there
    if source is None:
        ids = torch.tensor([prompt])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=settings)
    else:
        ids = torch.tensor([source])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), decoder_input_ids=torch.tensor([prompt]),
                             generation_config=settings)
    found = []
    for row, sequence in enumerate(out.sequences):
        ids = sequence.tolist()
        written = ids[len(prompt):]
        if end is not None and end in written:  # what follows is padding
            written = written[:written.index(end) + 1]
        ids = prompt + written
        with torch.no_grad():
            given = {"input_ids": torch.tensor([ids])} if source is None else {
                "input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([ids])}
            logits = model(**given, use_cache=False).logits[0]
        ln = torch.log_softmax(logits, -1)
        total = sum(float(ln[len(prompt) - 1 + i, token]) for i, token in enumerate(written))
        score = total / len(written) ** penalty
        if width > 1:
            said = float(out.sequences_scores[row])
            assert abs(said - score) < 1e-4 * max(1, abs(score)), (said, score, written)
        found.append({"tokens": written, "score": score})
    return found


def main():
    torch.set_default_dtype(torch.float64)
    cases = []
    for name in MODELS:
        folder = HERE / name
        two = name.startswith("encoder")
        loader = transformers.AutoModelForSeq2SeqLM if two else transformers.AutoModelForCausalLM
        model = loader.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
        model.generation_config = transformers.GenerationConfig()
        source = SOURCE if two else None
        prompt = [model.config.decoder_start_token_id, 7] if two else PROMPT
        free = beams(model, source, prompt, None, 4, 1.0, False)
        end = free[-1]["tokens"][TOKENS // 2]
        for given in (None, end):
            for width, penalty, stopping in SETTINGS if given is not None else SETTINGS[:3]:
                found = beams(model, source, prompt, given, width, penalty, stopping)
                cases.append({"model": name, "source": source, "prompt": prompt, "end": given, "width": width,
                              "length_penalty": penalty, "early_stopping": stopping, "tokens": TOKENS, "beams": found})
                print(name, given, width, penalty, stopping, [len(b["tokens"]) for b in found],
                      [round(b["score"], 4) for b in found])
    text = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "beams.json").write_text("[\n" + text + "\n]\n")


if __name__ == "__main__":
    main()
