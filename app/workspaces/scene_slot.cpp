#include "app/workspaces/scene_slot.h"

#include <fmt/format.h>

#include "viz/export/pango_text.h"

namespace headscope {

void SceneSlot::want(JobRunner& jobs, const Ui& ui, std::shared_ptr<const void> source, const std::string& options,
                     Build build) {
  in_room_ = {};
  want_key(jobs, {std::move(source), options, std::string(ui.theme.id)}, ui.theme, std::move(build), {});
}

void SceneSlot::want(JobRunner& jobs, const Ui& ui, const char* id, PagePicture picture, Room room) {
  const std::string options = fmt::format("{} {} {} {}", id, picture.options, room.width, room.height);
  want(jobs, ui, std::move(picture.source), options,
       [build = picture.build, room](const Style& style) { return build(room, style); });
  room_ = room;
  in_room_ = std::move(picture.build);
}

void SceneSlot::want(JobRunner& jobs, const Ui& ui, std::shared_ptr<const void> source, const std::string& options,
                     Build build, BuildShown shown, bool waits) {
  in_room_ = {};
  Key key{std::move(source), options, std::string(ui.theme.id)};
  const auto& asked = answer_.asked();
  waits = waits && asked && asked->source == key.source && asked->look == key.look;
  if (waits && under_way(jobs)) return;
  want_key(jobs, std::move(key), ui.theme, std::move(build), std::move(shown));
}

void SceneSlot::want_key(JobRunner& jobs, Key key, const Theme& theme, Build build, BuildShown shown) {
  if (!key.source) return let_go(jobs);
  if (answer_.asked_for(key)) return;
  build_ = std::make_shared<const Build>(std::move(build));
  answer_.want(jobs, std::move(key), [build = build_, shown = std::move(shown), theme = &theme](const Ctx& ctx) {
    const PangoText measure;
    const Style style{*theme, measure};
    return shown ? shown(style, ctx) : (*build)(style);
  });
}

void SceneSlot::let_go(JobRunner& jobs) {
  answer_.let_go(jobs);
  build_.reset();
}

SceneTouch SceneSlot::draw(Ui& ui, const char* id, const SceneViewOptions& view, double width, double height) {
  if (const Scene* shown = scene(); shown && build_ && ui.pictures.asked) {
    ui.pictures.add(id, shown->title, shown->width * shown->height,
                    [build = build_](const Style& style) { return (*build)(style); });
    ShownPicture& added = ui.pictures.all.back();
    added.room_width = room_.width, added.room_height = room_.height;
    if (in_room_)
      added.in_room = [in_room = in_room_](double across, double down, const Style& style) {
        return in_room({across, down}, style);
      };
  }
  view_.show(answer_.last());
  return view_.draw(ui, id, camera, view, width, height);
}

}  // namespace headscope
