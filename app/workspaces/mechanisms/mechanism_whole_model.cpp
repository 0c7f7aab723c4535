// Of Lightning Attention and its hybrid: what a whole model of such layers takes, over layers, width, heads, batch and
// length (MiniMax-01's table), set from the open model at first.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/hybrid_cost_picture.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/plots.h"
#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "core/base/words.h"

namespace headscope {

namespace {

constexpr double usual_tokens = 32768, most_of_any = 16384, most_tokens = 4194304;

/// Layers, width and heads of the open model; MiniMax-Text-01's without one.
HybridShape shape_of_model(const LoadedModel& loaded) {
  if (!loaded.model) return {80, 6144, 64, 1, usual_tokens};
  const ModelDims& dims = loaded.model->config().dims;
  return {static_cast<double>(dims.layers), static_cast<double>(dims.d_model),
          static_cast<double>(std::max(dims.heads, 1)), 1, usual_tokens};
}

/// "6.1e18", as FLOPs are told.
std::string flops_words(double flops) {
  std::string words = fmt::format("{:.1e}", flops);
  if (const auto plus = words.find("e+"); plus != std::string::npos) words.erase(plus + 1, 1);
  return words;
}

/// What a layer's FLOPs are beside those of its weights.
std::string in_parentheses(const std::string& formula) {
  const auto open = formula.find('('), close = formula.rfind(')');
  return open == std::string::npos ? formula : formula.substr(open + 1, close - open - 1);
}

bool whole_number(const Ui& ui, const char* label, double& value, double high, double usual, double low = 1) {
  const bool moved = slider(ui, label, value, {low, high, usual, true, "", 0});
  value = std::round(value);
  return moved;
}

}  // namespace

bool MechanismsWorkspace::tells_whole_model() const {
  const Mechanism& m = controller_.mechanism();
  return m.id == "lightning" || m.parameter("every");
}

int MechanismsWorkspace::softmax_every() const {
  const Mechanism& m = controller_.mechanism();
  return static_cast<int>(
      (m.parameter("every") ? controller_.values() : find_mechanism("hybrid")->usual()).number("every"));
}

void MechanismsWorkspace::whole_model_shape(const PageContext& c) {
  const HybridShape from_model = shape_of_model(c.results().model);
  if (const std::uint64_t reading = c.results().model_reading + 1; shape_of_ != reading)
    shape_ = from_model, shape_of_ = reading;
  section(c.ui, said("A WHOLE MODEL"), c.results().model.model ? said("at first the open one") : "");
  whole_number(c.ui, to_say("Layers l"), shape_.layers, 256, from_model.layers);
  whole_number(c.ui, to_say("Width d"), shape_.width, most_of_any, from_model.width);
  whole_number(c.ui, to_say("Heads h"), shape_.heads, 256, from_model.heads);
  whole_number(c.ui, to_say("Batch b"), shape_.batch, 4096, 1);
  whole_number(c.ui, to_say("Text n"), shape_.tokens, most_tokens, usual_tokens, 256);
}

void MechanismsWorkspace::whole_model(const PageContext& c) {
  const int every = softmax_every();
  paragraph(c.ui, hybrid_crossings(shape_, every), c.ui.theme.text);
  section(c.ui, said("PARAMETERS AND FLOPS"),
          say("{:.0f} layers of width {:.0f}, {:.0f} heads; a step over {:.0f} × {:.0f} tokens", shape_.layers,
              shape_.width, shape_.heads, shape_.batch, shape_.tokens));
  const std::vector<HybridCost> rows = hybrid_cost_table(shape_, every);
  c.ui.pictures.add_table("whole model", "parameters and FLOPs", [rows] {
    Table out{"parameters and FLOPs", {"model", "parameters", "FLOPs", "parameters by", "FLOPs by"}, {}};
    for (const HybridCost& row : rows)
      out.rows.push_back(
          {row.name, number_cell(row.parameters), number_cell(row.flops), row.parameters_by, row.flops_by});
    return out;
  });
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_NoSavedSettings;
  if (ImGui::BeginTable("whole model", 5, flags)) {
    constexpr std::pair<const char*, float> columns[] = {
        {"", 1.6f}, {"parameters", 1.2f}, {"FLOPs", 1}, {"÷ softmax", 1}, {"FLOPs ÷ 72 b n l d²", 4.4f}};
    for (const auto& [title, weight] : columns) ImGui::TableSetupColumn(title, 0, weight);
    const bool lightning = controller_.mechanism().id == "lightning";
    const auto cell = [&](const std::string& words, Color color, const std::vector<std::string>& told) {
      ImGui::TableNextColumn();
      text_line(c.ui, words, color);
      if (!told.empty() && ImGui::IsItemHovered()) tooltip(c.ui, told);
    };
    ImGui::TableNextRow();
    {
      const UseFont font(c.ui, c.ui.small());
      cell("", c.ui.theme.muted, {});
      cell(said("parameters"), c.ui.theme.muted, {said("parameters"), said("of all layers, without embeddings")});
      cell(said("FLOPs"), c.ui.theme.muted,
           {said("FLOPs"), said("of one training step: b texts of n tokens, forward and backward")});
      cell(said("÷ softmax"), c.ui.theme.muted, {said("FLOPs ÷ those of softmax in every layer")});
      cell("FLOPs ÷ 72 b n l d²", c.ui.theme.muted,
           {said("MiniMax-01 2025, table of section 2.2; counted as in Shen et al. 2024")});
    }
    for (const HybridCost& row : rows) {
      const Color color = &row == &rows[lightning ? 1 : 2] ? c.ui.theme.text : c.ui.theme.muted;
      ImGui::TableNextRow();
      cell(said(row.name), color, {});
      const UseFont font(c.ui, c.ui.number());
      cell(count_words(row.parameters), color, {say("{:.6g} parameters", row.parameters), row.parameters_by});
      cell(flops_words(row.flops), color, {say("{:.6g} FLOPs", row.flops), row.flops_by});
      cell(fmt::format("{:.3f}", row.flops / rows[0].flops), color,
           {fmt::format("{:.6g} ÷ {:.6g}", row.flops, rows[0].flops)});
      cell(in_parentheses(row.flops_by), color, {say("{} parameters", row.parameters_by), row.flops_by});
    }
    ImGui::EndTable();
  }
  section(c.ui, said("AS THE TEXT GROWS"), said("FLOPs of a training step, per token; the dot: n of the right column"));
  LineChart chart = hybrid_cost_chart(shape_, every, c.ui.style());
  chart.height = std::clamp(static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale) - 60, 160.0, 640.0);
  plot(c.ui, "whole model cost", std::move(chart));
  note(c.ui, said("Counted are the products, rotary positions and gates of layers with an MLP of width 8/3 d; not "
                  "embeddings, nor "
                  "softmax's own exp and sums. Lightning's blocks and state are d ÷ h wide."));
}

}  // namespace headscope
