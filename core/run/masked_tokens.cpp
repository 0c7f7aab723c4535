#include "core/run/masked_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/json.h"
#include "core/base/random.h"

namespace headscope {

nlohmann::ordered_json to_json(const MaskedPosition& masked) {
  nlohmann::ordered_json out{{"position", masked.position}};
  if (masked.shown) out["shown"] = *masked.shown;
  return out;
}

MaskedPosition masked_position_from(const JsonView& value) {
  JsonFields fields(value);
  MaskedPosition masked;
  fields.find("position");
  masked.position = value.at("position").small(-std::numeric_limits<int>::max());
  if (const auto shown = fields.find("shown")) masked.shown = shown->small(0);
  fields.done();
  return masked;
}

std::vector<std::int32_t> marks_of(const Tokenizer* tokenizer) {
  std::vector<std::int32_t> marks;
  if (tokenizer)
    for (const auto& mark : {tokenizer->bos(), tokenizer->behind(), tokenizer->mask()})
      if (mark) marks.push_back(*mark);
  return marks;
}

std::vector<MaskedPosition> draw_masked(std::span<const Token> tokens, std::span<const std::int32_t> marks, int vocab,
                                        std::uint64_t seed, const MaskingRule& rule) {
  std::vector<int> places;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].begin >= 0 && std::ranges::find(marks, tokens[i].id) == marks.end())
      places.push_back(static_cast<int>(i));
  if (places.empty()) return {};
  Random random(seed);
  const auto count = std::clamp<std::size_t>(
      static_cast<std::size_t>(std::lround(rule.share * static_cast<double>(places.size()))), 1, places.size());
  for (std::size_t i = 0; i < count; ++i)  // Fisher and Yates, as far as needed
    std::swap(places[i], places[i + random.below(places.size() - i)]);
  std::vector<MaskedPosition> out;
  for (std::size_t i = 0; i < count; ++i) {
    MaskedPosition& each = out.emplace_back(MaskedPosition{places[i], {}});
    const double which = random.uniform();
    if (which < rule.mask) continue;
    each.shown = which < rule.mask + rule.random
                     ? static_cast<std::int32_t>(random.below(static_cast<std::size_t>(vocab)))
                     : tokens[static_cast<std::size_t>(places[i])].id;
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace headscope
