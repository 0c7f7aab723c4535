// The views of a mechanism that go through it: step by step, its curves, token by token. Every matrix is made ready on
// the worker.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"

#include "app/render/code_path.h"
#include "app/render/mechanism_steps_picture.h"
#include "app/widgets/controls.h"
#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "viz/scene/line_chart.h"

namespace headscope {

namespace {

constexpr double seconds_per_token = 0.35;

Tensor row_of(const Tensor& x, Index row) {
  return x.slice(0, row, row + 1).copy();
}

/// The cells of the rows behind row `t`.
std::vector<std::uint8_t> after(const Tensor& x, Index t) {
  std::vector<std::uint8_t> hidden(static_cast<std::size_t>(x.size()), 0);
  std::fill(hidden.begin() + static_cast<std::ptrdiff_t>((t + 1) * x.dim(1)), hidden.end(), std::uint8_t{1});
  return hidden;
}

}  // namespace

void MechanismsWorkspace::steps(Ui& ui) {
  const MechanismPage& page = *controller_.page();
  if (page.result.steps.empty()) return;
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  std::vector<Shown> shown;
  std::string options = fmt::format("{} ", width);
  for (const MechanismStep& step : page.result.steps) {
    shown.push_back({step.id, step.title, step.formula, step.rows, step.columns, &step,
                     step.columns == MechanismAxis::key ? "" : "no part of what this row sees"});
    if (folded_.contains(step.id)) options += step.id + " ";
  }
  matrices(ui, steps_, "mechanism steps", shown, width, options, [width, folded = folded_](const MechanismPage& from) {
    MatrixFlow flow;
    flow.width = width;
    // As many to a line as stay readable, over the whole width.
    const double across = std::max(1.0, std::floor((width + 30) / 200));
    flow.side = std::clamp(std::floor((width + 30) / across) - 30, 120.0, 260.0);
    for (const MechanismStep& step : from.result.steps) {
      flow.matrices.push_back(flow_matrix(step, from.names));
      flow.matrices.back().folded = folded.contains(step.id);
    }
    return flow;
  });
}

void MechanismsWorkspace::curves(Ui& ui) {
  const MechanismPage& page = *controller_.page();
  for (std::size_t i = 0; i < std::min(page.result.curves.size(), std::size(curves_)); ++i) {
    section(ui, page.result.curves[i].title,
            page.result.curves[i].x_title + " →, " + page.result.curves[i].y_title + " ↑");
    const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale)), height = 190;
    curves_[i].want(jobs_, ui, controller_.page(), fmt::format("{}", width),
                    [from = controller_.page(), i, width, height](const Style& style) {
                      // The other axis is named above: below, its name would meet those of the lines.
                      return line_chart_scene(curve_chart(from->result.curves[i], width, height, style.theme), style);
                    });
    curves_[i].draw(ui, fmt::format("curve {}", i).c_str(), {}, width, height);
  }
  if (controller_.mechanism().study)
    for (const MechanismFact& each : page.result.facts)
      fact(ui, each.name, each.value, nullptr, {each.name, each.provenance});
}

void MechanismsWorkspace::path(Ui& ui) {
  const auto page = controller_.page();
  if (!page->result.path) return;
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  path_.want(jobs_, ui, page, fmt::format("{}", width),
             [page, width](const Style& style) { return code_path_scene(*page->result.path, width, style); });
  const Scene* scene = path_.scene();
  if (!scene) return;
  SceneViewOptions how;
  how.fit_height = false;
  path_.draw(ui, "mechanism path", how, width, scene->height);
}

void MechanismsWorkspace::play(Ui& ui, int last) {
  if (button(ui, controller_.playing ? "Pause" : "Play", ui.px(26))) {
    controller_.playing = !controller_.playing;
    if (controller_.playing && controller_.token >= last) controller_.token = 0;
  }
  ImGui::SameLine(0, ui.px(14));
  double token = std::min(controller_.token, last);
  if (slider(ui, "Token t", token, {0, static_cast<double>(std::max(last, 1)), 0, false, "", 0}))
    controller_.token =
        token < last ? std::max(static_cast<int>(std::lround(token)), 0) : MechanismController::last_token;
  if (!controller_.playing) return;
  *ui.animate = true;
  clock_ += static_cast<double>(ImGui::GetIO().DeltaTime);
  if (clock_ < seconds_per_token) return;
  clock_ = 0;
  if (controller_.token >= last)
    controller_.playing = false;
  else
    ++controller_.token;
}

void MechanismsWorkspace::recurrent(Ui& ui) {
  const MechanismPage& page = *controller_.page();
  if (!page.recurrence) return empty_state(ui, "No recurrent form here", page.no_recurrence);
  const Recurrence& r = *page.recurrence;
  const int last = static_cast<int>(page.input.n()) - 1;
  play(ui, last);
  const Index t = std::min(controller_.token, last);
  {
    const UseFont font(ui, ui.number());
    ImGui::TextUnformatted((r.update + "     " + r.readout).c_str());
  }
  ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.theme.muted));
  const std::string beside =
      page.recurrent_gap
          ? fmt::format("largest difference from the parallel form, over all tokens: {:.2g}", *page.recurrent_gap)
          : std::string("there is no parallel form: each state needs the one before");
  ImGui::TextUnformatted(fmt::format("t = {}   {}", place(page, MechanismAxis::query, t), beside).c_str());
  ImGui::PopStyleColor();
  if (page.recurrent_gap && ImGui::IsItemHovered())
    tooltip(ui,
            {"max |o_recurrent − o_parallel| over tokens and channels", "float32: the two add up in another order"});
  using enum MechanismAxis;
  std::vector<Shown> shown{
      {"now-k", "kₜ", "the key of this token", other, dimension},
      {"now-v", "vₜ", "is written under it", other, dimension},
      {"now-q", "qₜ", "reads the state", other, dimension},
      {"state", r.last_column_is_z ? "State Sₜ | zₜ" : "State Sₜ",
       r.last_column_is_z ? "last column: zₜ, on the scale of Sₜ" : "what is kept of the past", other, other},
      {"recurrent", "Outputs, recurrent", "up to t", query, dimension, nullptr, "comes after token t"}};
  if (r.gates.defined())  // beside the state, row by row
    shown.insert(shown.begin() + 3, {"now-gate", "Gₜ", "kept of each row of Sₜ₋₁", other, other});
  if (page.recurrent_gap)
    shown.push_back({"parallel", "Outputs, parallel", "of the whole text at once", query, dimension});
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  const double side = std::clamp(std::min((width - 64) / 3, room - 230), 130.0, 420.0);
  matrices(ui, states_, "mechanism states", shown, width, fmt::format("{} {} {}", width, side, t),
           [shown, width, side, t](const MechanismPage& from) {
             MatrixFlow flow;
             flow.width = width;
             flow.side = side;
             flow.arrows = false;
             const Recurrence& whole = *from.recurrence;
             const Tensor& state = nth(whole.states, t);
             const auto values_of = [&](const std::string& id) -> Tensor {
               if (id == "now-k") return row_of(from.input.k, t);
               if (id == "now-v") return row_of(from.input.v, t);
               if (id == "now-q") return row_of(from.input.q, t);
               if (id == "now-gate") return row_of(whole.gates, t).transpose(0, 1).copy();
               return id == "state" ? state : id == "recurrent" ? whole.output : from.result.output;
             };
             // z, where it is kept, is far larger than S: it is drawn on S's scale, cut off.
             double largest = 1e-9;
             for (Index i = 0; i < state.dim(0); ++i)
               for (Index c = 0; c < from.input.d_v(); ++c)
                 largest = std::max(largest, std::abs(static_cast<double>(state.at(i, c))));
             // Both outputs on one scale, which stays as the tokens go by.
             double most = 1e-9;
             for (const Tensor* each : {&whole.output, &from.result.output})
               for (const float value : each->values())
                 if (std::isfinite(value)) most = std::max(most, std::abs(static_cast<double>(value)));
             for (std::size_t i = 0; i < shown.size(); ++i) {
               FlowMatrix m{shown[i].id, shown[i].title, shown[i].formula, values_of(shown[i].id), {}, {}, {},
                            "value",     false};
               m.new_line = i == 3;
               if (m.id == "now-gate") m.low = 0, m.high = 1, m.unit = "share";
               if (m.id == "state") m.low = -largest, m.high = largest;
               if (m.id == "recurrent" || m.id == "parallel") m.low = -most, m.high = most;
               if (m.id == "recurrent") m.masked = after(whole.output, t);
               if (m.id == "recurrent" || m.id == "parallel")
                 m.rows = from.names.of(MechanismAxis::query, 0, whole.output.dim(0));
               flow.matrices.push_back(std::move(m));
             }
             return flow;
           });
}

}  // namespace headscope
