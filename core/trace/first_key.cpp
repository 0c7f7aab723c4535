#include "core/trace/first_key.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace headscope {
namespace {

/// Another rule (or none known), key 0 hidden.
class HideFirst final : public AttentionRule {
 public:
  explicit HideFirst(AttentionMap source) : source_(std::move(source)) {}
  KeyRange keys(Index query, Index n_key) const override {
    const KeyRange usual = source_.rule() ? source_.rule()->keys(query, n_key) : KeyRange{0, n_key};
    if (usual.begin > 0) return usual;
    return usual.end <= 1 ? KeyRange{0, 0} : KeyRange{1, usual.end};
  }
  bool plain() const override { return !source_.rule() || source_.rule()->plain(); }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if (source_.rule()) source_.rule()->apply(query, first_key, scores);
  }
  std::string describe() const override {
    return (source_.rule() ? source_.rule()->describe() + ", " : "") + "first key hidden";
  }

 private:
  AttentionMap source_;  // owns the rule
};

}  // namespace

AttentionMap without_first_key(const AttentionMap& map, bool renormalize) {
  Tensor weights = map.to_dense();
  for (Index i = 0; i < weights.dim(0); ++i) {
    weights.ref(i, 0) = 0;
    if (!renormalize) continue;
    double rest = 0;
    for (Index j = 1; j < weights.dim(1); ++j) rest += static_cast<double>(weights.at(i, j));
    for (Index j = 1; j < weights.dim(1); ++j)
      weights.ref(i, j) = rest > 1e-30 ? static_cast<float>(static_cast<double>(weights.at(i, j)) / rest) : 0.0f;
  }
  const auto stats = stats_of_weights(weights, nullptr, map.place().offset);
  return AttentionMap::dense(map.place(), std::move(weights), std::make_shared<HideFirst>(map), stats);
}

}  // namespace headscope
