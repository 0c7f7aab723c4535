// A mechanism in place of softmax in heads of the open model: a grid of layers × heads that shows and changes the
// edits, and what follows for loss and next tokens.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/head_report.h"
#include "app/state/mechanism_swaps.h"
#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "core/base/words.h"
#include "core/edits/mask_edit.h"
#include "core/metrics/next_token.h"
#include "core/trace/layer_kinds.h"
#include "core/trace/mixer_words.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

std::string token_of(const Results& results, std::int32_t id) {
  return results.model.tokenizer && id < results.model.tokenizer->vocab_size()
             ? printable(results.model.tokenizer->token(id).label)
             : fmt::format("#{}", id);
}

/// Whether the stack on screen is the one whose heads can run another mechanism.
bool of_decoder(const AppState& state) {
  return state.document.stack == Stack::only || state.document.stack == Stack::decoder;
}

/// Of layers that attend: the others have no attention that another mechanism could stand in for.
std::vector<HeadId> all_heads(const ModelDims& dims) {
  std::vector<HeadId> out;
  for (int layer = 0; layer < dims.layers; ++layer)
    for (int head = 0; head < dims.heads && dims.attends(layer); ++head) out.push_back({layer, head});
  return out;
}

/// In the place of the heads of a layer that does not attend: nothing that could be clicked.
void row_of_state(const Ui& ui, const ModelDims& dims, int layer, ImVec2 at, ImVec2 size, float left) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy(size);
  if (ImGui::IsItemHovered())
    tooltip(ui, {say("Layer {} is {}", layer, said(mixer_words(dims, layer))),
                 said("it has no attention that another mechanism could stand in for")});
  const float middle = at.y + size.y / 2;
  if (left > 0) {
    const Font font = ui.small();
    draw_text(ui, draw, {{0, 0}, say("Layer {}", layer), font, ui.theme.faint, Anchor::start, 0},
              {at.x, middle + static_cast<float>(half_capital(font)) * ui.scale});
  }
  draw.AddLine({at.x + left, middle}, {at.x + size.x, middle}, col(ui.chrome.border));
}

}  // namespace

void MechanismsWorkspace::grid(Ui& ui, AppContext& app, double cell_height, bool labels) {
  const auto& model = app.explorer.results().model.model;
  if (!model) return;
  const ModelDims& dims = model->config().dims;
  const AppState& state = app.explorer.state();
  const MechanismSwaps swaps = swaps_of(state.document.edits, dims);
  const std::string own = text_of(controller_.choice());
  const std::optional<HeadId> shown = of_decoder(state) ? std::optional(controller_.head()) : std::nullopt;
  const float left = labels ? ui.px(64) : 0, gap = ui.px(2), height = ui.px(cell_height);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x - left;
  const float width =
      std::min((room - gap * static_cast<float>(dims.heads - 1)) / static_cast<float>(dims.heads), ui.px(64));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImGui::PushID(labels ? "large grid" : "small grid");
  if (labels) {  // which head a column is, where there is room for numbers
    const Font font = ui.small();
    for (int head = 0; head < dims.heads && width >= ui.px(16); ++head)
      draw_text(ui, draw, {{0, 0}, std::to_string(head), font, ui.theme.faint, Anchor::middle, 0},
                {at.x + left + static_cast<float>(head) * (width + gap) + width / 2, at.y - ui.px(6)});
    draw_text(ui, draw, {{0, 0}, said("Head"), font, ui.theme.faint, Anchor::start, 0}, {at.x, at.y - ui.px(6)});
  }
  for (int layer = 0; layer < dims.layers; ++layer) {
    const float y = at.y + static_cast<float>(layer) * (height + gap);
    if (!dims.attends(layer)) {
      row_of_state(ui, dims, layer, {at.x, y}, {left + (width + gap) * static_cast<float>(dims.heads) - gap, height},
                   left);
      continue;
    }
    if (labels) {
      ImGui::SetCursorScreenPos({at.x, y});
      const std::string name = fmt::format("Layer {}", layer);
      int count = 0;
      std::vector<HeadId> row;
      for (int head = 0; head < dims.heads; ++head) {
        row.push_back({layer, head});
        const auto found = swaps.find(row.back());
        count += found != swaps.end() && found->second == own;
      }
      if (pressable(name.c_str(), {left - gap, height})) controller_.swap_in(row, count < dims.heads);
      const Font font = ui.small();
      draw_text(ui, draw,
                {{0, 0},
                 say("Layer {}", layer),
                 font,
                 ImGui::IsItemHovered() ? ui.theme.text : ui.theme.muted,
                 Anchor::start,
                 0},
                {at.x, y + height / 2 + static_cast<float>(half_capital(font)) * ui.scale});
    }
    for (int head = 0; head < dims.heads; ++head) {
      const HeadId ref{layer, head};
      const auto found = swaps.find(ref);
      const bool on = found != swaps.end() && found->second == own;
      const ImVec2 min{at.x + left + static_cast<float>(head) * (width + gap), y}, max{min.x + width, y + height};
      ImGui::SetCursorScreenPos(min);
      const std::string name = fmt::format("swap {}.{}", layer, head);
      if (pressable(name.c_str(), {width, height})) controller_.swap_in({ref}, !on);
      const bool hovered = ImGui::IsItemHovered();
      const Color fill = on                     ? ui.theme.accent
                         : found != swaps.end() ? mix(ui.theme.accent, ui.chrome.raised, 0.65)
                         : hovered              ? ui.chrome.hovered
                                                : ui.chrome.raised;
      draw.AddRectFilled(min, max, col(fill), ui.px(2));
      if (shown == ref) draw.AddRect(min, max, col(ui.theme.text), ui.px(2));
      if (hovered)
        tooltip(ui, {head_title({layer, head}),
                     found == swaps.end() ? said("softmax attention") : say("mechanism {}", found->second),
                     on ? said("click: back to softmax")
                        : say("click: {} in this head", said_view(controller_.mechanism().name))});
    }
  }
  ImGui::PopID();
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({left + room, static_cast<float>(dims.layers) * (height + gap)});
}

void MechanismsWorkspace::effect(Ui& ui, AppContext& app, bool whole) {
  const Results& results = app.explorer.results();
  if (!results.run) return;
  const auto& effect = results.effect;
  const bool compared = effect && effect->after == results.run->trace;
  const bool decoder = results.run->trace->model.objective == Objective::next_token;
  const PredictionWords& asked = prediction_words(results.run->trace->model.objective);
  const bool swapped = !swaps_of(results.run->request.edits, results.run->trace->model.dims).empty();
  const std::shared_ptr<const TextLosses> losses = results.current_losses();
  const double after = losses ? mean_loss(losses->now) : std::nan("");
  const bool other = results.run->request.edits.size() > 0 && !swapped;
  fact(ui, said("Loss on this text"),
       compared && losses ? fmt::format("{} → {}", number(mean_loss(losses->before)), number(after)) : number(after),
       nullptr,
       {say("{}, nats", said(asked.loss)),
        other ? said("before all edits → with them (of the other edits)") : said("before all edits → with them")});
  if (compared)
    fact(ui, said("KL of the answer"), say("{:.4f} nats", effect->change.kl), nullptr,
         {said("KL(before ‖ after) of the distribution where the model answers"),
          said("Σ p ln(p ÷ q) over the full vocabulary")});
  if (!whole) return;
  const bool picture = results.run->trace->model.objective == Objective::image_class;
  section(ui,
          decoder   ? said("NEXT TOKEN")
          : picture ? said("CLASS")
                    : said("MASKED TOKEN"),
          compared ? said("before → after, %") : fmt::format("{}, %", said(asked.where)));
  if (results.run->next.empty())
    return note(ui, decoder || picture ? said("This run has no logits.")
                                       : said("No token is masked: right click one in Explore."));
  std::vector<Bar> bars;
  double largest = 1e-9;
  if (compared) {
    for (const auto& token : effect->change.tokens) largest = std::max({largest, token.before, token.after});
    for (const auto& token : effect->change.tokens) {
      if (bars.size() == 6) break;
      bars.push_back({token_of(results, token.id), token.after / largest, token.before / largest,
                      fmt::format("{:.1f} → {:.1f}", 100 * token.before, 100 * token.after),
                      say("token {}: probability {:.5f} → {:.5f}", token.id, token.before, token.after)});
    }
  } else {
    for (const NextToken& token : results.run->next) largest = std::max(largest, token.probability);
    for (const NextToken& token : results.run->next) {
      if (bars.size() == 6) break;
      bars.push_back({token_of(results, token.id), token.probability / largest, -1,
                      fmt::format("{:.1f} %", 100 * token.probability),
                      say("token {}: softmax of the logits over the full vocabulary", token.id)});
    }
  }
  bar_list(ui, "mechanism next", bars);
  if (!losses || losses->now.size() < 2) return;
  section(ui, said("LOSS PER TOKEN"), compared ? said("nats; grey: before the edits") : said("nats"));
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double height = std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale) - 8, 110.0, 220.0);
  losses_.want(app.explorer.jobs, ui, losses, fmt::format("{} {} {}", compared, width, height),
               [losses, compared, width, height](const Style& style) {
                 LineChart chart;
                 chart.width = width;
                 chart.height = height;
                 chart.y_title = said("loss, nats");
                 chart.x_title = said("position");
                 chart.grid = true;
                 chart.y_low = 0;
                 const auto add = [&](const std::string& name, Color color, const std::vector<double>& y) {
                   chart.series.push_back({name, color, target_positions(*losses->trace), y});
                 };
                 const bool both = compared && losses->before.size() == losses->now.size();
                 if (both) add(said("before"), style.theme.faint, losses->before);
                 add(both ? said("after") : "", style.theme.accent, losses->now);
                 return line_chart_scene(chart, style);
               });
  losses_.draw(ui, "mechanism losses", {}, width, height);
}

void MechanismsWorkspace::in_model(Ui& ui, AppContext& app) {
  const auto& model = app.explorer.results().model.model;
  if (!model) return empty_state(ui, said("No model is open"), said("Open one from the menu above."));
  const ModelDims& dims = model->config().dims;
  section(ui, said("HEADS THAT RUN IT"),
          app.explorer.results().translates() ? said("of the decoder · click a head or a layer; undo with Ctrl+Z")
                                              : said("click a head or a layer; undo with Ctrl+Z"));
  const std::vector<HeadId> all = all_heads(dims);
  if (button(ui, to_say("All heads"), ui.px(26))) controller_.swap_in(all, true);
  if (of_decoder(app.explorer.state())) {
    ImGui::SameLine();
    ImGui::BeginDisabled(!dims.attends(controller_.head().layer));
    if (button(ui, to_say("This head"), ui.px(26))) controller_.swap_in({controller_.head()}, true);
    ImGui::EndDisabled();
  }
  ImGui::SameLine();
  // Every k-th layer keeps softmax, counted so that the last of each k is one; a model with fewer keeps its last.
  const MechanismParameter* every = controller_.mechanism().parameter("every");
  const int period = every ? static_cast<int>(controller_.values().number("every")) : 8;
  const std::string ratio = fmt::format("{} : 1", period - 1);
  if (button(ui, ratio.c_str(), ui.px(26))) {
    std::vector<HeadId> linear, softmax;
    const int shown = std::min(period, attending_layers(dims));
    for (int layer = 0, place = 0; layer < dims.layers; ++layer) {  // counted among those that attend
      if (!dims.attends(layer)) continue;
      for (int head = 0; head < dims.heads; ++head)
        (place % shown == shown - 1 ? softmax : linear).push_back({layer, head});
      ++place;
    }
    if (period == 1) linear.clear(), softmax = all;
    app.explorer.editor.history().close_step();
    app.explorer.editor.set_edits([&] {
      MechanismSwaps swaps = swaps_of(app.explorer.state().document.edits, dims);
      for (const HeadId head : softmax) swaps.erase(head);
      for (const HeadId head : linear) swaps[head] = text_of(controller_.choice());
      return with_swaps(app.explorer.state().document.edits, swaps, dims);
    }());
  }
  if (ImGui::IsItemHovered())
    tooltip(ui, {say("One layer of {} keeps softmax", std::min(period, attending_layers(dims))),
                 said("as MiniMax-01 does; a model with fewer layers keeps softmax in its last")});
  ImGui::SameLine();
  if (button(ui, to_say("Local below"), ui.px(26))) {
    std::vector<Intervention> edits;
    MechanismSwaps swaps;
    for (const HeadId head : all)
      if (head.layer >= dims.layers / 2) swaps[head] = text_of(controller_.choice());
    edits = with_swaps(app.explorer.state().document.edits, swaps, dims);
    for (int layer = 0; layer < dims.layers / 2; ++layer) {
      if (!dims.attends(layer)) continue;
      const Intervention local{{layer, {}}, SetMask{"window 8"}};
      if (std::ranges::count(edits, local) == 0) edits.push_back(local);
    }
    app.explorer.editor.history().close_step();
    app.explorer.editor.set_edits(std::move(edits));
  }
  if (ImGui::IsItemHovered())
    tooltip(ui, {said("Softmax over the last 8 tokens in the lower half, this mechanism above"),
                 said("as TransNormer does")});
  ImGui::SameLine();
  ImGui::BeginDisabled(swaps_of(app.explorer.state().document.edits, dims).empty());
  if (button(ui, to_say("Back to softmax"), ui.px(26))) controller_.swap_in(all, false);
  ImGui::EndDisabled();
  ImGui::Dummy({0, ui.px(18)});
  const double height = std::clamp(260.0 / dims.layers - 2, 8.0, 30.0);
  grid(ui, app, height, true);
  effect(ui, app, true);
}

}  // namespace headscope
