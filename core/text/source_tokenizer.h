#pragma once
// The tokenizer of what an encoder-decoder's encoder reads, where it is not that of its decoder (load_tokenizer()).

#include <filesystem>
#include <memory>

#include "core/text/tokenizer.h"

namespace headscope {

/// Of Marian's source.spm; null where both sides have one tokenizer. Throws Error on a broken file.
std::shared_ptr<const Tokenizer> load_source_tokenizer(const std::filesystem::path& path);

}  // namespace headscope
