#include "app/state/page_drawer.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "app/state/controller_controls.h"
#include "app/state/exports.h"
#include "app/state/film.h"
#include "app/state/mechanism_controller.h"
#include "app/state/page_picture.h"
#include "app/state/positions_controller.h"
#include "app/state/workspace_list.h"
#include "core/attention/positions/position_methods.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "viz/export/pango_text.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

constexpr int drawer_quiet_frames = 4;

/// What the window's loop does, without the window.
class PageDrawer {
 public:
  PageDrawer(Explorer::Options options, std::string where, const Ctx& ctx)
      : where_(std::move(where)),
        stop_(ctx.stop),
        explorer_(waking(std::move(options))),
        positions_(explorer_.jobs, explorer_.editor, explorer_.run),
        mechanisms_(explorer_.jobs, explorer_.editor, explorer_.run) {
    explorer_.certificates.check_small_models(false);
  }

  /// The picture as a file shows it, `bare` without its title.
  std::function<Scene(const Style&)> picture(const PictureRecipe& recipe, bool bare) {
    const Session& session = *recipe.session;
    on_positions_ = session.window.workspace == "Positions";
    if (!on_positions_ && session.window.workspace != "Mechanisms") refuse(recipe);
    if (!(session.document == explorer_.state().document)) explorer_.editor.replace(session.document);
    explorer_.editor.view() = session.view;
    const auto page = session.window.pages.find(session.window.workspace);
    const std::string id = page == session.window.pages.end() ? "" : page->second;
    settle();
    if (session.document.model.empty() ? on_positions_ : !explorer_.results().run) {
      const auto& message = explorer_.jobs.message();
      throw Error(where_, "a model and a text for the page that it shows", message ? message->text : "none");
    }
    for (int i = 0; i < 2 && !take(id, session); ++i) settle();  // how far some go is known once others are taken
    if (const auto& message = explorer_.jobs.message(); message && message->level == Message::Level::error)
      throw Error(where_, "the page that it shows", message->text);
    if (!on_positions_ && !mechanisms_.error().empty())
      throw Error(where_, "the mechanism that it shows", mechanisms_.error());
    const std::string& name = recipe.picture->id;
    PagePicture found = on_positions_ ? positions_picture(positions_, name) : mechanism_picture(mechanisms_, name);
    if (!found.source) refuse(recipe);
    const Room room{recipe.picture->width, recipe.picture->height};
    return [build = std::move(found.build), room, name, bare, page = page_title(id)](const Style& style) {
      Scene scene = build(room, style);
      if (bare) return scene;
      const std::string title = picture_title(page, scene.title, name);
      return for_file([&](const Style&) { return std::move(scene); }, title)(style);
    };
  }

 private:
  Explorer::Options waking(Explorer::Options options) {
    options.wake = [this] {
      const std::lock_guard hold(lock_);
      ++wakes_;
      changed_.notify_all();
    };
    return options;
  }

  /// True when the page has all these controls already.
  bool take(const std::string& id, const Session& session) {
    if (on_positions_ && find_position_method(id)) positions_.view.method = id;
    if (!on_positions_) mechanisms_.choose(id);
    settle();
    const auto controls = session.window.controls.find(session.window.workspace);
    if (controls == session.window.controls.end()) return true;
    ControlsRecord wanted(controls->second), now;
    auto kind = MechanismSource::Kind::head;
    if (!on_positions_) wanted.field("source", kind, MechanismSource::Kind::hand);
    if (kind == MechanismSource::Kind::hand)
      throw Error(where_, "a mechanism on a model's head or on random vectors",
                  "matrices that were made by hand, which no file holds");
    on_positions_ ? controls_of(positions_, now) : controls_of(mechanisms_, now);
    if (now.text() == controls->second) return true;
    on_positions_ ? controls_of(positions_, wanted) : controls_of(mechanisms_, wanted);
    return false;
  }

  std::string page_title(const std::string& id) const {
    if (!on_positions_) return std::string(said_view(mechanisms_.mechanism().name));
    const PositionMethod* method = find_position_method(id);
    return std::string(said_view((method ? *method : position_methods()[0]).title));
  }

  void settle() {
    constexpr auto now_and_then = std::chrono::milliseconds(50);
    for (int quiet = 0; quiet < drawer_quiet_frames;) {
      if (stop_.stop_requested()) throw Cancelled();
      std::unique_lock hold(lock_);
      const int before = wakes_;
      hold.unlock();
      const bool news =
          explorer_.frame(std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
      if (on_positions_)
        positions_.update();
      else
        mechanisms_.frame(true, true);  // as if a button were held: nobody waits for measured times
      hold.lock();
      const bool busy = explorer_.jobs.busy();
      if (busy) changed_.wait_for(hold, now_and_then, [&] { return wakes_ != before; });
      quiet = news || busy ? 0 : quiet + 1;
    }
  }

  [[noreturn]] void refuse(const PictureRecipe& recipe) const {
    throw Error(
        where_, "a picture that the command line draws",
        fmt::format("“{}”, {} of the workspace {}", recipe.page, recipe.picture->id, recipe.session->window.workspace),
        "drop it on the window");
  }

  std::string where_;
  std::stop_token stop_;
  std::mutex lock_;
  std::condition_variable changed_;
  int wakes_ = 0;
  bool on_positions_ = false;
  Explorer explorer_;  // its worker wakes what stands above, and ends before that
  PositionsController positions_;
  MechanismController mechanisms_;
};

}  // namespace

std::string draw_page(const PictureRecipe& recipe, const std::string& where, const fs::path& out, bool with_recipe,
                      Explorer::Options options, const Ctx& ctx) {
  PageDrawer drawer(std::move(options), where, ctx);
  const auto draw = [&](const PictureRecipe& picture, const fs::path& file) {
    const auto build = drawer.picture(picture, kind_of_file(file) == FileKind::csv);
    const PangoText measure;
    const std::string theme_id = picture.for_print ? "print" : picture.session->view.theme;
    return write_scene(build({theme(theme_id), measure}), file, {{}, {}, picture.dpi},
                       {shows_open_model(picture.session->window.workspace) ? picture.session->model_note : "",
                        with_recipe ? to_json(picture) : ""});
  };
  if (!recipe.film) return draw(recipe, out);
  const std::size_t count = recipe.film->values.size();
  return make_film(
      {out, recipe.film->seconds, recipe.film->back}, count,
      [&](std::size_t i, const fs::path& file) {
        if (ctx.progress) *ctx.progress = static_cast<float>(i) / static_cast<float>(count);
        draw(picture_of_film(recipe, i), file);
      },
      [&](const fs::path&) { return with_recipe ? to_json(recipe) : ""; }, ctx.stop);
}

}  // namespace headscope
