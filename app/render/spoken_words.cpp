#include "app/render/spoken_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"
#include "viz/scene/sound_map.h"

namespace headscope {

std::shared_ptr<const SpokenWords> spoken_words(const Trace& whole, const TargetRules* rules) {
  const Trace* const cross = whole.part(Stack::cross);
  if (!rules || !cross || !cross->sound || !cross->between_texts()) return nullptr;
  const std::vector<HeadId> heads = alignment_heads_or_upper_half(rules->alignment_heads, cross->model.dims);
  const auto kept = [&](HeadId head) {
    return std::ranges::any_of(cross->maps, [&](const AttentionMap& map) { return map.id() == head; });
  };
  if (!std::ranges::all_of(heads, kept)) return nullptr;
  auto out = std::make_shared<SpokenWords>();
  out->words = word_times(*cross, whole, heads, rules->smoothing);
  if (out->words.empty()) return nullptr;
  std::vector<std::string> names;
  for (const HeadId head : heads) names.push_back(to_string(head));
  const bool named = !rules->alignment_heads.empty();
  out->by =
      names.size() > 8
          ? say("times by dynamic time warping over {} heads of cross-attention ({}), a median of {} keys",
                names.size(), named ? said("named by the model's file") : said("the upper half"), rules->smoothing)
          : say("times by dynamic time warping over heads {} of cross-attention ({}), a median of {} keys",
                fmt::format("{}", fmt::join(names, ", ")),
                named ? said("named by the model's file") : said("the upper half"), rules->smoothing);
  return out;
}

}  // namespace headscope
