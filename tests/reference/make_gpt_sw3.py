"""GPT-SW3's spiece.model in small and what `transformers` makes of texts with it.

    python tests/reference/make_gpt_sw3.py      # needs sentencepiece and transformers

Writes tests/reference/tokenizers/gpt_sw3: spiece.model, tokenizer_config.json, config.json, and cases.jsonl: texts, as bytes
in hex, and their tokens. Characters that do not print go before pieces are looked for, spaces of all kinds become one, and
what is composed of several characters becomes one (NFC).
"""

import io
import json
import pathlib

import sentencepiece
import transformers

HERE = pathlib.Path(__file__).parent / "tokenizers" / "gpt_sw3"
LINES = """Svenska är kul! Det var en gång en gammal sjökapten som bodde vid havet.
Han räknade båtarna varje kväll: ett, två, tre, fjorton, 87 och 1914.
Én øl på café är inte så dyr. The old man counted the boats every evening.
def f(x):\treturn x + 1""".split("\n")
TEXTS = ["Svenska är kul!", " två  båtar ", "", "a\u0308r ga\u030ang e\u0301n", "zero\u200bwidth\u00a0no\u00adbreak",
         "en\u2002space\u2003em\u202fthin\u3000wide\ufffcobject", "tab\there\nline\r\nend", "\x00\x01\x7f\x85bell\x07",
         "<|endoftext|>Det var <s> en gång", "emoji 🙂 and \u0084 漢字", "e\u0301\u200b\u0301e\u0323\u0302", "\u1112\u1161\u11ab"]


def main():
    HERE.mkdir(parents=True, exist_ok=True)
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=made, vocab_size=380, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False, minloglevel=2, pad_id=0,
        unk_id=1, bos_id=2, eos_id=3, pad_piece="<pad>", unk_piece="<unk>", bos_piece="<s>", eos_piece="<|endoftext|>")
    (HERE / "spiece.model").write_bytes(made.getvalue())
    (HERE / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPTSw3Tokenizer"}) + "\n")
    (HERE / "config.json").write_text(json.dumps({"model_type": "gpt2", "bos_token_id": 2, "eos_token_id": 3}) + "\n")
    reader = transformers.GPTSw3Tokenizer(str(HERE / "spiece.model"))
    with open(HERE / "cases.jsonl", "w") as out:
        for text in TEXTS:
            out.write(json.dumps({"utf8": text.encode().hex(), "ids": reader(text).input_ids}) + "\n")


if __name__ == "__main__":
    main()
