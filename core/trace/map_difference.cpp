#include "core/trace/map_difference.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <utility>

#include "core/base/error.h"

namespace headscope {
namespace {

/// Sees what either map's rule sees; a rule that is not known sees everything.
class SeenByEither final : public AttentionRule {
 public:
  SeenByEither(AttentionMap a, AttentionMap b) : a_(std::move(a)), b_(std::move(b)) {}
  KeyRange keys(Index query, Index n_key) const override {
    const KeyRange a = range(a_, query, n_key), b = range(b_, query, n_key);
    if (a.size() <= 0) return b;
    if (b.size() <= 0) return a;
    return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
  }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (std::size_t c = 0; c < scores.size(); ++c) {
      const Index row = query - a_.place().offset, key = first_key + static_cast<Index>(c);
      if (a_.masked(row, key) && b_.masked(row, key)) scores[c] = -std::numeric_limits<float>::infinity();
    }
  }
  std::string describe() const override { return "seen by either"; }

 private:
  static KeyRange range(const AttentionMap& map, Index query, Index n_key) {
    return map.rule() ? map.rule()->keys(query, n_key) : KeyRange{0, n_key};
  }
  AttentionMap a_, b_;  // own the rules
};

}  // namespace

AttentionMap map_difference(const AttentionMap& after, const AttentionMap& before) {
  if (after.n_query() != before.n_query() || after.n_key() != before.n_key())
    throw Error("difference of two maps", fmt::format("{} × {} weights in both", after.n_query(), after.n_key()),
                fmt::format("{} × {}", before.n_query(), before.n_key()));
  Tensor weights = after.to_dense().copy();
  const Tensor old = before.to_dense();
  for (Index i = 0; i < weights.dim(0); ++i)
    for (Index j = 0; j < weights.dim(1); ++j) weights.ref(i, j) -= old.at(i, j);
  AttentionMap::Place place = after.place();
  place.kind = MapKind::difference;
  const auto stats = stats_of_weights(weights, nullptr, place.offset);
  return AttentionMap::dense(place, std::move(weights), std::make_shared<SeenByEither>(after, before), stats);
}

}  // namespace headscope
