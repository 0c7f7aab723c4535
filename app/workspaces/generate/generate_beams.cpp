// The page of beams in the Generate workspace: the tree in the middle, with the text that was clicked in it; how it is
// searched and what was finished on the right.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/beam_picture.h"
#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/generate/generate_workspace.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double most_beams_here = 12, most_tokens_here = 64;  // that a slider offers
constexpr std::size_t most_lines = 4;                          // of a finished text

std::string text_of(const LoadedModel& model, const BeamTree& tree, const Beam& beam) {
  std::vector<std::int32_t> ids = tree.tokens(beam.node);
  if (beam.ended) ids.pop_back();
  if (model.tokenizer) {
    const std::string text = model.tokenizer->decode(ids);
    return printable(text.substr(std::min(text.find_first_not_of(' '), text.size())));
  }
  std::string out;
  for (const std::int32_t id : ids) out += fmt::format("#{} ", id);
  return out;
}

}  // namespace

/// In a child that scrolls: a node that was just chosen, from the list perhaps, comes into sight; without one the tree
/// goes back to where it was.
void GenerateWorkspace::reveal(const Ui& ui, const Scene& scene, std::optional<std::size_t> node) {
  if (node == revealed_) return;
  const Mark* mark = node ? find(scene, fmt::format("node.{}", *node)) : nullptr;
  if (node && !mark) return;  // of the picture that is being drawn
  if (!revealed_) scrolled_before_ = ImGui::GetScrollX();
  revealed_ = node;
  if (!mark) return ImGui::SetScrollX(scrolled_before_);
  const Rect& box = std::get<Box>(mark->shape).rect;
  const float left = ui.px(box.x), right = ui.px(box.right() + 30), room = ImGui::GetContentRegionAvail().x;
  if (right > ImGui::GetScrollX() + room) ImGui::SetScrollX(right - room);
  if (left < ImGui::GetScrollX()) ImGui::SetScrollX(std::max(left - ui.px(30), 0.f));
}

void GenerateWorkspace::beams(Ui& ui, AppContext& app) {
  note(ui, said("Several texts at once: at every step all continuations of the kept texts are compared, and the most "
                "probable "
                "ones are kept. Nothing is drawn at random."));
  const auto& tree = controller_.beams();
  if (!tree)
    return empty_state(ui, controller_.searching() ? said("Searching …") : said("Waiting"),
                       said("The best continuations of the prompt are looked for, several at a time."));
  const BeamSettings& searched = *controller_.searched();
  const auto followed = controller_.followed();
  if (controller_.searching()) ui.pictures.passing = "a search that had not come to its end";
  if (followed) ui.pictures.passing = "a text of the tree that was being followed";
  section(ui, said("TREE"),
          controller_.searching() ? said("searching …")
          : followed              ? said("Esc: back to the text from before")
                                  : say("{} · click a token to look at its text", words_of(searched)));
  tree_.want(app.explorer.jobs, ui, tree,
             fmt::format("{} {}", controller_.shows_dropped(), followed ? std::to_string(*followed) : ""),
             [tree, followed, with = controller_.shows_dropped(), model = controller_.model()](const Style& style) {
               BeamTreeOptions options = beam_tree_options(*tree, model.tokenizer.get());
               options.selected = followed;
               options.dropped = with;
               return beam_tree_scene(options, style);
             });
  // Below it the text that is looked at, and what an encoder-decoder read for it.
  const bool reads = controller_.prompt()->whole->encoder != nullptr;
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  const double below = followed ? 150 + (reads ? 90 : 0) : 0;
  if (const Scene* scene = tree_.scene()) {
    const double bar = static_cast<double>(ImGui::GetStyle().ScrollbarSize / ui.scale) + 2;
    const double height = std::max(std::min(scene->height + bar, room - below), 120.0);
    std::optional<std::size_t> clicked;
    if (ImGui::BeginChild("beam tree", {0, ui.px(height)}, ImGuiChildFlags_NavFlattened,
                          ImGuiWindowFlags_HorizontalScrollbar)) {
      SceneViewOptions how;
      how.fit_width = how.fit_height = false;
      reveal(ui, *scene, followed);
      const SceneTouch touch = tree_.draw(ui, "beams", how, scene->width, scene->height);
      if (const auto* node = meaning<Part>(touch.mark); node && touch.clicked) clicked = node->index;
    }
    ImGui::EndChild();
    if (clicked) return controller_.follow(*clicked);
  }
  if (!followed) return;
  section(ui, said("TEXT"), said("of the chosen beam · click a token to see where it looked, ← and → walk"));
  chips(ui, ui.px(84));
  source(ui, app);
  ImGui::Dummy({0, ui.px(2)});
  if (button(ui, to_say("Heads and choices on the tape"))) app.settings.pages[id()] = "tape";
  beside(ui, button_width(ui, "Back"));
  if (button(ui, to_say("Back"))) controller_.leave_beam();
}

void GenerateWorkspace::beams_facts(Ui& ui) {
  BeamSettings& settings = controller_.beam_settings();
  section(ui, said("BEAMS"), said("from the prompt on"));
  double width = settings.width, tokens = settings.tokens;
  if (slider(ui, to_say("Beams"), width, {1, most_beams_here, 4, false, "", 0}))
    settings.width = static_cast<int>(width);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("Texts that are kept at every step"), said("1 is greedy: the most probable token each time")});
  slider(ui, to_say("Penalty"), settings.length_penalty, {-2, 3, 1, false, "", 1});
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("Length penalty: a finished text scores Σ ln p ÷ tokens^penalty"),
                 said("0: the sum alone, which favours short texts · above 1 long ones gain")});
  const double longest = std::clamp<double>(
      controller_.model().model->config().context - static_cast<double>(controller_.prompt()->whole->tokens.size()) + 1,
      2, most_tokens_here);
  if (slider(ui, to_say("Tokens"), tokens, {1, longest, 16, false, "", 0})) settings.tokens = static_cast<int>(tokens);
  static constexpr const char* ways[] = {to_say("Usual"), to_say("At once"), to_say("To be sure")};
  int way = static_cast<int>(settings.stopping);
  if (segmented(ui, "beam stopping", ways, way, ImGui::GetContentRegionAvail().x))
    settings.stopping = static_cast<BeamSettings::Stopping>(way);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui, {said("When the search ends, once as many texts are finished as there are beams"),
                 said("usual: when the best kept one scores less than the worst finished one"),
                 said("at once: then and there"), said("to be sure: when no text could still become better")});
  check_box(ui, to_say("show dropped candidates"), controller_.shows_dropped());

  const auto& tree = controller_.beams();
  if (!tree) return;
  const auto followed = controller_.followed();
  section(ui, said("FINISHED"),
          tree->beams.empty() ? said("none yet") : said("score · best first · click to look at one"));
  for (std::size_t i = 0; i < tree->beams.size(); ++i) {
    const Beam& beam = tree->beams[i];
    const float room = ImGui::GetContentRegionAvail().x;
    const double wide = static_cast<double>(room / ui.scale) - 34, line = 17;
    // Whole: beams often differ at their ends alone.
    const std::string words = text_of(controller_.model(), *tree, beam);
    std::vector<std::string> lines = wrapped(words, ui.body(), wide, ui.fonts);
    if (lines.size() > most_lines) {
      lines.resize(most_lines);
      lines.back() += " …";
    }
    const int length = tree->nodes[beam.node].step;
    const std::string how = fmt::format("{}, {}", length == 1 ? said("1 token") : say("{} tokens", length),
                                        beam.ended ? said("ended") : said("cut at the last step"));
    const std::string score = fmt::format("{:.4f}", beam.score);
    // In a narrow column what is said of it stands below the score.
    const bool beside_score = ui.fonts.width(how, ui.small()) + ui.fonts.width(score, ui.number()) + 8 <= wide;
    const double text_at = beside_score ? 33 : 49;
    const float height = ui.px(text_at - 9 + line * static_cast<double>(std::max<std::size_t>(lines.size(), 1)));
    const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + room, at.y + height};
    if (pressable(fmt::format("beam {}", i + 1).c_str(), {room, height})) return controller_.follow(beam.node);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const bool chosen = followed == beam.node;
    if (chosen || ImGui::IsItemHovered())
      draw.AddRectFilled(at, end, col(chosen ? ui.chrome.selected : ui.chrome.hovered), ui.px(5));
    draw_text(ui, draw, {{0, 0}, fmt::format("{}", i + 1), ui.number(), ui.theme.muted, Anchor::start, 0},
              {at.x + ui.px(8), at.y + ui.px(16)});
    draw_text(ui, draw, {{0, 0}, elided(how, ui.small(), wide, ui.fonts), ui.small(), ui.theme.muted, Anchor::start, 0},
              {at.x + ui.px(26), at.y + ui.px(beside_score ? 16 : 32)});
    draw_text(ui, draw, {{0, 0}, score, ui.number(), ui.theme.text, Anchor::end, 0},
              {end.x - ui.px(8), at.y + ui.px(16)});
    for (std::size_t k = 0; k < lines.size(); ++k)
      draw_text(ui, draw,
                {{0, 0}, elided(lines[k], ui.body(), wide, ui.fonts), ui.body(), ui.theme.text, Anchor::start, 0},
                {at.x + ui.px(26), at.y + ui.px(text_at + line * static_cast<double>(k))});
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(ui,
              {words, say("Σ ln p {:.4f} over {} tokens, score {:.4f}", tree->nodes[beam.node].sum, length, beam.score),
               said("softmax of the logits behind every prefix, full vocabulary, in double")});
  }
  section(ui, said("WHAT TO LOOK FOR"));
  note(ui, said("A text that begins with a less probable token may win in the end: greedy decoding never finds it. "
                "Beams often "
                "differ only in a few words; a wider search finds more probable texts, not always better ones."));
}

}  // namespace headscope
