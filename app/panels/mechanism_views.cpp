// The views of a mechanism: beside softmax, step by step, token by token.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "app/panels/mechanisms_workspace.h"
#include "app/widgets/controls.h"
#include "core/attention/mechanisms/spectrum.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/matrix.h"

namespace headscope {

namespace {

constexpr double seconds_per_token = 0.35;
// Singular values of every head take n³ each.
constexpr Index most_ranked_tokens = 256;

/// A position of the page's text as people read it.
std::string place(const MechanismPage& page, Index position) {
  return page.trace ? fmt::format("{} {}", token_label(*page.trace, position), position) : fmt::format("{}", position);
}

FlowMatrix flow_of(const MechanismStep& step) {
  FlowMatrix m{step.id, step.title, step.formula, step.value, step.masked, {}, {}, "value", false};
  if (step.range == MechanismStep::Range::probability) m.low = 0, m.high = 1, m.unit = "share";
  if (step.range == MechanismStep::Range::positive) m.low = 0;
  return m;
}

Tensor row_of(const Tensor& x, Index row) {
  return x.slice(0, row, row + 1).copy();
}

}  // namespace

/// Shows the flow, paints the hovered row and column over all of its matrices, and tells what the pointer is on.
void MechanismsWorkspace::matrices(Ui& ui, SceneSlot& slot, const char* id, const MatrixFlow& flow,
                                   const std::string& options) {
  const auto page = desk_.page();
  slot.want(explorer_, ui, page, options, [flow](const Look& look) { return matrix_flow_scene(flow, look); });
  const Scene* scene = slot.scene();
  if (!scene) return;
  SceneViewOptions how;
  how.fit_height = false;
  how.tooltips = false;
  const SceneTouch touch = slot.draw(ui, id, how, flow.width, scene->height);
  // What the rows and columns of each matrix are.
  const auto step_of = [&](const std::string& name) -> const MechanismStep* {
    for (const MechanismStep& step : page->result.steps)
      if (step.id == name) return &step;
    return nullptr;
  };
  const auto axes_of = [&](const std::string& name) {
    const MechanismStep* step = step_of(name);
    return step ? std::pair{step->rows, step->columns} : std::pair{MechanismAxis::query, MechanismAxis::key};
  };
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (const Mark& mark : scene->marks) {
    const auto* map = std::get_if<Heatmap>(&mark.shape);
    if (!map || mark.id == "colorbar" || map->rows() == 0 || map->columns() == 0) continue;
    const auto [rows, columns] = axes_of(mark.id);
    const auto frame = [&](const Rect& r, Color color) {
      draw.AddRect(touch.window({r.x, r.y}), touch.window({r.right(), r.bottom()}), col(color), 0, 0, ui.px(1));
    };
    const auto row = [&](Index i, Color color) {
      if (i >= map->rows()) return;
      const Rect cell = map->cell(i, 0);
      frame({map->rect.x, cell.y, map->rect.w, cell.h}, color);
    };
    const auto column = [&](Index j, Color color) {
      if (j >= map->columns()) return;
      const Rect cell = map->cell(0, j);
      frame({cell.x, map->rect.y, cell.w, map->rect.h}, color);
    };
    if (hovered_.query && rows == MechanismAxis::query) row(*hovered_.query, with_opacity(ui.theme.query, 0.8));
    if (hovered_.key && rows == MechanismAxis::key) row(*hovered_.key, with_opacity(ui.theme.key, 0.7));
    if (hovered_.key && columns == MechanismAxis::key) column(*hovered_.key, with_opacity(ui.theme.key, 0.7));
  }
  if (!touch.hovered || !touch.mark) return;
  if (touch.mark->id.starts_with("title.")) {
    if (touch.clicked) {
      const std::string name = touch.mark->id.substr(6);
      if (!folded_.erase(name)) folded_.insert(name);
    }
    tooltip(ui, {"click to fold or to open", touch.mark->tooltip});
    return;
  }
  if (!touch.cell || touch.mark->id == "colorbar") return;
  const auto* map = std::get_if<Heatmap>(&touch.mark->shape);
  if (!map) return;
  const auto [rows, columns] = axes_of(touch.mark->id);
  const Index i = touch.cell->row, j = touch.cell->column;
  if (rows == MechanismAxis::query) hovering_.query = i;
  if (rows == MechanismAxis::key) hovering_.key = i;
  if (columns == MechanismAxis::key) hovering_.key = j;
  const auto named = [&](MechanismAxis axis, Index at) {
    return axis == MechanismAxis::query || axis == MechanismAxis::key ? place(*page, at) : fmt::format("{}", at);
  };
  const MechanismStep* step = step_of(touch.mark->id);
  const auto found = std::ranges::find(flow.matrices, touch.mark->id, &FlowMatrix::id);
  std::vector<std::string> lines{fmt::format(
      "{} [{}, {}]", found != flow.matrices.end() ? found->title : touch.mark->id, named(rows, i), named(columns, j))};
  if (map->is_masked(i, j))
    lines.push_back("hidden: " + page->input.rule->describe());
  else {
    lines.push_back(fmt::format("{:.5g}", map->values.at(i, j)));
    if (step && step->explain && step->value.dim(0) == map->rows() && step->value.dim(1) == map->columns())
      lines.push_back(step->explain(i, j));
  }
  if (found != flow.matrices.end()) lines.push_back(found->formula);
  lines.push_back(page->source == MechanismSource::Kind::head
                      ? fmt::format("Q, K, V of blocks.{}.attn, head {}, F32", page->head.layer, page->head.head)
                      : "of the input on the right, F32");
  tooltip(ui, lines);
}

void MechanismsWorkspace::compare(Ui& ui) {
  const MechanismPage& page = *desk_.page();
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  MatrixFlow flow;
  flow.width = width;
  flow.arrows = false;
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  flow.side = std::clamp(std::min((width - 64) / 3, room - 330), 120.0, 340.0);
  const std::vector<std::uint8_t>& hidden = page.hidden;
  // What has weight where the mask hides it must be seen.
  const std::vector<std::uint8_t> own_hidden = page.looks_ahead ? std::vector<std::uint8_t>{} : hidden;
  double largest = 0, smallest = 0;
  for (const float w : page.result.weights.values())
    if (std::isfinite(w))
      largest = std::max(largest, static_cast<double>(w)), smallest = std::min(smallest, static_cast<double>(w));
  FlowMatrix reference{"reference",
                       "Softmax (reference)",
                       "softmax(Q Kᵀ ÷ √d)",
                       page.comparison.reference.weights,
                       hidden,
                       0.0,
                       1.0,
                       "share",
                       false};
  FlowMatrix own{
      "effective", "Effective weights", "what each value counts for", page.result.weights, own_hidden, {}, {}, "weight",
      false};
  // One scale with softmax where the weights are shares, too.
  if (smallest >= 0 && largest <= 1.0001) own.low = 0, own.high = 1, own.unit = "share";
  FlowMatrix difference{"difference", "Difference", "this − softmax", page.comparison.difference, own_hidden, {}, {},
                        "weight",     false};
  double most = 0;
  for (const float w : page.comparison.difference.values())
    if (std::isfinite(w)) most = std::max(most, std::abs(static_cast<double>(w)));
  // Rounding is no difference: its colours would say otherwise.
  most = std::max(most, 1e-3);
  difference.low = -most, difference.high = most;
  flow.matrices = {std::move(reference), std::move(own), std::move(difference)};
  matrices(ui, compare_, "mechanism compare", flow, fmt::format("{} {}", width, flow.side));
}

void MechanismsWorkspace::numbers(Ui& ui) {
  const MechanismPage& page = *desk_.page();
  const MechanismComparison& c = page.comparison;
  const auto entropy = [](double value) { return std::isnan(value) ? std::string("–") : fmt::format("{:.2f}", value); };
  struct Number {
    std::string name, value;
    std::vector<std::string> provenance;
  };
  std::vector<Number> all{
      {"output error ‖ΔO‖/‖O‖",
       fmt::format("{:.3g}", c.output_error < 2e-5 ? 0.0 : c.output_error),
       {"Frobenius norm of the outputs' difference ÷ that of softmax's output", fmt::format("{:.3e}", c.output_error)}},
      {"entropy",
       fmt::format("{} → {} nats", entropy(c.entropy_reference), entropy(c.entropy)),
       {"mean over the rows of −Σ p ln p, each row ÷ its sum", "softmax → this; – where a weight is negative"}},
      {"top-1 agreement",
       std::isnan(c.top1) ? "–" : fmt::format("{:.0f} %", 100 * c.top1),
       {"rows whose largest weight lies on the same key", "of the rows that see more than one key"}},
      {"rank (90 % energy)",
       c.rank90 < 0 ? "–" : fmt::format("{} → {}", c.rank90_reference, c.rank90),
       {"fewest singular values of the weights whose squares sum to 90 %",
        c.rank < 0 ? "not computed for more than 384 tokens"
                   : fmt::format("singular values above 10⁻⁶ of the largest: {} → {}", c.rank_reference, c.rank),
        "softmax → this"}},
      {"row sums",
       c.largest_sum - c.least_sum < 1e-4 ? fmt::format("{:.3g}", c.largest_sum)
                                          : fmt::format("{:.3g} … {:.3g}", c.least_sum, c.largest_sum),
       {"sum of the effective weights of a row, smallest and largest"}}};
  for (const MechanismFact& fact : page.result.facts) all.push_back({fact.name, fact.value, {fact.provenance}});
  const float room = ImGui::GetContentRegionAvail().x, left = ImGui::GetCursorPosX();
  float x = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float name = static_cast<float>(ui.fonts.width(all[i].name, ui.body())) * ui.scale;
    const float value = static_cast<float>(ui.fonts.width(all[i].value, ui.number())) * ui.scale;
    const float width = name + value + ui.px(6);
    if (i > 0 && x + width < room)
      ImGui::SameLine(left + x);
    else
      x = 0;
    ImGui::BeginGroup();
    ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.theme.muted));
    ImGui::TextUnformatted(all[i].name.c_str());
    ImGui::PopStyleColor();
    ImGui::SameLine(0, ui.px(6));
    {
      const UseFont font(ui, ui.number());
      ImGui::TextUnformatted(all[i].value.c_str());
    }
    ImGui::EndGroup();
    if (ImGui::IsItemHovered()) {
      std::vector<std::string> lines{all[i].name + " " + all[i].value};
      lines.insert(lines.end(), all[i].provenance.begin(), all[i].provenance.end());
      tooltip(ui, lines);
    }
    x += width + ui.px(22);
  }
}

void MechanismsWorkspace::times(Ui& ui) {
  const auto& times = desk_.times();
  ImGui::Dummy({0, ui.px(2)});
  const std::string mask = times ? times->mask + " mask, " : "";
  const std::string doing = fmt::format("measuring {:.0f} %", 100 * desk_.timing().share());
  const bool measuring = desk_.timing().running();
  const float needed =
      measuring ? static_cast<float>(ui.fonts.width(doing, ui.body())) * ui.scale + button_width(ui, "Stop") + ui.px(10)
                : button_width(ui, "Measure longer");
  section(ui, "TIME AS THE TEXT GROWS",
          "measured on this machine, one head, one thread, " + mask + "dashed: multiply-adds", needed + ui.px(8));
  ImGui::SameLine();
  const float width_left = ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, width_left - needed));
  if (measuring) {
    ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.theme.muted));
    ImGui::TextUnformatted(doing.c_str());
    ImGui::PopStyleColor();
    ImGui::SameLine();
    if (button(ui, "Stop", ui.px(22))) desk_.timing().cancel();
  } else {
    if (button(ui, "Measure longer", ui.px(22))) desk_.measure(1.0);
    if (ImGui::IsItemHovered()) tooltip(ui, {"Until one point takes more than a second"});
  }
  if (!times || times->id != desk_.mechanism().id) return;
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double height = std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale) - 6, 150.0, 330.0);
  const std::string name(desk_.mechanism().name);
  const bool itself = times->id == "softmax";
  times_.want(explorer_, ui, times, fmt::format("{} {}", width, height),
              [times, width, height, name, itself](const Look& look) {
                LineChart chart;
                chart.width = width;
                chart.height = height;
                chart.log_x = chart.log_y = true;
                chart.y_title = "seconds";
                chart.x_title = "tokens n";
                chart.points = true;
                const Color softmax = look.theme.diverging->at(0.85);
                const auto lines = [&](const MechanismTimes::Line& line, const std::string& label, Color color) {
                  if (line.n.empty()) return;
                  // Both end at the right edge only in theory; the title stands there.
                  chart.series.push_back({label, with_opacity(color, 0.75), line.theory_n, line.theory, 1.25, true});
                  chart.series.push_back({"", color, line.n, line.seconds});
                };
                lines(times->softmax, "softmax", softmax);
                if (!itself) lines(times->mechanism, name, look.theme.accent);
                chart.x_ticks = {16, 64, 256, 1024, 4096, 16384, 65536};
                return line_chart_scene(chart, look);
              });
  times_.draw(ui, "mechanism times", {}, width, height);
}

void MechanismsWorkspace::every_head(Ui& ui) {
  const auto& run = explorer_.results().run;
  if (!run || run->trace->maps.empty()) return;
  section(ui, "RANK FOR 90 % ENERGY OF EVERY HEAD",
          fmt::format("of {} tokens; click a head", run->trace->tokens.size()));
  if (run->trace->maps.front().n_query() > most_ranked_tokens) {
    ImGui::TextUnformatted(fmt::format("A text of more than {} tokens takes too long.", most_ranked_tokens).c_str());
    return;
  }
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double height = std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale) - 6, 140.0, 330.0);
  ranks_.want(explorer_, ui, run, fmt::format("{} {}", width, height), [run, width, height](const Look& look) {
    const ModelDims& dims = run->trace->model.dims;
    std::vector<double> ranks;
    for (const AttentionMap& map : run->trace->maps) ranks.push_back(energy_rank(singular_values(map.to_dense()), 0.9));
    Matrix matrix = head_matrix(dims.layers, dims.heads, ranks);
    matrix.unit = "rank for 90 % energy";
    matrix.low = 0;
    matrix.width = width;
    matrix.height = height;
    matrix.provenance = "fewest singular values of hook_pattern whose squares sum to 90 % of all squares";
    return matrix_scene(matrix, look);
  });
  const Scene* scene = ranks_.scene();
  if (!scene) return;
  SceneViewOptions how;
  how.fit_height = false;
  const SceneTouch touch = ranks_.draw(ui, "mechanism ranks", how, width, scene->height);
  if (!touch.cell || !touch.mark || touch.mark->id != "matrix") return;
  const HeadRef head{static_cast<int>(touch.cell->row), static_cast<int>(touch.cell->column)};
  if (touch.clicked) explorer_.select(head);
  const auto& map = std::get<Heatmap>(touch.mark->shape);
  tooltip(ui, {fmt::format("Layer {} · Head {}", head.layer, head.head),
               fmt::format("{:.0f} singular values hold 90 % of the energy",
                           map.values.at(touch.cell->row, touch.cell->column)),
               fmt::format("of blocks.{}.attn.hook_pattern[{}]", head.layer, head.head)});
}

void MechanismsWorkspace::progress(Ui& ui) {
  const Mechanism& m = desk_.mechanism();
  const MechanismParameter* p = m.parameter("done") ? m.parameter("done") : m.parameter("rounds");
  if (!p) return;
  const bool whole = p->kind == MechanismParameter::Kind::whole;
  double high = p->high;
  if (whole) high = std::min(high, desk_.values().number("workers"));
  double value = std::min(desk_.values().number(p->name), high);
  if (button(ui, desk_.playing ? "Pause" : "Play", ui.px(26))) {
    desk_.playing = !desk_.playing;
    if (desk_.playing && value >= high) desk_.set_value(p->name, value = p->low);
  }
  ImGui::SameLine(0, ui.px(14));
  const std::string label(p->title);
  if (slider(ui, label.c_str(), value, {p->low, high, high, false, "", whole ? 0 : 2})) desk_.set_value(p->name, value);
  if (!desk_.playing) return;
  *ui.animate = true;
  clock_ += static_cast<double>(ImGui::GetIO().DeltaTime);
  if (clock_ < seconds_per_token || !desk_.current()) return;
  clock_ = 0;
  const double step = whole ? 1 : std::max(0.02, 1.0 / 32);
  if (value >= high)
    desk_.playing = false;
  else
    desk_.set_value(p->name, std::min(value + step, high));
}

void MechanismsWorkspace::steps(Ui& ui) {
  const MechanismPage& page = *desk_.page();
  MatrixFlow flow;
  flow.width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  flow.side = std::clamp(flow.width / 4.6, 130.0, 230.0);
  std::string options = fmt::format("{} ", flow.width);
  for (const MechanismStep& step : page.result.steps) {
    flow.matrices.push_back(flow_of(step));
    flow.matrices.back().folded = folded_.contains(step.id);
    if (flow.matrices.back().folded) options += step.id + " ";
  }
  if (flow.matrices.empty()) return;
  matrices(ui, steps_, "mechanism steps", flow, options);
}

void MechanismsWorkspace::curves(Ui& ui) {
  const MechanismPage& page = *desk_.page();
  for (std::size_t i = 0; i < std::min(page.result.curves.size(), std::size(curves_)); ++i) {
    const MechanismCurve& curve = page.result.curves[i];
    section(ui, curve.title, curve.x_title + " →, " + curve.y_title + " ↑");
    const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale)), height = 190;
    curves_[i].want(explorer_, ui, desk_.page(), fmt::format("{}", width), [curve, width, height](const Look& look) {
      LineChart chart;
      chart.width = width;
      chart.height = height;
      chart.log_x = curve.log_x;
      chart.y_title = curve.y_title;  // the other axis is named above: below, its name would meet those of the lines
      chart.points = !curve.lines.empty() && curve.lines[0].x.size() < 30;
      const Color colors[] = {look.theme.accent, look.theme.key, look.theme.value, look.theme.muted};
      for (std::size_t line = 0; line < curve.lines.size(); ++line)
        chart.series.push_back({curve.lines[line].label, colors[line % 4], curve.lines[line].x, curve.lines[line].y});
      if (curve.log_x) chart.x_ticks = {0.05, 0.1, 1, 4, 10, 16, 64, 100, 256, 1024, 4096, 16384, 65536};
      if (curve.marker) chart.marker = Point{curve.marker->first, curve.marker->second};
      return line_chart_scene(chart, look);
    });
    curves_[i].draw(ui, fmt::format("curve {}", i).c_str(), {}, width, height);
  }
  if (desk_.mechanism().study)
    for (const MechanismFact& each : page.result.facts)
      fact(ui, each.name, each.value, nullptr, {each.name, each.provenance});
}

void MechanismsWorkspace::play(Ui& ui, int last) {
  if (button(ui, desk_.playing ? "Pause" : "Play", ui.px(26))) {
    desk_.playing = !desk_.playing;
    if (desk_.playing && desk_.token >= last) desk_.token = 0;
  }
  ImGui::SameLine(0, ui.px(14));
  double token = desk_.token;
  if (slider(ui, "Token t", token, {0, static_cast<double>(std::max(last, 1)), 0, false, "", 0}))
    desk_.token = std::clamp(static_cast<int>(std::lround(token)), 0, last);
  if (!desk_.playing) return;
  *ui.animate = true;
  clock_ += static_cast<double>(ImGui::GetIO().DeltaTime);
  if (clock_ < seconds_per_token) return;
  clock_ = 0;
  if (desk_.token >= last)
    desk_.playing = false;
  else
    ++desk_.token;
}

void MechanismsWorkspace::recurrent(Ui& ui) {
  const MechanismPage& page = *desk_.page();
  if (!page.recurrence) return empty_state(ui, "No recurrent form here", page.no_recurrence);
  const Recurrence& r = *page.recurrence;
  const int last = static_cast<int>(page.input.n()) - 1;
  desk_.token = std::clamp(desk_.token, 0, last);
  play(ui, last);
  const auto t = static_cast<Index>(desk_.token);
  {
    const UseFont font(ui, ui.number());
    ImGui::TextUnformatted((r.update + "     " + r.readout).c_str());
  }
  ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.theme.muted));
  ImGui::TextUnformatted(fmt::format("t = {}   largest difference from the parallel form, over all tokens: {:.2g}",
                                     place(page, t), page.recurrent_gap)
                             .c_str());
  ImGui::PopStyleColor();
  if (ImGui::IsItemHovered())
    tooltip(ui,
            {"max |o_recurrent − o_parallel| over tokens and channels", "float32: the two add up in another order"});
  const auto& state = r.states[static_cast<std::size_t>(t)];
  MatrixFlow flow;
  flow.width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  flow.side = std::clamp(flow.width / 4.2, 130.0, 260.0);
  flow.arrows = false;
  const auto after = [&](const Tensor& x) {
    std::vector<std::uint8_t> hidden(static_cast<std::size_t>(x.size()), 0);
    for (Index i = t + 1; i < x.dim(0); ++i)
      for (Index c = 0; c < x.dim(1); ++c) hidden[static_cast<std::size_t>(i * x.dim(1) + c)] = 1;
    return hidden;
  };
  flow.matrices.push_back(
      {"now-k", "kₜ", "the key of this token", row_of(page.input.k, t), {}, {}, {}, "value", false});
  flow.matrices.push_back({"now-v", "vₜ", "is written under it", row_of(page.input.v, t), {}, {}, {}, "value", false});
  flow.matrices.push_back({"now-q", "qₜ", "reads the state", row_of(page.input.q, t), {}, {}, {}, "value", false});
  // z, where it is kept, is far larger than S: it is drawn on S's scale, cut off.
  double largest = 1e-9;
  for (Index i = 0; i < state.dim(0); ++i)
    for (Index c = 0; c < page.input.d_v(); ++c)
      largest = std::max(largest, std::abs(static_cast<double>(state.at(i, c))));
  flow.matrices.push_back({"state",
                           r.last_column_is_z ? "State Sₜ | zₜ" : "State Sₜ",
                           r.last_column_is_z ? "last column: zₜ, on the scale of Sₜ" : "what is kept of the past",
                           state,
                           {},
                           -largest,
                           largest,
                           "value",
                           false,
                           true});
  flow.matrices.push_back(
      {"recurrent", "Outputs, recurrent", "up to t", r.output, after(r.output), {}, {}, "value", false});
  flow.matrices.push_back(
      {"parallel", "Outputs, parallel", "of the whole text at once", page.result.output, {}, {}, {}, "value", false});
  matrices(ui, states_, "mechanism states", flow, fmt::format("{} {}", flow.width, t));
}

}  // namespace headscope
