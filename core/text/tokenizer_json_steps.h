#pragma once
// The pipeline keys of tokenizer.json: normalizer, pre_tokenizer, decoder, post_processor.

#include <optional>
#include <vector>

#include "core/io/json_view.h"
#include "core/text/pipeline_tokenizer.h"

namespace headscope {

/// Each throws Error, naming the key, for a type or an option that it does not support.
void read_normalizer(const JsonView& step, std::vector<NormalizerStep>& steps);

/// What words are made of: characters; bytes, after ByteLevel; or, where other steps follow that, characters of GPT-2's
/// alphabet for bytes.
enum class WordUnits { characters, bytes, byte_alphabet };

/// Returns what the words are made of. `add_prefix_space` of tokenizer_config.json, when given,
/// overrules a ByteLevel that stands alone, as it does in the transformers library.
WordUnits read_pre_tokenizer(const JsonView& step, std::optional<bool> add_prefix_space,
                             std::vector<PreTokenizerStep>& steps);

void read_decoder(const JsonView& step, SpellingRule& rule);
/// Whether words lose the white space between them, which only a decoder, or joining them by spaces, gives back.
bool takes_spaces_away(const JsonView& pre_tokenizer);

/// The one token that is put before every text, and the first behind it, if any. Rules that put several in front are
/// refused.
TextFrame read_text_frame(const JsonView& step, const Vocabulary& vocabulary);

}  // namespace headscope
