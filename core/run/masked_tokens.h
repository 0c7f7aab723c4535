#pragma once
// What an encoder is asked: which tokens of a text it is to tell (Devlin et al., BERT, 2019). Of the positions that
// training draws, 15 % of the text, 80 % are replaced by the token for masked ones, 10 % by a random token and 10 %
// stay, so that the model cannot take any token as given.

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/io/json_view.h"
#include "core/text/tokenizer.h"
#include "core/trace/trace.h"

namespace headscope {

struct MaskedPosition {
  int position = 0;                        ///< below 0 it counts from the end
  std::optional<std::int32_t> shown = {};  ///< what the model sees there; empty = the token for masked ones
  auto operator<=>(const MaskedPosition&) const = default;
};

/// {"position": 3, "shown": 17}; without `shown` where that is the token for masked ones.
nlohmann::ordered_json to_json(const MaskedPosition& masked);
MaskedPosition masked_position_from(const JsonView& value);

struct MaskingRule {
  double share = 0.15;              ///< of the tokens are drawn, at least one
  double mask = 0.8, random = 0.1;  ///< of those are masked, or replaced by a random token; the others stay
};
/// The tokens that mark places in a text and are none of its words: what stands before and behind one, and for masked
/// ones. Empty without a tokenizer.
std::vector<std::int32_t> marks_of(const Tokenizer* tokenizer);
/// Ascending. `tokens` are those of the text with what stands around it, which is never drawn (Token::begin < 0), nor
/// is any of `marks` that was written in it. Random tokens are ids below `vocab`. The same seed gives the same
/// everywhere. Empty when there is nothing to draw.
std::vector<MaskedPosition> draw_masked(std::span<const Token> tokens, std::span<const std::int32_t> marks, int vocab,
                                        std::uint64_t seed, const MaskingRule& rule = {});

}  // namespace headscope
