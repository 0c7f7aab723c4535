#include "app/workspaces/pair_picker.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/base/nth.h"
#include "core/base/words.h"

#include "app/state/compare_controller.h"
#include "viz/scene/token_pairs.h"

namespace headscope {

std::vector<std::pair<int, int>> pairs_of(const std::vector<int>& partner) {
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < partner.size(); ++i)
    if (partner[i] >= 0) pairs.emplace_back(static_cast<int>(i), partner[i]);
  return pairs;
}

std::vector<int> inverted(const std::vector<int>& partner, std::size_t size) {
  std::vector<int> out(size, -1);
  for (const auto& [a, b] : pairs_of(partner)) nth(out, b) = a;
  return out;
}

int first_difference(const PairedTexts& texts) {
  for (std::size_t i = 0; i < texts.partner.size(); ++i) {
    const int with = texts.partner[i];
    if (with < 0 || texts.a->tokens[i].id != nth(texts.b->tokens, with).id) return static_cast<int>(i);
  }
  return -1;
}

std::string PairPicker::remark(const PairedTexts& texts) const {
  if (picked_a_ >= 0 || picked_b_ >= 0) return said("now click its partner in the other text");
  return say("{} of {} and {} paired · click one above and one below to pair or part them",
             std::ranges::count_if(texts.partner, [](int p) { return p >= 0; }), texts.a->tokens.size(),
             texts.b->tokens.size());
}

std::optional<std::vector<int>> PairPicker::draw(Ui& ui, JobRunner& jobs, const char* id,
                                                 const std::shared_ptr<const PairedTexts>& texts, float most) {
  if (of_ != texts) {
    other_words_ = !of_ || of_->a->ids() != texts->a->ids() || of_->b->ids() != texts->b->ids();
    of_ = texts;
    picked_a_ = picked_b_ = -1;
  }
  std::optional<std::vector<int>> changed;
  ImGui::SetNextWindowSizeConstraints({0, 0}, {FLT_MAX, most});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(ui.theme.background));
  if (ImGui::BeginChild(id, {0, 0}, ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_NavFlattened)) {
    const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale)) - 2;
    slot_.want(jobs, ui, texts, fmt::format("{}", width), [texts, width](const Style& style) {
      TokenPairsOptions options;
      options.name_a = texts->name_a;
      options.name_b = texts->name_b;
      options.partner = texts->partner;
      options.width = width;
      return token_pairs_scene(*texts->a, *texts->b, options, style);
    });
    if (const Scene* scene = slot_.scene()) {
      const Mark* differs = other_words_ ? mark_of(*scene, TokenAt{first_difference(*texts), 0}) : nullptr;
      if (differs) {
        ImGui::SetScrollY(ui.px(std::max(std::get<Box>(differs->shape).rect.y - 10, 0.0)));
        other_words_ = false;
      }
      SceneViewOptions how;
      how.fit_height = false;
      const SceneTouch touch = slot_.draw(ui, id, how, width, scene->height);
      if (const auto* token = meaning<TokenAt>(touch.mark); token && touch.clicked) {
        const auto at = static_cast<int>(token->position);
        int& mine = token->text == 0 ? picked_a_ : picked_b_;
        mine = mine == at ? -1 : at;
        if (picked_a_ >= 0 && picked_b_ >= 0) {
          changed = paired(texts->partner, picked_a_, picked_b_);
          picked_a_ = picked_b_ = -1;
        }
      }
      for (const auto& [text, index] : {std::pair{0, picked_a_}, {1, picked_b_}}) {
        const Mark* mark = mark_of(*scene, TokenAt{index, text});
        if (!mark) continue;
        const Rect& r = std::get<Box>(mark->shape).rect;
        ImGui::GetWindowDrawList()->AddRect(touch.window({r.x - 1, r.y - 1}),
                                            touch.window({r.right() + 1, r.bottom() + 1}), col(ui.theme.accent),
                                            ui.px(4), 0, ui.px(2));
      }
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();
  return changed;
}

}  // namespace headscope
