#pragma once
// tokenizer.model: Llama's and others' SentencePiece models (Kudo & Richardson 2018), run by the sentencepiece library.

#include <filesystem>
#include <memory>

#include "core/text/tokenizer.h"
#include "core/text/tokenizer_settings.h"

namespace headscope {

/// Throws Error when the library cannot read the file.
std::shared_ptr<const Tokenizer> read_sentencepiece(const std::filesystem::path& path,
                                                    const TokenizerSettings& settings);

}  // namespace headscope
