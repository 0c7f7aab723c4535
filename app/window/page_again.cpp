#include "app/window/page_again.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/state/exports.h"
#include "app/state/film.h"
#include "app/state/window_words.h"
#include "app/window/pages.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/standard_streams.h"
#include "core/base/version.h"

namespace headscope {

namespace {

using Clock = std::chrono::steady_clock;

/// Frames in a row without work after which a page shows what its controls say.
constexpr int again_settled_frames = 6;
/// A page that is not at rest after so many never is: what they wait for is not among them.
constexpr int most_frames = 20'000;

class PageAgain {
 public:
  PageAgain(App& app, const AppOptions& options, const PictureRecipe& recipe)
      : app_(app), options_(options), recipe_(recipe), where_(options.again->string()) {
    app_.requests().collect_pictures = true;
    app_.requests().press_start = recipe.shown && recipe.shown->started;
    app_.requests().presenting = recipe.shown && recipe.shown->present;
  }
  ~PageAgain() {
    if (told_) write_error("\r\033[K");
  }
  PageAgain(const PageAgain&) = delete;
  PageAgain& operator=(const PageAgain&) = delete;

  void draw() {
    recipe_.program = program_version;
    recipe_.device = app_.explorer().jobs.backend()->name();
    ExportOptions to{options_.out, recipe_.dpi, recipe_.for_print};
    const Session& session = *recipe_.session;
    to.note.model = shows_open_model(session.window.workspace) ? session.model_note : "";
    to.note.recipe = options_.plain_pictures ? "" : to_json(recipe_);
    JobRunner& jobs = app_.explorer().jobs;
    const std::string& theme = session.view.theme;
    if (!recipe_.film) {
      settle();
      const ShownPicture picture = wanted();
      export_scene(jobs, theme,
                   kind_of_file(to.file) == FileKind::csv ? picture.build : file_picture(app_.context(), picture), to);
    } else {
      std::vector<std::function<Scene(const Style&)>> pictures;
      for (std::size_t i = 0; i < recipe_.film->values.size(); ++i) {
        app_.requests().controls = picture_of_film(recipe_, i).session->window.controls;
        settle();
        if (!shows_picture_of(recipe_, i, app_.explorer().files.session()))
          throw Error(where_, "numbers that the page takes", excerpt(recipe_.film->values[i], 40));
        pictures.push_back(file_picture(app_.context(), wanted()));
      }
      export_film(jobs, theme, {to.file, recipe_.film->seconds, recipe_.film->back}, to.note.recipe,
                  std::move(pictures), to);
    }
    wait();
    refuse_failure(false);
  }

 private:
  /// Until no job runs or waits.
  void wait() {
    const JobRunner& jobs = app_.explorer().jobs;
    do {
      if (options_.stop.stop_requested()) throw Cancelled();
      app_.turn();
      tell(jobs.status());
    } while (jobs.busy());
  }
  /// Until its page shows what the session says.
  void settle() {
    int frames = 0;
    for (int quiet = 0; quiet < again_settled_frames;) {
      if (++frames > most_frames)
        throw Error(where_, "a page that comes to rest", fmt::format("one that went on for {} frames", most_frames));
      app_.frame();
      quiet = app_.settled() ? quiet + 1 : 0;
      wait();
    }
    app_.frame();  // with what came last
  }

  void tell(const JobRunner::Status& status) {
    if (!isatty(STDERR_FILENO) || status.doing.empty() || status.seconds < 0.4) return;
    const auto now = Clock::now();
    if (now - last_told_ < std::chrono::milliseconds(100)) return;
    last_told_ = now;
    told_ = true;
    write_error(fmt::format("\r{} {:3.0f} %\033[K", status.doing, 100 * static_cast<double>(status.progress)));
  }

  void refuse_failure(bool of_page) const {
    const auto& message = app_.explorer().jobs.message();
    if (!message || message->level != Message::Level::error) return;
    if (of_page) throw Error(where_, "the page that it shows", message->text);
    throw std::runtime_error(message->text);
  }

  /// The picture that the file is of, in the room that it had.
  ShownPicture wanted() const {
    refuse_failure(true);
    const ShownPictures& shown = app_.window().pictures();
    if (!shown.passing.empty()) throw Error(where_, "what the session of its file gives", shown.passing);
    const std::string& id = recipe_.picture ? recipe_.picture->id : recipe_.shown->id;
    const auto found = std::ranges::find(shown.all, id, &ShownPicture::id);
    if (const auto& longer = app_.explorer().results().too_long; longer && found == shown.all.end())
      throw Error(where_, fmt::format("a text of at most {} tokens", longer->context),
                  fmt::format("{}{}", longer->counted ? "" : "at least ", longer->tokens),
                  "the model may be another now");
    if (found == shown.all.end()) {
      std::string others;
      for (const ShownPicture& each : shown.all) others += (others.empty() ? "" : ", ") + each.id;
      throw Error(where_, fmt::format("the picture “{}” on the page “{}”", excerpt(id, 60), excerpt(recipe_.page, 100)),
                  others.empty() ? "a page that draws none" : others,
                  "the model, or a file that it reads, may be another now");
    }
    if (!found->passing.empty()) throw Error(where_, "what the session of its file gives", found->passing);
    ShownPicture picture = *found;
    if (recipe_.picture && picture.in_room)
      picture.build = [in_room = picture.in_room, of = *recipe_.picture](const Style& style) {
        return in_room(of.width, of.height, style);
      };
    return picture;
  }

  App& app_;
  const AppOptions& options_;
  PictureRecipe recipe_;
  std::string where_;
  Clock::time_point last_told_;
  bool told_ = false;
};

}  // namespace

PictureRecipe prepare_page_again(AppOptions& options) {
  const std::filesystem::path& file = *options.again;
  const std::string where = file.string();
  if (!kind_of_file(file) && !is_film(file))
    throw OptionError("--again", "a .png, .svg, .pdf or .csv, or a film, .gif or .apng", "'" + where + "'");
  const bool film = is_film(file);
  if (options.out.empty() || (film ? !is_film(options.out) : !kind_of_file(options.out)))
    throw OptionError("--out", film ? "a .gif or .apng" : "a .png, .svg, .pdf or .csv",
                      "'" + options.out.string() + "'");
  expect_writable(options.out);
  const PictureRecipe recipe = read_picture_recipe(file);
  if (recipe.page.empty() || !recipe.session)
    throw Error(where, "a picture of one of the window's pages", "one that the command line draws",
                "headscope-cli render --again " + where);
  if (film != recipe.film.has_value())
    throw Error(where, film ? "a film's recipe" : "a picture's recipe", film ? "one of a picture" : "one of a film");
  if (!recipe.picture && !recipe.shown)
    throw Error(where, "which picture of its page it is, and of how large a window",
                "a file of an older version, Headscope " + excerpt(recipe.program, 20), "drop it on the window");
  if (recipe.shown && !recipe.shown->passing.empty())
    throw Error(where, "a picture that the session of its file gives once more",
                fmt::format("“{}”, which showed {}", excerpt(recipe.page, 100), excerpt(recipe.shown->passing, 100)),
                "drop it on the window, which then shows what its session holds");
  speak_as_in(recipe.language, where + ": recipe");
  options.session = file;
  options.check_models = false;
  if (const auto& shown = recipe.shown) {
    options.unseen = {shown->width, shown->height};
    options.scale = shown->scale;
    options.width = std::max(1, static_cast<int>(std::lround(shown->width / shown->scale)));
    options.height = std::max(1, static_cast<int>(std::lround(shown->height / shown->scale)));
    options.beside_lesson = shown->lesson;
  } else {  // its room is told
    options.width = 1600, options.height = 1000;
    options.scale = 1;
    options.unseen = {options.width, options.height};
  }
  return recipe;
}

void draw_page_again(App& app, const AppOptions& options, const PictureRecipe& recipe) {
  PageAgain(app, options, recipe).draw();
}

}  // namespace headscope
