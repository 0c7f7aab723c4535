#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <set>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/panels.h"
#include "app/workspaces/shown_run.h"
#include "core/base/words.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/meaning.h"
#include "viz/scene/patch_map.h"

namespace headscope {

namespace {

/// Positions that an enabled edit hides, whatever it puts in their place.
std::set<Index> hidden_positions(const PageContext& c, Index tokens) {
  std::set<Index> out;
  for (const Intervention& edit : c.state().document.edits) {
    if (!edit.enabled || form_of(edit.action).lead != "hide patches") continue;
    const PositionRange range = edit.target.positions.value_or(PositionRange{0, -1});
    for (Index at = from_end(range.first, static_cast<int>(tokens));
         at <= from_end(range.last, static_cast<int>(tokens)); ++at)
      out.insert(at);
  }
  return out;
}

/// What is laid over the picture: where the pinned token looks in the selected head, or what each patch receives there.
PatchValues overlay(const PageContext& c, const AttentionMap& map) {
  const Trace& trace = *c.trace();
  PatchValues values;
  const auto pinned = c.state().document.query;
  if (pinned && *pinned < map.n_query()) {
    std::vector<float> row(static_cast<std::size_t>(map.n_key()));
    map.row(*pinned, row);
    values.by_key.assign(row.begin(), row.end());
    values.name = fmt::format("{}[{}, :]", map_name(trace, map.id()), *pinned);
    values.query = pinned;
  } else {
    values.by_key = map.stats().column_mass;
    values.name = map_name(trace, map.id()) + "[sum, :]";
  }
  values.unit = said("weight");
  values.title = trace.model.name;
  return values;
}

/// CLS and whatever else stands before the patches, to be pinned like them.
void leading_chips(const PageContext& c) {
  const Trace& trace = *c.trace();
  for (Index i = 0; i < trace.picture->leading; ++i) {
    if (i > 0) ImGui::SameLine(0, c.ui.px(3));
    ChipOptions chip;
    chip.selected = c.state().document.query == i;
    chip.hovered = c.state().hover.query == i || c.state().hover.key == i;
    const Touch touch = token_chip(c.ui, token_label(trace, i), "token " + std::to_string(i), chip);
    if (touch.hovered) c.hovered.key = i;
    if (touch.clicked) c.editor.pin(chip.selected ? std::nullopt : std::optional(i));
  }
}

/// Hidden patches, and the one under the pointer wherever that is, over the scene.
void mark_patches(const PageContext& c, const SceneTouch& touch, const Scene& scene, const std::set<Index>& hidden) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const Hover& hover = c.state().hover;
  for (const Mark& mark : scene.marks) {
    const TokenAt* patch = meaning<TokenAt>(&mark);
    const Box* box = std::get_if<Box>(&mark.shape);
    if (!patch || !box) continue;
    const ImVec2 low = touch.window({box->rect.x, box->rect.y}),
                 high = touch.window({box->rect.right(), box->rect.bottom()});
    if (hidden.contains(patch->position)) {
      draw.AddRectFilled(low, high, col(with_opacity(c.ui.theme.background, 0.75)));
      draw.AddLine(low, high, col(c.ui.theme.muted));
    }
    if (hover.key == patch->position) draw.AddRect(low, high, col(c.ui.theme.key), 0, 0, c.ui.px(1.5));
  }
}

}  // namespace

void PicturePanel::brush(const PageContext& c, const SceneTouch& touch) {
  const TokenAt* patch = meaning<TokenAt>(touch.mark);
  if (!touch.held && !touch.clicked) pressed_.reset();
  if (!patch) return;
  const Index at = patch->position;
  c.hovered.key = at;
  if (touch.pressed) pressed_ = at, painting_ = false;
  if (touch.held && pressed_ && *pressed_ != at) {
    c.editor.hide_patches({*pressed_, at}, true);
    painting_ = true;
    pressed_ = at;
  }
  if (touch.clicked && !painting_) c.editor.pin(c.state().document.query == at ? std::nullopt : std::optional(at));
  if (touch.hovered && ImGui::IsMouseDown(ImGuiMouseButton_Right)) c.editor.hide_patches({at}, false);
}

void PicturePanel::draw(const PageContext& c) {
  const std::filesystem::path& image = c.state().document.image;
  section(c.ui, said("PICTURE"), image.empty() ? "" : image.filename().string());
  if (button(c.ui, image.empty() ? to_say("Open a picture…") : to_say("Another…"), c.ui.px(27)))
    c.app.ui.dialog = UiRequests::Dialog::open_model;
  if (image.empty()) return note(c.ui, said("This model reads pictures: drop a PNG or JPEG here."));
  if (c.app.explorer.run.behind()) {
    const UseFont font(c.ui, c.ui.body());
    paragraph(c.ui, said("Not run to its end: what is shown is of what was there before."), c.ui.theme.text);
    ImGui::SameLine();
    if (button(c.ui, to_say("Run again (F5)"), c.ui.px(27))) c.app.explorer.run.run_again();
  }
  const Trace* trace = c.trace();
  if (!trace || !trace->picture) return;
  const PatchPicture& picture = *trace->picture;
  const AttentionMap* map = selected_map(c);
  if (!map) return;
  const auto pinned = c.state().document.query;
  section(c.ui, said("PATCHES"),
          fmt::format("{} × {} · {}", picture.columns, picture.rows,
                      pinned ? say("where {} looks", token_word(*trace, *pinned)) : said("attention received")));
  leading_chips(c);
  const double width = std::floor(c.room());
  const double most = static_cast<double>(ImGui::GetIO().DisplaySize.y / c.ui.scale) < 800 ? 250 : 330;
  const double tall = static_cast<double>(picture.height) / static_cast<double>(std::max<Index>(picture.width, 1));
  const double height = std::min(width * tall + 84, most);
  const PatchValues values = overlay(c, *map);
  const auto shared = c.results().run->trace;
  slot_.want(c.jobs, c.ui, shared, fmt::format("{} {} {} {}", values.name, width, height, pinned.value_or(-1)),
             [shared, values, width, height](const Style& style) {
               PatchMapOptions options;
               options.room = PatchMapOptions::Room{width, height};
               return patch_values_scene(*shared, values, options, style);
             });
  SceneViewOptions how;
  how.centered = true;
  const SceneTouch touch = slot_.draw(c.ui, "picture", how, width, height);
  if (slot_.scene()) mark_patches(c, touch, *slot_.scene(), hidden_positions(c, picture.keys()));
  brush(c, touch);
  note(c.ui,
       said("Click pins a patch. Drag hides patches from the model; drag with the right button shows them again."));
}

}  // namespace headscope
