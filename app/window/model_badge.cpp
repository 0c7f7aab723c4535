#include "app/window/model_badge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/text_draw.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
using Look = ModelBadge::Look;
using CheckState = CertificateController::State;
constexpr double mark_room = 22, padding = 8;
constexpr double widest_words = 230;

Color color_of(const Ui& ui, Look look) {
  return look == Look::good  ? legible(ui.theme, ui.theme.value)
         : look == Look::bad ? legible(ui.theme, ui.theme.key)
                             : ui.theme.muted;
}

/// A tick, an exclamation mark, a ring that fills, or an empty ring.
void draw_mark(const Ui& ui, ImVec2 middle, const ModelBadge& badge) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImU32 color = col(color_of(ui, badge.look));
  const float radius = ui.px(6.5), line = std::max(1.5f, 1.5f * ui.scale);
  const auto at = [&](double x, double y) {
    return ImVec2{middle.x + static_cast<float>(x) * ui.scale, middle.y + static_cast<float>(y) * ui.scale};
  };
  draw->AddCircle(middle, radius, badge.look == Look::working ? col(ui.theme.line) : color, 24, line);
  if (badge.look == Look::good) {
    const ImVec2 tick[] = {at(-3, 0.2), at(-0.8, 2.4), at(3.2, -2.4)};
    draw->AddPolyline(tick, 3, color, 0, line);
  } else if (badge.look == Look::bad) {
    draw->AddLine(at(0, -3.4), at(0, 0.9), color, line);
    draw->AddCircleFilled(at(0, 3.1), 1.1f * ui.scale, color);
  } else if (badge.look == Look::working) {
    constexpr float top = -std::numbers::pi_v<float> / 2;
    draw->PathArcTo(middle, radius, top, top + std::max(0.04f, badge.progress) * 2 * std::numbers::pi_v<float>, 24);
    draw->PathStroke(col(ui.theme.accent), 0, line);
  }
}

std::string shown_words(const Ui& ui, const ModelBadge& badge, bool brief) {
  return brief ? badge.brief : elided(badge.words, ui.body(), widest_words, ui.fonts);
}
}  // namespace

std::optional<ModelBadge> model_badge_of(const CertificateController& certificates) {
  ModelBadge badge;
  const auto known = certificates.certificate();
  switch (certificates.state()) {
    case CheckState::none:
      return std::nullopt;
    case CheckState::not_checked:
      badge.words = said("not checked yet");
      badge.provenance = {said("Not checked yet beside its plain float64 definition")};
      break;
    case CheckState::checking:
      badge.look = Look::working;
      badge.progress = certificates.progress();
      badge.words = badge.brief = say("checking {:.0f} %", 100 * static_cast<double>(badge.progress));
      badge.provenance = {said("The model's pass is compared with its plain float64 definition")};
      break;
    case CheckState::changed:
      badge.words = badge.brief = said("files changed");
      badge.provenance = {said("The model's files have changed since it was opened"),
                          said("What was found of them no longer holds; open the model again")};
      break;
    case CheckState::failed:
      badge.look = Look::bad;
      badge.words = badge.brief = said("check failed");
      badge.provenance = {said("The check came to no end"), certificates.error()};
      break;
    case CheckState::checked:
      badge.look = known->agrees() ? Look::good : Look::bad;
      badge.words = in_words(*known);
      badge.brief = known->agrees() ? difference_text(known->patterns()) : said("differs");
      badge.provenance = {
          known->agrees() ? said("Agrees with its plain float64 definition")
                          : said("Differs from its plain float64 definition"),
          say("max |Δ| of attention weights {}, of logits {}", difference_text(known->patterns()),
              difference_text(known->logits())),
          certificates.remembered() ? say("remembered, of {}", known->date) : say("of {}", known->date)};
      break;
  }
  badge.provenance.emplace_back("Click, or Ctrl+I: all of it, and what the model is");
  return badge;
}

float model_badge_width(const Ui& ui, const ModelBadge& badge, bool brief) {
  const std::string words = shown_words(ui, badge, brief);
  const float text = static_cast<float>(ui.fonts.width(words, ui.body())) * ui.scale;
  return ui.px(2 * padding + mark_room - (words.empty() ? 8 : 0)) + text;
}

bool model_badge(const Ui& ui, const ModelBadge& badge, bool brief, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = model_badge_width(ui, badge, brief);
  const bool pressed = pressable("model check", {width, height});
  const bool hovered = ImGui::IsItemHovered();
  if (hovered)
    ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + width, at.y + height}, col(ui.chrome.hovered), ui.px(6));
  const float y = at.y + height / 2;
  draw_mark(ui, {at.x + ui.px(padding + 6.5), y}, badge);
  const Color color = badge.look == Look::bad ? color_of(ui, Look::bad) : hovered ? ui.theme.text : ui.theme.muted;
  draw_text(ui, *ImGui::GetWindowDrawList(),
            {{0, 0}, shown_words(ui, badge, brief), ui.body(), color, Anchor::start, 0},
            {at.x + ui.px(padding + mark_room), y + static_cast<float>(half_capital(ui.body())) * ui.scale});
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(ui, badge.provenance);
  return pressed;
}

}  // namespace headscope
