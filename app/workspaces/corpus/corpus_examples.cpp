// The right side of the Corpus workspace: numbers of the selected head, and passages that show it.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/corpus/corpus_workspace.h"
#include "app/workspaces/head_cells.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/patch_map.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

/// Words in three colours, wrapped as one text: what came before, the position that stands out, what follows. Of a pair
/// the source stands first, its target on a line below.
void wrapped_example(const Ui& ui, const ShownExample& example, bool of_source) {
  const Font font = ui.body();
  const UseFont use(ui, font);
  const float left = ImGui::GetCursorScreenPos().x, right = left + ImGui::GetContentRegionAvail().x;
  ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight() + ui.px(3);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto write = [&](const std::string& text, Color color, bool ground) {
    for (std::size_t begin = 0; begin < text.size();) {
      // A word with the spaces before it, so that lines break between words.
      std::size_t end = text.find_first_not_of(" \n\r\t", begin);
      end = end == std::string::npos ? text.size() : std::min(text.find_first_of(" \n\r\t", end), text.size());
      std::string word = printable(text.substr(begin, end - begin), 400);
      std::ranges::replace(word, '\n', ' ');
      const auto width_of_word = [&] { return static_cast<float>(ui.fonts.width(word, font)) * ui.scale; };
      const float width = width_of_word();
      if (at.x + width > right && at.x > left) {
        at = {left, at.y + line};
        word.erase(0, word.find_first_not_of(' '));
      }
      const float shown = width_of_word();
      if (ground)
        draw.AddRectFilled({at.x - ui.px(1), at.y - ui.px(1)}, {at.x + shown + ui.px(1), at.y + line - ui.px(2)},
                           col(with_opacity(ui.theme.accent, 0.28)), ui.px(3));
      const std::string_view laid_out = ui.fonts.laid_out(word, font);
      draw.AddText(at, col(color), laid_out.data(), laid_out.data() + laid_out.size());
      at.x += shown;
      begin = end;
    }
  };
  const bool pair = !example.beside.empty();
  const auto write_target = [&](const auto& target) {
    at = {left, at.y + line};
    write("→ ", ui.theme.faint, false);
    target();
  };
  const auto write_looked_at = [&] {
    write(example.before, ui.theme.muted, false);
    write(example.focus, ui.theme.text, true);
    write(example.after, example.focus.empty() || pair ? ui.theme.muted : ui.theme.faint, false);
  };
  const auto write_beside = [&] { write(example.beside, pair ? ui.theme.muted : ui.theme.faint, false); };
  if (!pair) {
    write_looked_at();
  } else if (of_source) {
    write_looked_at();
    write_target(write_beside);
  } else {
    write_beside();
    write_target(write_looked_at);
  }
  ImGui::Dummy({right - left, at.y + line - ImGui::GetCursorScreenPos().y});
}

}  // namespace

void CorpusWorkspace::right(const PageContext& c) {
  follow(c);
  if (!controller_.results() || controller_.results()->statistics.passages() == 0)
    return empty_state(c.ui, said("Examples"), said("Passages that show the selected head best will stand here."));
  numbers(c.ui, c.app);
  examples(c.ui, c.app);
}

void CorpusWorkspace::numbers(Ui& ui, AppContext& app) {
  const CorpusStatistics& all = part();
  const HeadId head = app.explorer.state().document.selected;
  section(
      ui, say("HEAD {}.{}", head.layer, head.head),
      stack_ == Stack::only ? said("mean ± spread, chance in grey") : say("{} · mean ± spread", stack_word(stack_)));
  const auto row = corpus_row(all, head);
  if (!row) return note(ui, said("These results are of another model."));
  if (const ClassRule* rule = all.class_of(*row, default_class_rules())) {
    const std::size_t scored = corpus_column(rule->metric);
    badge(ui, fmt::format("{} {:.2f}", said(rule->title), all.of(*row, scored).mean()), class_color(*rule));
    if (ImGui::IsItemHovered())
      tooltip(ui, {say("{} by the mean over all passages", said(rule->title)),
                   std::string(said_view(metrics()[scored].formula))});
  }
  std::vector<const char*> listed{"entropy",         "sink",         "previous_token", "duplicate_token",
                                  "prefix_matching", "mean_distance"};
  if (std::ranges::all_of(listed, [&](const char* id) { return all.of(*row, corpus_column(id)).count() == 0; })) {
    note(
        ui,
        said(
            "No passage gives it one of the usual numbers: those of probabilities are silent on weights of any sign."));
    listed = {"row_mass"};
  }
  std::string silent, why;
  std::erase_if(listed, [&](const char* id) {
    const std::string none = why_none(corpus_column(id));
    if (none.empty()) return false;
    silent += (silent.empty() ? "" : ", ") + std::string(said_view(metrics()[corpus_column(id)].title));
    why = none;
    return true;
  });
  if (!silent.empty()) listed.push_back("max_weight");
  for (const char* id : listed) {
    const std::size_t at = corpus_column(id);
    const Distribution& values = all.of(*row, at);
    const auto number = [](double value) { return std::isnan(value) ? std::string("–") : short_number(value, 3); };
    const std::string chance = number(all.chance(at).mean());
    fact(ui, std::string(metrics()[at].title), fmt::format("{} ± {}", number(values.mean()), number(values.spread())),
         nullptr,
         {std::string(said_view(metrics()[at].title)), std::string(said_view(metrics()[at].formula)),
          say("mean and standard deviation over {} passages; {} … {}", values.count(), number(values.smallest()),
              number(values.largest()))},
         &chance);
  }
  if (!silent.empty()) note(ui, say("Absent: {}; {}", silent, why));
}

/// A small picture with the patch that stands out, and beside it what it is.
void CorpusWorkspace::picture_example(Ui& ui, AppContext& app, std::size_t number, const ShownExample& example,
                                      const std::string& value) {
  constexpr double side = 72;
  SceneSlot& slot = pictures_[number];
  const auto key = example.example.query >= 0 ? std::optional<Index>(example.example.query) : std::nullopt;
  slot.want(app.explorer.jobs, ui, example.picture, fmt::format("{}", key.value_or(-1)),
            [picture = example.picture, key, place = example.place](const Style& style) {
              Scene scene = picture_thumbnail(*picture, key, side, style);
              scene.title = place;  // by which Export calls it
              return scene;
            });
  ImGui::BeginGroup();
  slot.draw(ui, fmt::format("example picture {}", number).c_str(), {}, side, side);
  ImGui::EndGroup();
  ImGui::SameLine(0, ui.px(12));
  ImGui::BeginGroup();
  fact(ui, example.place, value);
  if (!example.focus.empty()) note(ui, say("at {}", example.focus));
  ImGui::EndGroup();
}

void CorpusWorkspace::examples(Ui& ui, AppContext& app) {
  section(ui, said("EXAMPLES"), say("by {} · click opens in Explore", said_view(metrics()[shown()].title)));
  static constexpr const char* kinds[] = {to_say("Highest"), to_say("Lowest"), to_say("Typical")};
  segmented(ui, "example kind", kinds, kind_);
  if (ImGui::IsItemHovered())
    tooltip(ui, {said("Passages by the metric of this head"), said("highest and lowest: of all passages"),
                 say("typical: nearest to the median, of a random sample of {} passages", CorpusStatistics::sampled),
                 said("marked: the position where the metric of that row alone is most extreme")});
  const HeadId head = app.explorer.state().document.selected;
  const auto* read = controller_.examples(head, shown(), static_cast<ExampleKind>(kind_), stack_);
  if (!read) return;
  if (read->empty()) return note(ui, said("No passage offers evidence for this metric."));
  for (std::size_t i = 0; i < read->size(); ++i) {
    const ShownExample& example = (*read)[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::Dummy({0, ui.px(2)});
    const ImVec2 from = ImGui::GetCursorScreenPos();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.ChannelsSplit(2);
    draw.ChannelsSetCurrent(1);
    ImGui::BeginGroup();
    const std::string value = short_number(Distribution::value(example.example.value), 4);
    if (example.picture) {
      picture_example(ui, app, i, example, value);
    } else {
      fact(ui, example.place, value);
      if (example.error.empty())
        wrapped_example(ui, example, stack_ == Stack::encoder);
      else
        error_text(ui, example.error);
    }
    ImGui::EndGroup();
    const ImVec2 to{from.x + ImGui::GetContentRegionAvail().x, ImGui::GetItemRectMax().y + ui.px(4)};
    ImGui::SetCursorScreenPos(from);
    const std::string id = fmt::format("example {}", i);
    const bool clicked = pressable(id.c_str(), {to.x - from.x, to.y - from.y});
    draw.ChannelsSetCurrent(0);
    if (ImGui::IsItemHovered())
      draw.AddRectFilled({from.x - ui.px(6), from.y - ui.px(2)}, {to.x + ui.px(6), to.y}, col(ui.chrome.hovered),
                         ui.px(6));
    draw.ChannelsMerge();
    if (clicked && example.error.empty()) {
      controller_.open(example, head, stack_);
      if (controller_.of_open_model()) app.ui.workspace = workspace_index("Explore");
    }
    ImGui::PopID();
  }
}

}  // namespace headscope
