#include "app/render/disentangled_picture.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/attention/positions/disentangled.h"
#include "core/base/random.h"
#include "core/base/words.h"
#include "viz/scene/compose.h"
#include "viz/scene/matrix_map.h"

namespace headscope {

namespace {
constexpr Index most_tokens = 48;
constexpr double map_gap = 36;

DisentangledScores scores_of(const Tensor& q, const Tensor& k, const AttentionRule& rule, Index offset, double scale,
                             double heat) {
  const Index n = std::min(q.dim(0), most_tokens), keys = std::min(k.dim(0), most_tokens);
  DisentangledScores out;
  for (Tensor* each : {&out.contents, &out.to_position, &out.from_position, &out.row}) *each = Tensor::zeros({n, keys});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < keys; ++j) {
      double sum = 0;
      for (Index c = 0; c < q.dim(1); ++c) sum += static_cast<double>(q.at(i, c)) * static_cast<double>(k.at(j, c));
      const DistanceTerms terms = rule.distance_terms(offset + i, j).value_or(DistanceTerms{});
      out.contents.ref(i, j) = static_cast<float>(scale * sum);
      out.to_position.ref(i, j) = static_cast<float>(heat * terms.content_to_position);
      out.from_position.ref(i, j) = static_cast<float>(heat * terms.position_to_content);
      out.row.ref(i, j) = static_cast<float>(terms.row);
    }
  return out;
}
}  // namespace

DisentangledScores disentangled_scores(const AttentionMap& map, double scale, std::string source) {
  DisentangledScores out =
      scores_of(map.q(), map.k(), *map.rule(), map.place().offset, scale, scale / static_cast<double>(map.scale()));
  out.source = std::move(source);
  return out;
}

DisentangledScores drawn_disentangled(const Tensor& q, const Tensor& k, double scale, int span, std::uint64_t seed) {
  const Index n = std::min(q.dim(0), most_tokens), d = q.dim(1);
  Random random(seed);
  const auto table = [&] {
    Tensor rows = Tensor::uninitialized({Index{2} * span, d});
    for (float& value : rows.mutable_values())
      value = static_cast<float>(static_cast<double>(random.normal()) / std::sqrt(static_cast<double>(d)));
    return rows;
  };
  scale /= std::sqrt(3.0);  // three products in the place of one
  HeadRule rule{full_rule(), static_cast<float>(scale)};
  const Tensor keys = table(), queries = table();
  rule.distances = std::make_shared<const DistanceVectors>(DistanceVectors{keys, queries, span, 0});
  const RulePtr met = met_rule(rule, q.slice(0, 0, n), k.slice(0, 0, n), 0);
  DisentangledScores out = scores_of(q.slice(0, 0, n), k.slice(0, 0, n), *met, 0, scale, 1);
  out.source = say("K_r and Q_r drawn from N(0, 1/√d), seed {}: a trained model would have learnt them", seed);
  return out;
}

Scene disentangled_picture(const DisentangledScores& scores, Room room, const Style& style) {
  const double width = std::floor((room.width - 2 * map_gap) / 3), height = std::floor((room.height - map_gap) / 2);
  Tensor sum = scores.contents.copy();
  for (Index i = 0; i < sum.dim(0); ++i)
    for (Index j = 0; j < sum.dim(1); ++j) sum.ref(i, j) += scores.to_position.at(i, j) + scores.from_position.at(i, j);
  float largest = 1e-6f;  // of all four: parts are compared
  for (const Tensor* each :
       std::initializer_list<const Tensor*>{&scores.contents, &scores.to_position, &scores.from_position, &sum})
    for (const float value : each->values()) largest = std::max(largest, std::abs(value));
  const auto map = [&](const Tensor& values, const char* title, const char* bar, bool score = true) {
    MatrixMap made;
    made.values = values;
    if (score) made.low = -largest, made.high = largest;
    made.title = title;
    made.bar = bar;
    made.columns = said("key");
    made.rows = said("query");
    made.width = width;
    made.height = height;
    return matrix_map_scene(made, style);
  };
  const Scene upper[] = {map(scores.contents, said("q_i·k_j: content → content"), said("score")),
                         map(scores.to_position, said("q_i·K_r: content → position"), said("score")),
                         map(scores.from_position, said("k_j·Q_r: position → content"), said("score"))};
  const Scene lower[] = {map(sum, said("All three: the scores"), said("score")),
                         map(scores.row, said("δ: the row of the distance"), said("row"), false)};
  const Scene rows[] = {beside(upper, map_gap), beside(lower, map_gap)};
  Scene scene = below(rows, map_gap);
  scene.description = scores.source;
  return scene;
}

}  // namespace headscope
