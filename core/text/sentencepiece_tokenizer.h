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
/// The same from the bytes of such a file; `where` names it in Errors.
std::shared_ptr<const Tokenizer> make_sentencepiece(const std::string& model, const std::string& where,
                                                    const TokenizerSettings& settings);

}  // namespace headscope
