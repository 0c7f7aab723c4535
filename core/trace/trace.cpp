#include "core/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/trace/model_heads.h"

namespace headscope {

std::vector<std::int32_t> Trace::ids() const {
  std::vector<std::int32_t> result;
  result.reserve(tokens.size());
  for (const Token& token : tokens) result.push_back(token.id);
  return result;
}

std::vector<std::int32_t> Trace::segments() const {
  std::vector<std::int32_t> result;
  result.reserve(tokens.size());
  for (const Token& token : tokens) result.push_back(token.segment);
  return result;
}

const Trace* Trace::part(Stack of) const {
  if (of == Stack::only || of == model.stack) return this;
  return of == Stack::encoder ? encoder.get() : of == Stack::cross ? cross.get() : nullptr;
}

std::vector<Stack> Trace::stacks() const {
  if (!encoder) return {model.stack};
  return {Stack::encoder, Stack::decoder, Stack::cross};
}

bool Trace::sees_later_keys() const {
  return std::ranges::any_of(maps, [](const AttentionMap& map) {
    for (Index query = 0; query < map.n_query(); ++query) {
      const KeyRange later{map.place().offset + query + 1, map.n_key()};
      if (later.size() <= 0) return false;
      if (map.rule()) {
        if (map.sees({query, query + 1}, later)) return true;
        continue;
      }
      for (Index key = later.begin; key < later.end; ++key)
        if (map.weight(query, key) != 0) return true;
    }
    return false;
  });
}

const AttentionMap& Trace::map(HeadId head) const {
  const auto place = std::ranges::lower_bound(maps, head, {}, &AttentionMap::id);
  if (place != maps.end() && place->id() == head) return *place;
  const std::string recorded = maps.empty() ? "no maps"
                                            : fmt::format("{} maps, from {} to {}", maps.size(),
                                                          to_string(maps.front().id()), to_string(maps.back().id()));
  const ModelDims& dims = model.dims;
  const bool differ = dims.state_heads > 0 && head.layer >= 0 && head.layer < dims.layers;
  throw Error("head " + to_string(head),
              differ ? fmt::format("a recorded head; layer {} has {}", head.layer, dims.heads_of(head.layer))
                     : fmt::format("a recorded head of {} layers with {} heads", dims.layers, heads_text(dims)),
              recorded);
}

}  // namespace headscope
