#include "app/render/reading_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/nth.h"

#include "core/base/words.h"
#include "core/trace/model_heads.h"
#include "viz/scene/head_map.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

std::string percent(double p) {
  return p >= 0.0995 ? fmt::format("{:.0f}%", 100 * p) : p >= 0.001 ? fmt::format("{:.1f}%", 100 * p) : "·";
}
}  // namespace

Matrix lens_matrix(const LogitLens& lens, std::shared_ptr<const Trace> trace, LensColor color, const TokenName& name) {
  Matrix out;
  const auto stages = static_cast<Index>(lens.stages.size());
  out.values = Tensor::full({stages, lens.positions}, no_number);
  out.low = 0;
  for (Index s = 0; s < stages; ++s) {
    out.rows.push_back(said(nth(lens.stages, s).name));
    for (Index i = 0; i < lens.positions; ++i) {
      const NextToken& top = lens.cell(s, i)[0];
      std::string text = name(top.id);
      float value = no_number;
      const bool followed = !lens.followed.empty() && nth(lens.followed, i) >= 0;
      switch (color) {
        case LensColor::probability:
          value = static_cast<float>(top.probability);
          break;
        case LensColor::entropy:
          value = lens.entropy.at(s, i);
          break;
        case LensColor::kl:
          value = lens.kl.at(s, i);
          break;
        case LensColor::followed:
          text.clear();
          if (!followed) break;
          value = lens.followed_probability.at(s, i);
          text = percent(static_cast<double>(value));
          break;
        case LensColor::rank:
          text.clear();
          if (!followed) break;
          value = 1 / static_cast<float>(lens.rank(s, i));
          text = std::to_string(lens.rank(s, i));
          break;
      }
      out.values.ref(s, i) = value;
      out.texts.push_back(std::move(text));
    }
  }
  constexpr const char* units[] = {
      to_say("probability of the most probable token"), to_say("entropy of the answer, nats"),
      to_say("KL(the model's answer ‖ this stage), nats"), to_say("probability of the followed token"),
      to_say("1 ÷ rank of the followed token; its rank is written in the cell")};
  out.unit = said(nth(units, color));
  if (color != LensColor::entropy && color != LensColor::kl) out.high = 1;
  out.tokens = std::move(trace);
  out.row_title = said("stage ↓");
  out.column_title = said("position →");
  out.provenance = say("logit lens: norm_final(residual) · W_U of every residual stream, {}", out.unit);
  return out;
}

Scene lens_trajectory(const LogitLens& lens, Index position, double width, double height, const Style& style) {
  LineChart chart;
  chart.width = width;
  chart.height = height;
  chart.y_title = said("probability and 1 ÷ rank, embedding → answer");
  chart.y_low = 0;
  chart.y_high = 1;
  ChartSeries probability{said("probability"), style.theme.accent, {}, {}},
      rank{said("1 ÷ rank"), style.theme.muted, {}, {}};
  for (Index s = 0; s < static_cast<Index>(lens.stages.size()); ++s) {
    chart.x_ticks.push_back(static_cast<double>(s));
    chart.x_labels.push_back(said(nth(lens.stages, s).name));
    probability.x.push_back(static_cast<double>(s));
    rank.x.push_back(static_cast<double>(s));
    const bool followed = !lens.followed.empty() && nth(lens.followed, position) >= 0;
    probability.y.push_back(followed ? static_cast<double>(lens.followed_probability.at(s, position)) : std::nan(""));
    rank.y.push_back(followed ? 1.0 / lens.rank(s, position) : std::nan(""));
  }
  chart.series = {rank, probability};
  return line_chart_scene(chart, style);
}

Matrix attribution_matrix(const LogitAttribution& found, const ModelDims& dims) {
  using Kind = AttributionPart::Kind;
  Matrix out;
  bool bias = false;
  for (const AttributionPart& part : found.parts) bias |= part.kind == Kind::attention_bias;
  const bool mlp = dims.d_mlp > 0;
  const int heads = dims.most_heads();
  const int columns = heads + bias + mlp;
  out.values = Tensor::full({dims.layers, columns}, no_number);
  out.pending.assign(static_cast<std::size_t>(dims.layers * columns), 1);
  out.pending_text = to_say("no such part");
  for (const AttributionPart& part : found.parts) {
    const int column = part.kind == Kind::head             ? part.head
                       : part.kind == Kind::attention_bias ? heads
                       : part.kind == Kind::mlp            ? heads + bias
                                                           : -1;
    if (column < 0) continue;
    out.values.ref(part.layer, column) = static_cast<float>(part.value);
    nth(out.pending, part.layer * columns + column) = 0;
  }
  if (std::ranges::count(out.pending, 1) == 0) out.pending.clear();
  for (int layer = 0; layer < dims.layers; ++layer) out.rows.push_back(std::to_string(layer));
  for (int head = 0; head < heads; ++head) out.columns.push_back(std::to_string(head));
  if (bias) out.columns.emplace_back(said("bias"));
  if (mlp) out.columns.emplace_back("MLP");
  out.row_title = said("layer ↓");
  out.column_title = said("head →");
  out.diverging = true;
  out.unit = found.of.against ? said("part of the logit difference") : said("part of the logit");
  out.provenance = said("direct logit attribution, the final norm's scale frozen");
  return out;
}

Matrix source_matrix(const LogitAttribution& found, std::shared_ptr<const Trace> trace,
                     const std::vector<HeadId>& heads) {
  Matrix out;
  const Index n = found.by_source.dim(1);
  const bool ahead = trace->sees_later_keys();
  out.values = Tensor::full({static_cast<Index>(heads.size()), n}, no_number);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const auto [layer, head] = heads[i];
    out.rows.push_back(to_string(HeadId{layer, head}));
    for (Index key = 0; key < n; ++key) {
      out.pending.push_back(!ahead && key > found.of.position);
      out.values.ref(static_cast<Index>(i), key) =
          found.by_source.at(head_index(trace->model.dims, {layer, head}), key);
    }
  }
  out.pending_text = said("after the position");
  out.tokens = std::move(trace);
  out.row_title = said("head ↓");
  out.column_title = said("read from →");
  out.diverging = true;
  out.unit = said("part of the logit, by the position it was read from");
  out.provenance = said("α · (v · W_O · d): a head's part, split over the positions");
  return out;
}

Scene weighted_scene(const Trace& trace, const ModelWeights& weights, Weighting weighting, HeadMapOptions options,
                     const Style& style) {
  Trace one;
  one.model = trace.model;
  one.tokens = trace.tokens;
  one.maps.push_back(weighted_map(trace, weights, options.head, weighting));
  options.bare = true;
  constexpr const char* units[] = {to_say("α, attention"), to_say("α ‖v‖, what is mixed in"),
                                   to_say("‖α v W_O‖, what is written")};
  const BlockWeights& block = nth(weights.blocks, options.head.layer);
  const bool output = weighting == Weighting::output;
  options.weights = output && block.z_gate.defined()        ? said("‖α (v ∘ σ(g)) W_O‖, what is written")
                    : output && block.z_norm.gain.defined() ? said("‖α (v ∘ γ) W_O‖ ÷ rms(z), what is written")
                                                            : said(nth(units, weighting));
  return head_map_scene(one, options, style);
}

Matrix circuit_matrix(const TokenCircuits& found, Circuit circuit, const TokenName& name) {
  Matrix out;
  const bool ov = circuit == Circuit::ov;
  out.values = ov ? found.ov : found.qk;
  // The labels of an axis are those of a text: this one has each token once.
  const auto columns = std::make_shared<Trace>();
  for (const std::int32_t token : found.tokens) {
    out.rows.push_back(name(token));
    columns->tokens.push_back({token, "", name(token)});
  }
  out.tokens = columns;
  out.row_title = ov ? said("looked at ↓") : said("query ↓");
  out.column_title = ov ? said("made more likely →") : said("key →");
  out.diverging = true;
  out.unit = ov ? said("OV circuit: change of the logit, in units of the final norm's scale")
                : said("QK circuit: score q·k of the two tokens alone");
  out.provenance = out.unit;
  return out;
}

Matrix composition_matrix(const Composition& found, CompositionKind kind) {
  Matrix out;
  const Tensor& all = kind == CompositionKind::q ? found.q : kind == CompositionKind::k ? found.k : found.v;
  // The last layer writes for nobody, the first reads from nobody.
  Index per_layer = 0;
  while (per_layer < static_cast<Index>(found.heads.size()) && nth(found.heads, per_layer).layer == 0) ++per_layer;
  const Index n = all.dim(0);
  if (n > per_layer) {
    out.values = all.slice(0, 0, n - per_layer).slice(1, per_layer, n).copy();
    for (Index i = 0; i < n - per_layer; ++i) out.rows.push_back(to_string(nth(found.heads, i)));
    for (Index i = per_layer; i < n; ++i) out.columns.push_back(to_string(nth(found.heads, i)));
  } else {
    out.values = Tensor::full({1, 1}, no_number);
  }
  for (const float v : out.values.values()) out.pending.push_back(std::isnan(v));
  out.pending_text = said("not in an earlier layer");
  out.row_title = said("writes ↓");
  out.column_title = said("reads →");
  out.low = 0;
  constexpr const char* names[] = {"Q", "K", "V"};
  out.unit = say("{}-composition; {:.3f} ± {:.3f} by chance ({} random pairs, seed {})", nth(names, kind),
                 found.chance.mean, found.chance.deviation, found.chance.samples, found.chance.seed);
  out.provenance = said("‖W_A W_B‖ ÷ (‖W_A‖ ‖W_B‖), Frobenius, the norms' gains folded in");
  return out;
}

Matrix token_matrix(const Tensor& values, std::shared_ptr<const Trace> trace, std::string unit) {
  Matrix out;
  out.values = values;
  const bool ahead = trace->sees_later_keys();
  for (Index i = 0; i < values.dim(0); ++i) {
    out.rows.push_back(token_label(*trace, i));
    for (Index j = 0; j < values.dim(1); ++j) out.pending.push_back(!ahead && j > i);
  }
  out.pending_text = said("masked");
  out.tokens = std::move(trace);
  out.row_title = said("query ↓");
  out.column_title = said("key →");
  out.unit = std::move(unit);
  out.provenance = out.unit;
  return out;
}

Matrix token_row(const std::vector<double>& values, std::shared_ptr<const Trace> trace, std::string unit) {
  Matrix out;
  out.values = Tensor::uninitialized({1, static_cast<Index>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    out.values.ref(0, static_cast<Index>(i)) = static_cast<float>(values[i]);
  out.rows = {""};
  out.tokens = std::move(trace);
  out.unit = std::move(unit);
  out.provenance = out.unit;
  out.largest_cell = 44;
  return out;
}

Scene v_shape_chart(const SinkReport& report, double width, double height, const Style& style) {
  LineChart chart;
  chart.width = width;
  chart.height = height;
  chart.y_title = report.ahead ? said("attention by place in the text, 1 = even; first token → last token")
                               : said("attention by place in the row, 1 = even; first token → the query itself");
  chart.y_low = 0;
  for (std::size_t layer = 0; layer < report.layers.size(); ++layer) {
    const double share =
        report.layers.size() > 1 ? static_cast<double>(layer) / static_cast<double>(report.layers.size() - 1) : 1;
    if (std::ranges::all_of(report.layers[layer].density, [](double part) { return std::isnan(part); })) continue;
    ChartSeries line{say("layer {}", layer), mix(style.theme.faint, style.theme.accent, share), {}, {}};
    for (std::size_t i = 0; i < report.layers[layer].density.size(); ++i) {
      line.x.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(report.layers[layer].density.size()));
      line.y.push_back(report.layers[layer].density[i]);
    }
    chart.series.push_back(std::move(line));
  }
  const auto parts = report.layers.empty() ? 0.0 : static_cast<double>(report.layers[0].density.size());
  chart.x_ticks = {0.5 / parts, 0.5, 1 - 0.5 / parts};
  chart.x_labels = {said("first token"), said("middle"), report.ahead ? said("last token") : said("the query")};
  return line_chart_scene(chart, style);
}

}  // namespace headscope
