#pragma once
// tokenizer.model: Llama's and others' SentencePiece models (Kudo & Richardson 2018), run by the sentencepiece library.
// A reading that began cannot be stopped (about a second for a megabyte): texts of more than 1 MiB between special
// tokens are refused before it. Cutting them would not always give the same tokens.

#include <filesystem>
#include <memory>

#include "core/text/tokenizer.h"
#include "core/text/tokenizer_settings.h"

namespace headscope {

/// Throws Error when the library cannot read the file.
std::shared_ptr<const Tokenizer> read_sentencepiece(const std::filesystem::path& path,
                                                    const TokenizerSettings& settings);
/// T5's spiece.model: eos stands behind every text, and above the pieces there are the 100 marks <extra_id_99> …
/// <extra_id_0> that its makers masked spans with.
std::shared_ptr<const Tokenizer> read_t5_sentencepiece(const std::filesystem::path& path, TokenizerSettings settings);
/// GPT-SW3's spiece.model: nothing stands around a text, and of what is written some characters are left out or become
/// others first.
std::shared_ptr<const Tokenizer> read_gpt_sw3_sentencepiece(const std::filesystem::path& path,
                                                            TokenizerSettings settings);
/// DeBERTa-v2's and v3's spm.model: [CLS] stands before every text and [SEP] behind it, and [MASK], where the model has
/// none, is the number after its last piece. Throws Error where texts are to be written small first.
std::shared_ptr<const Tokenizer> read_deberta_sentencepiece(const std::filesystem::path& path,
                                                            TokenizerSettings settings);
/// One side of Marian's: texts are cut into pieces by a SentencePiece model, whose numbers are those of vocab.json. A
/// language such as >>fra<< in front of a text is one token; </s> stands behind it.
std::shared_ptr<const Tokenizer> read_marian(const std::filesystem::path& pieces, const std::filesystem::path& vocab,
                                             const TokenizerSettings& settings);
/// The same from the bytes of such a file; `where` names it in Errors.
std::shared_ptr<const Tokenizer> make_sentencepiece(const std::string& model, const std::string& where,
                                                    const TokenizerSettings& settings);

}  // namespace headscope
