// The pictures of a mechanism: every matrix is made ready where `build` runs.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/render/code_path.h"
#include "app/render/machine_pictures.h"
#include "app/render/mechanism_steps_picture.h"
#include "app/render/memory_picture.h"
#include "app/state/mechanism_controller.h"
#include "app/state/page_picture.h"
#include "core/attention/mechanism_math.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/matrix_flow.h"

namespace headscope {

std::string place(const MechanismPage& page, MechanismAxis axis, Index position) {
  const std::vector<std::string>* names = axis == MechanismAxis::query ? &page.names.queries
                                          : axis == MechanismAxis::key ? &page.names.keys
                                                                       : nullptr;
  if (!names || position >= static_cast<Index>(names->size())) return fmt::format("{}", position);
  return page.trace ? fmt::format("{} {}", nth(*names, position), position) : nth(*names, position);
}

std::string row_place(const MechanismPage& page, const MechanismStep& step, Index row) {
  return row < static_cast<Index>(step.row_names.size()) ? nth(step.row_names, row)
                                                         : place(page, step.rows, step.first_row + row);
}

std::string column_place(const MechanismPage& page, const MechanismStep& step, Index column) {
  return column < static_cast<Index>(step.column_names.size()) ? nth(step.column_names, column)
                                                               : place(page, step.columns, step.first_column + column);
}

namespace {

using Page = std::shared_ptr<const MechanismPage>;

Tensor one_row(const Tensor& x, Index row) {
  return x.slice(0, row, row + 1).copy();
}

/// The cells of the rows behind row `t`.
std::vector<std::uint8_t> after(const Tensor& x, Index t) {
  std::vector<std::uint8_t> hidden(static_cast<std::size_t>(x.size()), 0);
  std::fill(hidden.begin() + static_cast<std::ptrdiff_t>((t + 1) * x.dim(1)), hidden.end(), std::uint8_t{1});
  return hidden;
}

MatrixFlow comparison_flow(const MechanismPage& page, Room room) {
  MatrixFlow flow;
  flow.width = room.width, flow.side = room.height;
  flow.arrows = false;
  // What has weight where the mask hides it must be seen.
  const std::vector<std::uint8_t> own = page.looks_ahead ? std::vector<std::uint8_t>{} : page.hidden;
  const Tensor* values[] = {&page.comparison.reference.weights, &page.result.weights, &page.comparison.difference};
  for (const ShownMatrix& each : compared_matrices(page)) {
    const std::size_t i = flow.matrices.size();
    flow.matrices.push_back(
        {each.id, each.title, each.formula, *values[i], i == 0 ? page.hidden : own, {}, {}, said("weight"), false});
  }
  for (const std::size_t i : {0, 1})
    if (i == 0 || page.shares)
      flow.matrices[i].low = 0, flow.matrices[i].high = 1, flow.matrices[i].unit = said("share");
  // Rounding is no difference: its colours would say otherwise.
  const double most = std::max(page.most_different, 1e-3);
  flow.matrices[2].low = -most, flow.matrices[2].high = most;
  for (FlowMatrix& each : flow.matrices) each.rows = page.names.queries, each.columns = page.names.keys;
  return flow;
}

MatrixFlow step_flow(const MechanismPage& page, const std::set<std::string>& folded, Room room) {
  MatrixFlow flow;
  flow.width = room.width;
  // As many to a line as stay readable, over the whole width.
  const double across = std::max(1.0, std::floor((room.width + 30) / 200));
  flow.side = std::clamp(std::floor((room.width + 30) / across) - 30, 120.0, 260.0);
  for (const MechanismStep& step : page.result.steps) {
    flow.matrices.push_back(flow_matrix(step, page.names));
    flow.matrices.back().folded = folded.contains(step.id);
  }
  return flow;
}

MatrixFlow state_flow(const MechanismPage& page, Index t, Room room) {
  MatrixFlow flow;
  flow.width = room.width;
  flow.side = room.height;
  flow.arrows = false;
  const Recurrence& whole = *page.recurrence;
  const Tensor& state = nth(whole.states, t);
  const auto values_of = [&](const std::string& id) -> Tensor {
    if (id == "now-k") return one_row(page.input.k, t);
    if (id == "now-v") return one_row(page.input.v, t);
    if (id == "now-q") return one_row(page.input.q, t);
    if (id == "now-gate") return one_row(whole.gates, t).transpose(0, 1).copy();
    return id == "state" ? state : id == "recurrent" ? whole.output : page.result.output;
  };
  // z, where it is kept, is far larger than S: it is drawn on S's scale, cut off.
  double largest = 1e-9;
  for (Index i = 0; i < state.dim(0); ++i)
    for (Index c = 0; c < page.input.d_v(); ++c)
      largest = std::max(largest, std::abs(static_cast<double>(state.at(i, c))));
  // Both outputs on one scale, which stays as the tokens go by.
  double most = 1e-9;
  for (const Tensor* each : {&whole.output, &page.result.output})
    for (const float value : each->values())
      if (std::isfinite(value)) most = std::max(most, std::abs(static_cast<double>(value)));
  for (const ShownMatrix& each : state_matrices(page)) {
    FlowMatrix m{each.id, each.title, each.formula, values_of(each.id), {}, {}, {}, said("value"), false};
    m.new_line = flow.matrices.size() == 3;
    if (m.id == "now-gate") m.low = 0, m.high = 1, m.unit = said("share");
    if (m.id == "state") m.low = -largest, m.high = largest;
    if (m.id == "recurrent" || m.id == "parallel") m.low = -most, m.high = most;
    if (m.id == "recurrent") m.masked = after(whole.output, t);
    if (m.id == "recurrent" || m.id == "parallel") m.rows = page.names.of(MechanismAxis::query, 0, whole.output.dim(0));
    flow.matrices.push_back(std::move(m));
  }
  return flow;
}

Scene machine_scene(const MechanismPage& page, Room room, const Style& style) {
  const Mechanism& m = *page.choice.mechanism;
  if (page.result.ring) {
    WorkerRing ring = worker_ring(*page.result.ring, m);
    ring.width = room.width, ring.height = room.height;
    return worker_ring_scene(ring, style);
  }
  if (page.result.memory) {
    BoxDiagram diagram = memory_diagram(*page.result.memory);
    diagram.width = room.width;
    return box_diagram_scene(diagram, style);
  }
  TileMachine tiles = tile_machine(
      *page.result.tiles, m, [&](Index row) { return place(page, MechanismAxis::query, row); }, style.theme);
  tiles.width = room.width, tiles.height = room.height;
  return tile_machine_scene(tiles, style);
}

/// Which curve "curve 2" is; nullopt = none that the page has.
std::optional<std::size_t> curve_of(const MechanismPage& page, std::string_view id) {
  constexpr std::string_view begin = "curve ";
  std::size_t which = 0;
  if (!id.starts_with(begin)) return std::nullopt;
  const auto [end, failure] = std::from_chars(id.data() + begin.size(), id.data() + id.size(), which);
  if (failure != std::errc() || end != id.data() + id.size() || which >= page.result.curves.size()) return std::nullopt;
  return which;
}

}  // namespace

std::vector<ShownMatrix> compared_matrices(const MechanismPage& page) {
  return {{"reference", said("Softmax (reference)"), "softmax(" + mechanism::scores_text(page.input) + ")"},
          {"effective", said("Effective weights"), said("what each value counts for")},
          {"difference", said("Difference"), said("this − softmax")}};
}

std::vector<ShownMatrix> step_matrices(const MechanismPage& page) {
  std::vector<ShownMatrix> shown;
  for (const MechanismStep& step : page.result.steps)
    shown.push_back({step.id, said(step.title), said(step.formula), step.rows, step.columns, &step,
                     step.columns == MechanismAxis::key ? "" : said("no part of what this row sees")});
  return shown;
}

std::vector<ShownMatrix> state_matrices(const MechanismPage& page) {
  using enum MechanismAxis;
  const Recurrence& r = *page.recurrence;
  std::vector<ShownMatrix> shown{
      {"now-k", "kₜ", said("the key of this token"), other, dimension},
      {"now-v", "vₜ", said("is written under it"), other, dimension},
      {"now-q", "qₜ", said("reads the state"), other, dimension},
      {"state", r.last_column_is_z ? said("State Sₜ | zₜ") : said("State Sₜ"),
       r.last_column_is_z ? said("last column: zₜ, on the scale of Sₜ") : said("what is kept of the past"), other,
       other},
      {"recurrent", said("Outputs, recurrent"), said("up to t"), query, dimension, nullptr,
       said("comes after token t")}};
  if (r.gates.defined())  // beside the state, row by row
    shown.insert(shown.begin() + 3, {"now-gate", "Gₜ", said("kept of each row of Sₜ₋₁"), other, other});
  if (page.recurrent_gap)
    shown.push_back({"parallel", said("Outputs, parallel"), said("of the whole text at once"), query, dimension});
  return shown;
}

PagePicture mechanism_picture(const MechanismController& controller, std::string_view id) {
  const Page page = controller.page();
  if (!page) return {};
  if (id == "mechanism compare" && page->result.weights.defined())
    return {page, "",
            [page](Room room, const Style& style) { return matrix_flow_scene(comparison_flow(*page, room), style); }};
  if (id == "mechanism steps" && !page->result.steps.empty())
    return {page, fmt::format("{}", fmt::join(controller.folded, " ")),
            [page, folded = controller.folded](Room room, const Style& style) {
              return matrix_flow_scene(step_flow(*page, folded, room), style);
            }};
  if (id == "mechanism states" && page->recurrence) {
    const Index t = controller.shown_token();
    return {page, fmt::format("{}", t),
            [page, t](Room room, const Style& style) { return matrix_flow_scene(state_flow(*page, t, room), style); }};
  }
  if (id == "mechanism path" && page->result.path)
    return {page, "",
            [page](Room room, const Style& style) { return code_path_scene(*page->result.path, room.width, style); }};
  if (id == "mechanism machine" && (page->result.tiles || page->result.ring || page->result.memory))
    return {page, "", [page](Room room, const Style& style) { return machine_scene(*page, room, style); }};
  if (const auto which = curve_of(*page, id))
    return {page, "", [page, which = *which](Room room, const Style& style) {
              // The other axis is named above: below, its name would meet those of the lines.
              return line_chart_scene(curve_chart(nth(page->result.curves, static_cast<Index>(which)), room.width,
                                                  room.height, style.theme),
                                      style);
            }};
  return {};
}

}  // namespace headscope
