// The page of rotary positions.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/positions/positions_workspace.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

using Rope = PositionsView::Rope;

std::string token_at(const Trace& trace, Index position) {
  return fmt::format("{} {}", token_label(trace, position), position);
}

}  // namespace

void PositionsWorkspace::rope_middle(const PageContext& c) {
  const Ui& ui = c.ui;
  const auto view = controller_.rotary_view();
  const auto& vectors = controller_.vectors();
  const float top = ImGui::GetCursorPosY();
  {
    const UseFont font(ui, ui.heading());
    ImGui::AlignTextToFramePadding();
    text_line(ui, said("Rotary pairs"));
  }
  static constexpr const char* labels[] = {to_say("Dials"), to_say("Score map"), to_say("Wavelengths")};
  const float wide = segmented_width(ui, labels), title_end = ImGui::GetItemRectMax().x;
  const float right_edge = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const std::string scaled = controller_.view.scaling == RotaryConfig::Scaling::none
                                 ? ""
                                 : fmt::format(" · {} × {}", said_view(info(controller_.view.scaling).title),
                                               short_number(controller_.view.factor, 3));
  const std::string angles = fmt::format("θᵢ = {}^(−2i/{}){}", short_number(view->config.base, 6), 2 * view->pairs(),
                                         scaled),
                    whole = say("head_dim {} → {} pairs · {}", 2 * view->pairs(), view->pairs(), angles);
  const double room = static_cast<double>((right_edge - wide - title_end) / ui.scale) - 36;
  if (room > 60) {
    ImGui::SameLine(0, ui.px(12));
    const UseFont font(ui, ui.body());
    ImGui::SetCursorPosY(top + ui.px(6));
    const std::string& fitting = ui.fonts.width(whole, ui.body()) <= room ? whole : angles;
    const std::string text = elided(fitting, ui.body(), room, ui.fonts);
    text_line(ui, text, ui.theme.muted);
  }
  ImGui::SameLine();
  ImGui::SetCursorPos({ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x - wide), top});
  int shown = static_cast<int>(controller_.view.rope);
  if (segmented(ui, "rope view", labels, shown)) controller_.view.rope = static_cast<Rope>(shown);
  ImGui::Dummy({0, ui.px(2)});

  const double width = std::floor(c.room()), all = ImGui::GetContentRegionAvail().y / ui.scale;
  const double why_height = std::clamp(0.16 * all, 92.0, 150.0), curve_height = std::clamp(0.27 * all, 130.0, 260.0);
  const double main_height = std::max(150.0, all - why_height - curve_height - 2 * 34 - 24);
  static constexpr const char* pictures[] = {"dials", "score maps", "wavelengths"};
  show(c, main_, pictures[static_cast<int>(controller_.view.rope)], {width, main_height});

  section(
      ui, said("SCORE AGAINST DISTANCE m − n"),
      controller_.changed()
          ? said("total, each pair's part · grey: as trained · click to choose the key")
          : said("total, and each pair's part · the marked distance is this query and key · click to choose the key"));
  const SceneTouch touch = show(c, curve_, "score curve", {width, curve_height});
  if (const Mark* plot = curve_.scene() ? find(*curve_.scene(), "plot") : nullptr; plot && touch.hovered) {
    const Rect& rect = std::get<Box>(plot->shape).rect;
    const double share = (touch.at.x - rect.x) / rect.w;
    if (const auto* area = meaning<PlotArea>(plot); area && share >= 0 && share <= 1) {
      const auto distance = static_cast<Index>(std::lround(area->x_at(share)));
      tooltip(ui, {say("{} tokens apart: {}", distance, short_number(view->score(static_cast<double>(distance), 0), 4)),
                   said("scale · Σ over pairs of |q||k| cos(φ + (m − n) θ)")});
      if (touch.clicked) controller_.view.key = std::max<Index>(view->query - distance, 0);
    }
  }
  section(ui, said("WHY THIS SCORE"),
          say("{} → {} · q·k split by rotary pair, sorted · adds up to {}", token_at(*vectors->of, view->query),
              token_at(*vectors->of, view->key),
              short_number(view->score(static_cast<double>(view->query), static_cast<double>(view->key)), 4)));
  show(c, why_, "why", {width, why_height});
}

void PositionsWorkspace::position_sliders(Ui& ui) {
  section(ui, said("POSITIONS"));
  const Index n = controller_.vectors()->tokens();
  auto query = static_cast<double>(controller_.query()), key = static_cast<double>(controller_.key()),
       shift = static_cast<double>(controller_.view.shift);
  const Index pinned = controller_.query();
  if (slider(ui, to_say("query m"), query,
             {0, static_cast<double>(std::max<Index>(n - 1, 1)), static_cast<double>(n - 1), false, "", 0})) {
    // The key stays where it was, unless the query passes it.
    const Index key_now = controller_.key();
    controller_.view.query = std::clamp<Index>(std::lround(query), 0, n - 1);
    controller_.view.key = std::min(key_now, *controller_.view.query);
  }
  if (slider(ui, to_say("key n"), key, {0, static_cast<double>(std::max<Index>(n - 1, 1)), 0, false, "", 0})) {
    controller_.view.query = pinned;
    controller_.view.key = std::clamp<Index>(std::lround(key), 0, pinned);
  }
  if (slider(ui, to_say("shift both"), shift, {0, 4096, 0, false, "", 0}))
    controller_.view.shift = static_cast<int>(std::lround(shift));
  const auto view = controller_.rotary_view();
  const auto m = static_cast<double>(view->query), k = static_cast<double>(view->key),
             s = static_cast<double>(view->shift);
  // Both turned by their own positions, not by the difference: that the two agree is what is to be seen.
  const auto& vectors = controller_.vectors();
  const std::vector<double> theta = rotary_frequencies(view->config, 2 * view->pairs());
  const auto direct = [&](double at_q, double at_k) {
    const auto q =
        rotated(row_of(vectors->q, view->query), at_q, theta, controller_.view.layout, rotary_magnitude(view->config));
    const auto key_vector =
        rotated(row_of(vectors->k, view->key), at_k, theta, controller_.view.layout, rotary_magnitude(view->config));
    double sum = 0;
    for (std::size_t i = 0; i < q.size(); ++i) sum += q[i] * key_vector[i];
    return view->scale * sum;
  };
  const double before = direct(m, k), after = direct(m + s, k + s);
  const bool equal = std::abs(after - before) <= 1e-9 * std::max(1.0, std::abs(before));
  const std::string scores = fmt::format("{:.3f} → {:.3f} · ", before, after);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = ui.px(28);
  const Color color = equal ? ui.theme.value : ui.theme.key;
  const auto fitting = [&](const std::string& text) {
    return elided(text, ui.body(), static_cast<double>(width / ui.scale) - 16, ui.fonts);
  };
  std::string line =
      scores + (equal ? say("only m − n = {} matters", view->query - view->key) : std::string(said("not m − n alone")));
  if (equal && fitting(line) != line) line = scores + said("only m − n matters");  // m and n stand above
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, {at.x + width, at.y + height}, col(with_opacity(color, 0.12)), ui.px(4));
  draw.AddRect(at, {at.x + width, at.y + height}, col(with_opacity(color, 0.5)), ui.px(4));
  draw_text(ui, draw, {{0, 0}, fitting(line), ui.body(), legible(ui.theme, color), Anchor::start, 0},
            {at.x + ui.px(8), at.y + height / 2 + ui.px(0.36 * ui.body().size)});
  ImGui::InvisibleButton("shift line", {width, height});
  if (ImGui::IsItemHovered())
    tooltip(ui, {said("query and key turned to their own positions, then multiplied, in double precision"),
                 say("at ({}, {}): {:.9g}", view->query, view->key, before),
                 say("at ({}, {}): {:.9g}", view->query + view->shift, view->key + view->shift, after)});
  if (vectors->turned_q.defined() && !controller_.changed() && controller_.view.source == PositionsView::Source::head) {
    double traced = 0;
    for (Index d = 0; d < vectors->turned_q.dim(1); ++d)
      traced += static_cast<double>(vectors->turned_q.at(view->query, d)) *
                static_cast<double>(vectors->turned_k.at(view->key, d));
    fact(ui, said("Score in the trace"), fmt::format("{:.3f}", vectors->scale * traced), nullptr,
         {"hook_rot_q · hook_rot_k · scale", said("as the model computed it, float32")});
  }
}

void PositionsWorkspace::scaling_controls(Ui& ui) {
  section(ui, said("BASE AND SCALING"));
  double base = controller_.view.base > 0 ? controller_.view.base : controller_.own_rotary().base;
  if (slider(ui, to_say("θ base"), base, {10, 1e7, controller_.own_rotary().base, true, "", 0})) {
    // Two digits are what a hand can mean.
    const double power = std::pow(10.0, std::floor(std::log10(base)) - 1);
    base = std::round(base / power) * power;
    controller_.view.base = std::abs(base / controller_.own_rotary().base - 1) < 1e-9 ? 0 : base;
  }
  const char* labels[8];
  int count = 0, chosen = 0;
  for (const RotaryScalingInfo& each : rotary_scalings()) {
    if (each.scaling == controller_.view.scaling) chosen = count;
    labels[count++] = each.id == "linear" ? to_say("PI") : each.title.data();
  }
  if (segmented(ui, "rope scaling", std::span<const char* const>(labels, static_cast<std::size_t>(count)), chosen))
    controller_.view.scaling = nth(rotary_scalings(), chosen).scaling;
  const RotaryScalingInfo& scaling = info(controller_.view.scaling);
  ImGui::BeginDisabled(controller_.view.scaling == RotaryConfig::Scaling::none);
  double factor = controller_.view.factor;
  if (slider(ui, to_say("factor"), factor, {1, 16, 4, true, "×", 2}))
    controller_.view.factor = std::round(factor * 20) / 20;
  ImGui::EndDisabled();
  if (controller_.view.scaling == RotaryConfig::Scaling::yarn) ramp_choice(ui);
  const UseFont font(ui, ui.small());
  paragraph(ui, said_view(scaling.formula), ui.theme.muted);
  if (ImGui::IsItemHovered()) tooltip(ui, {std::string(said_view(scaling.title)), std::string(scaling.source)});
}

void PositionsWorkspace::rope_right(const PageContext& c) {
  position_sliders(c.ui);
  scaling_controls(c.ui);
  section(c.ui, said("SCORE BY (m, n)"), said("every diagonal is one distance"));
  const double width = std::min(std::floor(c.room()), 260.0);
  show(c, small_, "score by positions", {width, width + 24});
}

}  // namespace headscope
