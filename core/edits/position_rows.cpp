#include "core/edits/position_rows.h"

#include <cmath>

#include "core/attention/positions/alibi.h"
#include "core/attention/positions/dual_chunk.h"
#include "core/attention/positions/learned.h"
#include "core/attention/positions/sinusoidal.h"
#include "core/base/nth.h"
#include "core/model/weights.h"

namespace headscope {

namespace {

/// The mean length of the rows of what sinusoids take the place of, or are added to, divided by that of a sinusoid.
double sinusoid_size(const Tensor& rows) {
  const Tensor norms = row_norms(rows);
  double mean = 0;
  for (Index i = 0; i < norms.dim(0); ++i) mean += static_cast<double>(norms.at(i)) / static_cast<double>(norms.dim(0));
  return mean / std::sqrt(static_cast<double>(rows.dim(1)) / 2);
}

/// out[i, heads, :] = `x` turned to its place, `shift` further on; queries as long as they are there.
void rotate_rows(const Tensor& x, const RotaryConfig& config, Index shift, std::pair<Index, Index> heads,
                 const RowsReached& rows, bool queries, Tensor& out) {
  const std::vector<double> theta = rotary_frequencies(config, static_cast<int>(x.dim(2)));
  RotaryTable table = rotary_table(theta, rows.offset + shift, x.dim(0), rotary_magnitude(config));
  if (queries) table = of_queries(table, config, rows.offset + shift, x.dim(2));
  const Index pairs = table.cosine.dim(1);
  for (Index i = rows.first; i <= rows.last; ++i)
    for (Index h = heads.first; h < heads.second; ++h) {
      for (Index p = 0; p < pairs; ++p) {
        const auto [left, right] = rotary_pair(p, 2 * pairs, config.layout);
        const float a = x.at(i, h, left), b = x.at(i, h, right), c = table.cosine.at(i, p), s = table.sine.at(i, p);
        out.ref(i, h, left) = a * c - b * s;
        out.ref(i, h, right) = a * s + b * c;
      }
      for (Index c = 2 * pairs; c < x.dim(2); ++c) out.ref(i, h, c) = x.at(i, h, c);
    }
}

}  // namespace

bool positions_act_at(const PositionsHeld& held, const ModelConfig& model, SiteKind site) {
  const PositionKind kind = model.position;
  // Without a rotation of its own a model is turned where its queries and keys meet.
  if (kind != PositionKind::rotary && (site == meeting_site(model, false) || site == meeting_site(model, true)))
    return held.own && held.own->method == SetPositions::Method::rope;
  const auto own_is = [&](SetPositions::Method method) { return held.own && held.own->method == method; };
  switch (site) {
    case SiteKind::embed:
      return kind != PositionKind::learned && own_is(SetPositions::Method::sinusoidal);
    case SiteKind::pos_embed:
      return kind == PositionKind::learned && (held.own || held.shift != 0);
    case SiteKind::rot_q:
    case SiteKind::rot_k:
      return kind == PositionKind::rotary && !own_is(SetPositions::Method::chunks) && (held.own || held.shift != 0);
    case SiteKind::attn_scores:
      return own_is(SetPositions::Method::chunks);
    default:
      return false;
  }
}

void set_positions(const PositionsHeld& held, const Model& model, Site at, const BeforeRotation& before,
                   const Tensor& given, std::pair<Index, Index> heads, const RowsReached& rows, Tensor& value) {
  const ModelConfig& config = model.config();
  const auto width = static_cast<int>(value.dim(-1));
  const SiteKind site = at.kind;
  const Index start = rows.offset + held.shift;  // where row 0 stands
  switch (site) {
    case SiteKind::embed: {
      const auto size = static_cast<float>(sinusoid_size(given));
      const Tensor table = sinusoidal_positions(start, value.dim(0), width);
      for (Index i = rows.first; i <= rows.last; ++i)
        for (Index c = 0; c < width; ++c) value.ref(i, c) += size * table.at(i, c);
      return;
    }
    case SiteKind::pos_embed: {
      const bool sinusoids = held.own && held.own->method == SetPositions::Method::sinusoidal;
      const Tensor learned = model.weights().position_embedding;
      const Tensor table = sinusoids ? sinusoidal_positions(start, value.dim(0), width) : Tensor();
      const auto size = sinusoids ? static_cast<float>(sinusoid_size(learned)) : 0.0f;
      for (Index i = rows.first; i <= rows.last; ++i)
        for (Index c = 0; c < width; ++c)
          value.ref(i, c) = sinusoids ? size * table.at(i, c) : held.own ? 0.0f : learned.at(start + i, c);
      return;
    }
    case SiteKind::q:
    case SiteKind::k:
    case SiteKind::q_normed:
    case SiteKind::k_normed:
      return rotate_rows(given, rotary_of(*held.own, config), held.shift, heads, rows, false, value);
    case SiteKind::rot_q:
    case SiteKind::rot_k: {
      const bool queries = site == SiteKind::rot_q;
      const Tensor& plain = queries ? before.q : before.k;
      if (!config.turns(at.layer)) {  // where queries may grow all the same
        if (config.unturned_growth <= 0 || !queries) return;
        if (!held.own || held.own->method == SetPositions::Method::rope)
          return rotate_rows(plain,
                             {.original_context = config.unturned_floor,
                              .query_growth = config.unturned_growth,
                              .growth_from = 1,
                              .pairs = 0},
                             held.shift, heads, rows, true, value);
      }
      if (!held.own || held.own->method == SetPositions::Method::rope)
        return rotate_rows(plain,
                           in_text(held.own ? rotary_of(*held.own, config, at.layer) : config.rotary_of(at.layer),
                                   rows.offset + value.dim(0)),
                           held.shift, heads, rows, site == SiteKind::rot_q, value);
      for (Index i = rows.first; i <= rows.last; ++i)
        for (Index h = heads.first; h < heads.second; ++h)
          for (Index c = 0; c < width; ++c) value.ref(i, h, c) = plain.at(i, h, c);
      return;
    }
    default:
      return;
  }
}

RotaryTable distance_table(const RotaryConfig& config, int d_head, Index count) {
  return rotary_table(rotary_frequencies(config, d_head), 0, count, std::pow(rotary_magnitude(config), 2));
}

float score_at_distance(const BeforeRotation& before, const RotaryTable& table, RotaryLayout layout, Index query,
                        Index head, Index key, Index key_head, Index distance) {
  const Index pairs = table.cosine.dim(1);
  float sum = 0;
  for (Index p = 0; p < pairs; ++p) {
    const auto [left, right] = rotary_pair(p, 2 * pairs, layout);
    const float a = before.q.at(query, head, left), b = before.q.at(query, head, right),
                x = before.k.at(key, key_head, left), y = before.k.at(key, key_head, right);
    sum += table.cosine.at(distance, p) * (a * x + b * y) + table.sine.at(distance, p) * (a * y - b * x);
  }
  for (Index c = 2 * pairs; c < before.q.dim(2); ++c)
    sum += before.q.at(query, head, c) * before.k.at(key, key_head, c);
  return sum;
}

double alibi_of_query(const ModelConfig& model, Index head, Index position) {
  const double slope = nth(model.alibi_slopes, head);
  return model.alibi_unit > 0 ? rounded_alibi(slope, model.alibi_unit, position)
                              : slope * static_cast<double>(position);
}

void rescore_in_chunks(const BeforeRotation& before, const ModelConfig& config, int layer, Index chunk, Index head,
                       const HeadRule& rule, int first, int last, Tensor& scores) {
  if (!config.turns(layer)) return;
  const Index n = before.k.dim(0), kv = config.dims.kv_of(static_cast<int>(head), layer);
  const RotaryConfig own = in_text(config.rotary_of(layer), n);
  const RotaryTable table = distance_table(own, config.dims.widths_of(layer).d_head, config.context);
  for (Index i = first; i <= last; ++i) {
    const KeyRange keys = rule.rule->keys(i, n);
    for (Index j = keys.begin; j < std::min(keys.end, i + 1); ++j) {
      const Index distance = dual_chunk_distance(i, j, chunk, config.context);
      scores.ref(head, i, j) = rule.scale * static_cast<float>(query_growth(own, i)) *
                               score_at_distance(before, table, own.layout, i, head, j, kv, distance);
    }
    if (keys.size() > 0 && !rule.rule->plain())
      rule.rule->apply(i, keys.begin, {&scores.ref(head, i, keys.begin), static_cast<std::size_t>(keys.size())});
  }
}

}  // namespace headscope
