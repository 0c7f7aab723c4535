// The text of the Generate workspace as tokens: what was given and written, what an encoder-decoder reads, and the
// slider along it.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/generate/generate_workspace.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/sound_map.h"

namespace headscope {

/// The same of a sound, as its spectrogram.
void GenerateWorkspace::sound(Ui& ui, AppContext& app) {
  const auto heard = controller_.prompt()->whole->encoder;
  const ToldStep* told = controller_.at_cursor();
  const auto step = told ? told->step : nullptr;
  section(ui, said("SOUND"), said("lit by cross-attention where this token was chosen, mean of all heads"));
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale)), height = 128;
  sound_.want(app.explorer.jobs, ui, heard,
              fmt::format("{} {} {}", static_cast<const void*>(step.get()), width, step ? step->length : 0),
              [heard, step, width, height](const Style& style) {
                SoundValues values;
                values.title = heard->model.name;
                values.unit = said("weight");
                if (step && step->source_rows.defined()) {
                  const Tensor& rows = step->source_rows;
                  values.name = std::string(said("mean over all heads of cross-attention")) + "[:]";
                  values.by_key.resize(static_cast<std::size_t>(rows.dim(1)));
                  for (Index row = 0; row < rows.dim(0); ++row)
                    for (Index key = 0; key < rows.dim(1); ++key)
                      nth(values.by_key, key) +=
                          static_cast<double>(rows.at(row, key)) / static_cast<double>(rows.dim(0));
                }
                SoundMapOptions options;
                options.room = SoundMapOptions::Room{width, height};
                return sound_values_scene(*heard, values, options, style);
              });
  sound_.draw(ui, "sound", {}, width, height);
}

/// The tokens that an encoder-decoder reads, lit by where cross-attention looked when the token at the cursor was
/// chosen.
void GenerateWorkspace::source(Ui& ui, AppContext& app) {
  const auto& encoded = controller_.prompt()->whole->encoder;
  if (!encoded) return;
  if (encoded->sound) return sound(ui, app);
  const ToldStep* told = controller_.at_cursor();
  const Tensor looked = told ? told->step->source_rows : Tensor();
  section(ui, said("SOURCE"), said("lit by cross-attention where this token was chosen, mean of all heads"));
  std::vector<double> mean(encoded->tokens.size(), 0);
  if (looked.defined())
    for (Index row = 0; row < looked.dim(0); ++row)
      for (Index key = 0; key < looked.dim(1); ++key)
        nth(mean, key) += static_cast<double>(looked.at(row, key)) / static_cast<double>(looked.dim(0));
  const double most = std::max(*std::ranges::max_element(mean), 1e-12);
  const float gap = ui.px(3);
  if (ImGui::BeginChild("source", {0, ui.px(56)}, ImGuiChildFlags_NavFlattened)) {
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {gap, gap});
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const std::string& label = encoded->tokens[i].label;
      if (i > 0) {
        ImGui::SameLine(0, gap);
        if (ImGui::GetCursorScreenPos().x + ui.px(token_chip_width(ui, label)) > right) ImGui::NewLine();
      }
      ChipOptions chip;
      chip.shade = looked.defined() ? mean[i] / most : -1;
      const Touch touch = token_chip(ui, label, fmt::format("source {}", i), chip);
      if (touch.hovered && looked.defined())
        tooltip(ui, {fmt::format("{}: {:.3f}", label, mean[i]),
                     say("mean over {} heads of the weight on source token {}", looked.dim(0), i),
                     said("decoder.blocks.{i}.cross_attn.hook_pattern, last row")});
    }
    ImGui::PopStyleVar();
  }
  ImGui::EndChild();
}

void GenerateWorkspace::chips(Ui& ui, float height) {
  const std::size_t given = controller_.prompt()->whole->tokens.size(), at = controller_.cursor();
  const Trace& text = *controller_.text();
  const float gap = ui.px(3);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(ui.theme.background));
  if (ImGui::BeginChild("generated text", {0, height}, ImGuiChildFlags_NavFlattened)) {
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {gap, gap});
    for (std::size_t i = 0; i < text.tokens.size(); ++i) {
      if (i > 0) {
        ImGui::SameLine(0, gap);
        if (ImGui::GetCursorScreenPos().x + ui.px(token_chip_width(ui, text.tokens[i].label)) > right) ImGui::NewLine();
      }
      ChipOptions chip;
      const bool own = i >= given;
      const ToldStep* step = own ? &controller_.branch().steps[i - given] : nullptr;
      if (own) chip.shade = 0.06 + 0.86 * std::min(1.0, -std::log(std::max(step->probability, 1e-30)) / 5);
      chip.faint = !own;
      chip.selected = i == given + at;
      const Touch touch = token_chip(ui, text.tokens[i].label, fmt::format("tape {}", i), chip);
      if (touch.clicked && own) controller_.show(i - given);
      if (touch.hovered && own)
        tooltip(ui, {text.tokens[i].label,
                     say("step {}: probability {:.4f}, rank {} of {}", i - given + 1, step->probability, step->rank + 1,
                         controller_.model().model->config().dims.vocab),
                     say("drawn from {} tokens, where its share was {:.4f}", step->kept, step->share)});
    }
    if (controller_.branch().ended.empty()) {  // where the next one will stand
      ImGui::SameLine(0, gap);
      ChipOptions chip;
      chip.selected = at == controller_.branch().steps.size();
      chip.faint = true;
      const Touch touch = token_chip(ui, "  ?  ", "tape next", chip);
      if (touch.clicked) controller_.show(std::numeric_limits<std::size_t>::max());
    }
    ImGui::PopStyleVar();
    if (followed_ != text.tokens.size() && at == controller_.branch().steps.size()) ImGui::SetScrollHereY(1);
    followed_ = text.tokens.size();
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();
}

void GenerateWorkspace::scrubber(Ui& ui) {
  const std::size_t steps = controller_.branch().steps.size();
  int at = static_cast<int>(controller_.cursor());
  const bool end = controller_.cursor() == steps;
  ImGui::AlignTextToFramePadding();
  if (end)
    text_line(ui, said("next token"));
  else
    text_line(ui, say("step {} of {}", at + 1, steps));
  ImGui::SameLine(ui.px(118));
  ImGui::SetNextItemWidth(
      std::max(ImGui::GetContentRegionAvail().x - button_width(ui, "Newest") - ui.px(10), ui.px(60)));
  if (ImGui::SliderInt("##tape", &at, 0, std::max(static_cast<int>(steps), 1), ""))
    controller_.show(static_cast<std::size_t>(std::max(at, 0)));
  ImGui::SameLine();
  ImGui::BeginDisabled(end);
  if (button(ui, to_say("Newest"))) controller_.show(std::numeric_limits<std::size_t>::max());
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("← and → walk the tape"), said("→ at its end writes one token")});
}

}  // namespace headscope
