#pragma once
// The pipeline keys of tokenizer.json: normalizer, pre_tokenizer, decoder, post_processor.

#include <optional>
#include <vector>

#include "core/io/json_view.h"
#include "core/text/bpe_tokenizer.h"

namespace headscope {

/// Each throws Error, naming the key, for a type or an option that it does not support.
void read_normalizer(const JsonView& step, std::vector<NormalizerStep>& steps);

/// Returns whether the words are made of bytes (ByteLevel). `add_prefix_space` of tokenizer_config.json, when given,
/// overrules a ByteLevel that stands alone, as it does in the transformers library.
bool read_pre_tokenizer(const JsonView& step, std::optional<bool> add_prefix_space,
                        std::vector<PreTokenizerStep>& steps);

void read_decoder(const JsonView& step, SpellingRule& rule);

/// The one token that is put before every text, if any. Rules that put other tokens around a text are refused.
std::optional<std::int32_t> read_token_in_front(const JsonView& step, const Vocabulary& vocabulary);

}  // namespace headscope
