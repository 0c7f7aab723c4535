#pragma once
// The tokenizer that a GGUF file carries in its keys tokenizer.ggml.*: "gpt2", byte-level byte pair encoding with
// merges, or "llama" and "t5", SentencePiece pieces with scores.

#include <filesystem>
#include <memory>

#include "core/text/tokenizer.h"

namespace headscope {

/// Null when the file has none. Throws Error naming file and key on a kind, or a rule for cutting words, that is not
/// known, and on lists that do not fit one another.
std::shared_ptr<const Tokenizer> read_gguf_tokenizer(const std::filesystem::path& path);

/// llama2.c's tokenizer.bin: for each id a score and the bytes of its token.
std::shared_ptr<const Tokenizer> read_llama2c_tokenizer(const std::filesystem::path& path);

}  // namespace headscope
