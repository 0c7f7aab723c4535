#include "app/workspaces/scene_slot.h"

#include "viz/export/pango_text.h"

namespace headscope {

void SceneSlot::want(JobRunner& jobs, const Ui& ui, std::shared_ptr<const void> source, const std::string& options,
                     Build build) {
  if (!source) return let_go(jobs);
  Key key{std::move(source), options, std::string(ui.theme.id)};
  if (answer_.asked_for(key)) return;
  build_ = std::make_shared<const Build>(std::move(build));
  answer_.want(jobs, std::move(key), [build = build_, theme = &ui.theme](const Ctx&) {
    const PangoText measure;
    return (*build)({*theme, measure});
  });
}

void SceneSlot::let_go(JobRunner& jobs) {
  answer_.let_go(jobs);
  build_.reset();
}

SceneTouch SceneSlot::draw(Ui& ui, const char* id, const SceneViewOptions& view, double width, double height) {
  if (const Scene* shown = scene(); shown && build_)
    ui.pictures.add(id, shown->title, shown->width * shown->height,
                    [build = build_](const Style& style) { return (*build)(style); });
  view_.show(answer_.last());
  return view_.draw(ui, id, camera, view, width, height);
}

}  // namespace headscope
