#pragma once
// Texts as batches. Private to core/train.

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/text/tokenizer.h"
#include "core/train/learner.h"

namespace headscope {

/// Without what stands around a text.
std::vector<std::int32_t> ids_of(const Tokenizer& tokenizer, std::string_view text);

/// Rows of different length become batches: shorter ones are filled up with tokens whose targets are not counted.
/// `rows` hold the tokens after the leading end-of-text; `ends`: the end of a row is a target too.
std::vector<Batch> batches_of(const std::vector<std::vector<std::int32_t>>& rows, int sequences, std::int32_t end,
                              bool ends);

/// Targets that count.
std::int64_t counted(const std::vector<Batch>& batches);

}  // namespace headscope
