#pragma once
// DeBERTa's three products of contents and distances (core/attention/positions/disentangled.h), as maps.

#include <string>

#include "app/render/positions_picture.h"
#include "core/trace/attention_map.h"

namespace headscope {

/// Of the first tokens, (query, key) each, scaled as the scores are; `row` is δ.
struct DisentangledScores {
  Tensor contents, to_position, from_position, row;
  std::string source;  ///< whose they are
};

/// Those of a head of a model that has them, at `scale` in place of the map's. REQUIRES a factored map.
DisentangledScores disentangled_scores(const AttentionMap& map, double scale, std::string source);
/// Of q, k (token, d) with K_r and Q_r drawn from N(0, 1/√d), 2 · span rows: what a model that has none was not given.
/// `scale`: of scores of contents alone; here it is divided by √3.
DisentangledScores drawn_disentangled(const Tensor& q, const Tensor& k, double scale, int span, std::uint64_t seed);

/// Content → content, content → position, position → content, their sum, and δ.
Scene disentangled_picture(const DisentangledScores& scores, Room room, const Style& style);

}  // namespace headscope
