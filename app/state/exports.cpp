#include "app/state/exports.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "app/render/caption.h"
#include "app/render/picture.h"
#include "app/state/clipboard.h"
#include "app/state/recipe_picture.h"
#include "core/base/words.h"
#include "viz/export/csv.h"
#include "viz/export/pango_text.h"
#include "viz/export/png.h"
#include "viz/scene/framed.h"

namespace headscope {

namespace {
void told(JobRunner& jobs, Worded words) {
  jobs.tell(std::move(words), "export");
}

/// nullopt and a message where there is none.
std::optional<ViewSource> view_source(JobRunner& jobs, const AppState& state, const Results& results,
                                      const ExportOptions& options) {
  if (!results.run) {
    jobs.tell(to_say("There is nothing to export yet."), "export", Message::Level::error);
    return std::nullopt;
  }
  const bool scores = !options.all_heads && shows_scores(state.view);
  auto trace = results.run->trace;
  if (scores && results.capture) {
    told(jobs, to_say("A capture holds weights and no scores; choose another view."));
    return std::nullopt;
  }
  if (scores) {
    if (!results.detail || results.detail->of_trace != trace || results.detail->head != state.document.selected) {
      told(jobs, to_say("The scores of this head are still being read; try again."));
      return std::nullopt;
    }
    trace = results.detail->trace;
  }
  const bool rotary = results.model.model && results.model.model->config().turns_halves();
  ViewSource source{
      .trace = trace, .document = state.document, .view = state.view, .rotary = rotary, .all_heads = options.all_heads};
  source.whole = results.run->whole, source.target = results.model.target;
  if (shows_words(state.view, options.all_heads) && results.run->word_tokens) source.words = results.run->words;
  return source;
}

void hand_in(JobRunner& jobs, Worker::Work work) {
  jobs.submit({"export", to_say("writing the file")}, std::move(work), JobRunner::OnStop::drop);
}
}  // namespace

void export_view(JobRunner& jobs, const AppState& state, const Results& results, const ExportOptions& options) {
  auto source = view_source(jobs, state, results, options);
  if (!source) return;
  hand_in(jobs, [&jobs, options, source = std::move(*source)](Worker::Job&) -> Worker::Deliver {
    const std::string written = export_view(source, options);
    return [&jobs, written] { told(jobs, say_later("Written: {}", written)); };
  });
}

namespace {
void hand_in_film(JobRunner& jobs, std::function<std::string(Worker::Job&)> make) {
  jobs.submit(
      {"film", to_say("making the film")},
      [&jobs, make = std::move(make)](Worker::Job& job) -> Worker::Deliver {
        const std::string written = make(job);
        return [&jobs, written] { jobs.tell(say_later("Written: {}", written), "film"); };
      },
      JobRunner::OnStop::drop);
}
}  // namespace

void export_film(JobRunner& jobs, const LoadedModel& model, const PictureRecipe& film,
                 const std::filesystem::path& file, bool with_recipe) {
  hand_in_film(jobs, [backend = jobs.backend(), model, film, file, with_recipe](Worker::Job& job) {
    return draw_film(film, model, file, with_recipe, {*backend, nullptr, job.stop, &job.progress});
  });
}

void export_film(JobRunner& jobs, const std::string& theme_id, const FilmFile& out, const std::string& recipe,
                 std::vector<std::function<Scene(const Style&)>> pictures, const ExportOptions& options) {
  hand_in_film(jobs, [theme_id, out, recipe, pictures = std::move(pictures), options](Worker::Job& job) {
    const auto draw = [&](std::size_t i, const std::filesystem::path& file) {
      job.progress = static_cast<float>(i) / static_cast<float>(pictures.size());
      const PangoText measure;
      const Scene scene = pictures[i]({theme(options.for_print ? "print" : theme_id), measure});
      write_scene(scene, file, {{}, {}, options.dpi}, options.note);
    };
    return make_film(
        out, pictures.size(), draw, [&](const std::filesystem::path&) { return recipe; }, job.stop);
  });
}

std::string picture_title(const std::string& page, const std::string& title, const std::string& id) {
  return title.empty() || title == id || title == page ? page : page + " · " + title;
}

std::function<Scene(const Style&)> for_file(std::function<Scene(const Style&)> bare, const std::string& title) {
  return [bare = std::move(bare), title](const Style& style) {
    return framed(bare(style), {title, {}, "", {}}, style);
  };
}

void export_scene(JobRunner& jobs, const std::string& theme_id, std::function<Scene(const Style&)> build,
                  const ExportOptions& options) {
  hand_in(jobs, [&jobs, build = std::move(build), options, theme_id](Worker::Job&) -> Worker::Deliver {
    const PangoText measure;
    const Scene scene = build({theme(options.for_print ? "print" : theme_id), measure});
    const std::string written = write_scene(scene, options.file, {{}, {}, options.dpi}, options.note);
    return [&jobs, written] { told(jobs, say_later("Written: {}", written)); };
  });
}

namespace {
constexpr double css_dpi = 96;  // of a logical pixel

/// The picture to the clipboard; what became of it, in words.
Worded copied(const Scene& scene, double scale, const PictureNote& note) {
  const Image image = rasterize(scene, scale);
  hold_picture(
      encode_png(image, css_dpi * scale,
                 {.title = scene.title, .description = description_of(scene, note.model), .recipe = note.recipe}));
  return say_later("The picture is on the clipboard: {} × {} pixels.", image.width, image.height);
}
}  // namespace

void copy_view(JobRunner& jobs, const AppState& state, const Results& results, Copy what, double scale,
               const PictureNote& note, PutText put) {
  ExportOptions options;
  auto source = view_source(jobs, state, results, options);
  if (!source) return;
  const auto edits = results.capture ? std::nullopt : std::optional(results.run->request.edits);
  if (what == Copy::caption)
    return hand_in(jobs,
                   [&jobs, edits, source = std::move(*source), options, note, put = std::move(put)](Worker::Job&) {
                     const auto [trace, picture] = source.settled(options);
                     return Worker::Deliver([&jobs, put, words = caption_of(*trace, picture, edits, note.model)] {
                       put(words);
                       told(jobs, to_say("A caption is on the clipboard."));
                     });
                   });
  const HeadView shown = source->view.head_view;
  if (what == Copy::picture || shown == HeadView::steps || shown == HeadView::qk || shown == HeadView::row)
    return copy_scene(
        jobs, state.view.theme,
        [source = std::move(*source), options](const Style& style) {
          const auto [trace, picture] = source.settled(options);
          return picture_scene(*trace, picture, style);
        },
        what, scale, note, std::move(put));
  hand_in(jobs, [&jobs, source = std::move(*source), options, put = std::move(put)](Worker::Job&) -> Worker::Deliver {
    std::ostringstream csv;
    write_map_csv(csv, *source.settled(options).first, source.document.selected);
    return [&jobs, put, text = tab_separated(csv.str())] {
      put(text);
      told(jobs, to_say("The weights of this head are on the clipboard."));
    };
  });
}

void copy_scene(JobRunner& jobs, const std::string& theme_id, std::function<Scene(const Style&)> build, Copy what,
                double scale, const PictureNote& note, PutText put) {
  hand_in(jobs,
          [&jobs, build = std::move(build), what, scale, note, put = std::move(put),
           theme_id](Worker::Job&) -> Worker::Deliver {
            const PangoText measure;
            const Scene scene = build({theme(theme_id), measure});
            if (what == Copy::caption)
              return [&jobs, put, words = scene.title + ". " + description_of(scene, note.model)] {
                put(words);
                told(jobs, to_say("A caption is on the clipboard."));
              };
            if (what == Copy::picture) return [&jobs, words = copied(scene, scale, note)] { told(jobs, words); };
            std::ostringstream csv;
            write_scene_csv(csv, scene);
            return [&jobs, put, text = tab_separated(csv.str())] {
              put(text);
              told(jobs, to_say("The numbers are on the clipboard."));
            };
          });
}

}  // namespace headscope
