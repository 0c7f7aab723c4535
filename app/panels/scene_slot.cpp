#include "app/panels/scene_slot.h"

#include "viz/export/pango_text.h"

namespace headscope {

SceneSlot::SceneSlot(std::string tag) : tag_(std::move(tag)) {}

void SceneSlot::want(Explorer& explorer, const Ui& ui, std::shared_ptr<const void> source, const std::string& options,
                     Build build) {
  const std::string all = std::string(ui.theme.id) + "|" + options;
  if (source == source_ && all == options_) return;
  source_ = std::move(source);
  options_ = all;
  build_ = std::make_shared<const Build>(std::move(build));
  if (!source_) return shared_->view.show(nullptr);
  explorer.compute(
      tag_,
      [build = build_, theme = &ui.theme, slot = std::weak_ptr<Shared>(shared_)](Worker::Job&) -> Worker::Deliver {
        const PangoText measure;
        auto scene = std::make_shared<const Scene>((*build)({*theme, measure}));
        return [scene, slot] {
          if (const auto alive = slot.lock()) alive->view.show(scene);
        };
      });
}

void SceneSlot::let_go() {
  source_.reset();
  options_.clear();
  build_.reset();
  shared_ = std::make_shared<Shared>();  // a picture that is still being made finds nobody
}

SceneTouch SceneSlot::draw(Ui& ui, const char* id, const SceneViewOptions& view, double width, double height) {
  if (const Scene* shown = scene(); shown && build_)
    ui.pictures.add(id, shown->title, shown->width * shown->height,
                    [build = build_](const Look& look) { return (*build)(look); });
  return shared_->view.draw(ui, id, camera, view, width, height);
}

}  // namespace headscope
