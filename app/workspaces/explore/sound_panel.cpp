#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/widgets/controls.h"
#include "app/workspaces/explore/panels.h"
#include "app/workspaces/shown_run.h"
#include "core/base/words.h"
#include "core/io/sound.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/meaning.h"
#include "viz/scene/sound_map.h"

namespace headscope {

namespace {
std::vector<double> row_of(const AttentionMap& map, Index query) {
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  map.row(query, row);
  std::vector<double> out;
  for (const float weight : row) out.push_back(std::abs(static_cast<double>(weight)));
  return out;
}

/// What is laid over the sound: where the pinned token looks in the selected head, or what each stretch receives there;
/// while heads of the decoder are looked at, the mean over all heads of cross-attention.
struct Listening {
  Stack stack = Stack::cross;
  HeadId head;
  std::optional<Index> pinned;

  SoundValues values(const Trace& trace) const {
    SoundValues out;
    out.unit = said("weight");
    out.title = trace.model.name;
    if (trace.maps.empty()) return out;
    const Index last = trace.maps.front().n_query() - 1;
    if (stack == Stack::decoder) {
      const Index query = std::min(pinned.value_or(last), last);
      for (const AttentionMap& map : trace.maps) {
        const std::vector<double> row = row_of(map, query);
        out.by_key.resize(row.size());
        for (std::size_t i = 0; i < row.size(); ++i) out.by_key[i] += row[i] / static_cast<double>(trace.maps.size());
      }
      out.name = said("mean over all heads of cross-attention") + fmt::format("[{}, :]", query);
      return out;
    }
    const AttentionMap& map = trace.map(head);
    if (pinned && *pinned <= last) {
      out.by_key = row_of(map, *pinned);
      out.name = fmt::format("{}[{}, :]", map_name(trace, map.id()), *pinned);
      if (!trace.between_texts()) out.query = pinned;
    } else {
      out.by_key = map.stats().column_mass;
      out.name = map_name(trace, map.id()) + "[sum, :]";
    }
    return out;
  }
};
}  // namespace

void SoundPanel::begin_at(const PageContext& c, const SoundFrames& sound) {
  // Once: what is on the disk later on may be another thing, or nothing.
  if (const auto& read = c.results().run->request.sound; path_ != read) {
    path_ = read;
    place_ = {read, 0};
    if (sound.from > 0 || read.string().ends_with("#t=0"))
      place_.file = read.string().substr(0, read.string().rfind("#t="));
    place_.from = sound.from;
  }
  if (!moved_) from_ = place_.from;
  // Its last second at the latest.
  const double latest = std::max(std::floor(sound.whole()) - 1, 1.0);
  moved_ |= slider(c.ui, to_say("Begins at"), from_, {0, latest, 0, false, " s", 1});
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(c.ui, {say("{:.1f} s long; {:g} s of it are heard at once", sound.whole(), sound.read_seconds()),
                   said("On the command line: --sound FILE#t=SECONDS")});
  if (!moved_ || ImGui::IsMouseDown(ImGuiMouseButton_Left)) return;
  moved_ = false;
  if (from_ != place_.from) c.app.explorer.run.hear(path_of({place_.file, from_}));
}

void SoundPanel::draw(const PageContext& c) {
  const Document& document = c.state().document;
  section(c.ui, said("SOUND"),
          document.sound.empty() ? said("the encoder hears it") : document.sound.filename().string());
  if (button(c.ui, document.sound.empty() ? to_say("Open a sound…") : to_say("Another…"), c.ui.px(27)))
    c.app.ui.dialog = UiRequests::Dialog::open_model;
  if (document.sound.empty()) {
    ImGui::SameLine(0, c.ui.px(8));
    if (button(c.ui, to_say("Tones"), c.ui.px(27))) c.app.explorer.run.hear(built_in_sound);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(c.ui, {said("Three tones, a chord and a glide, made by a formula")});
    return note(c.ui, said("This model writes down what it hears: drop a sound here."));
  }
  const auto whole = c.results().run ? c.results().run->whole : nullptr;
  if (!whole || !whole->encoder || !whole->encoder->sound) return;
  if (const SoundFrames& sound = *whole->encoder->sound;
      (sound.whole() > sound.read_seconds() || sound.from > 0) && c.results().run->request.sound == document.sound)
    begin_at(c, sound);
  const bool encoder = document.stack == Stack::encoder;
  const auto shared = encoder ? whole->encoder : whole->cross;
  if (!shared) return;
  const auto pinned = document.query;
  const double width = std::floor(c.room());
  const double height = static_cast<double>(ImGui::GetIO().DisplaySize.y / c.ui.scale) < 800 ? 140 : 190;
  const Listening listening{document.stack, document.selected, pinned};
  const auto spoken = spoken_.of(c, shown_whole(c));
  slot_.want(
      c.jobs, c.ui, shared,
      fmt::format("{} {} {} {} {} {} {}", static_cast<int>(document.stack), document.selected.layer,
                  document.selected.head, width, height, pinned.value_or(-1), static_cast<const void*>(spoken.get())),
      [shared, listening, width, height, spoken, token = encoder ? std::nullopt : pinned](const Style& style) {
        SoundMapOptions options;
        options.spoken = spoken;
        options.token = token;
        options.room = SoundMapOptions::Room{width, height};
        return sound_values_scene(*shared, listening.values(*shared), options, style);
      });
  const SceneTouch touch = slot_.draw(c.ui, "sound", {}, width, height);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort) && !touch.mark)
    tooltip(c.ui, {document.stack == Stack::decoder
                       ? said("where the pinned token listens: the mean over all heads of cross-attention")
                   : pinned ? said("where the pinned row looks in the selected head")
                            : said("attention received in the selected head")});
  const TokenAt* stretch = meaning<TokenAt>(touch.mark);
  if (!stretch) return;
  if (document.stack != Stack::decoder) c.hovered.key = stretch->position;
  if (encoder && touch.clicked)
    c.editor.pin(pinned == stretch->position ? std::nullopt : std::optional(stretch->position));
}

}  // namespace headscope
