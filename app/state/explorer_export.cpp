// What leaves the window: pictures and numbers of what is on screen, to files and to the clipboard.

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "app/render/picture.h"
#include "app/state/clipboard.h"
#include "app/state/explorer.h"
#include "viz/export/csv.h"
#include "viz/export/pango_text.h"
#include "viz/export/png.h"

namespace headscope {

/// What is needed of the state to draw the view on the worker.
struct Explorer::ViewSource {
  std::shared_ptr<const Trace> trace;
  std::shared_ptr<const TracedRun> run;
  Document document;
  View view;
  bool words = false, rotary = false, all_heads = false;

  /// What to draw, over words where those are shown.
  std::pair<std::shared_ptr<const Trace>, PictureRequest> settled(const ExportOptions& options) const {
    if (!words) return {trace, view_picture(document, view, *trace, rotary, options)};
    const auto joined = std::make_shared<const Trace>(in_words(*trace, run->words, [&](HeadId head) {
      return all_heads || view.head_view == HeadView::heads || head == document.selected;
    }));
    Document seen = document;
    if (seen.query) seen.query = run->words.word_of(*seen.query);
    if (seen.key) seen.key = run->words.word_of(*seen.key);
    return {joined, view_picture(seen, view, *joined, rotary, options)};
  }
};

std::optional<Explorer::ViewSource> Explorer::view_source(const ExportOptions& options) {
  if (!results_.run) {
    show_message({Message::Level::error, "There is nothing to export yet.", "export"});
    return std::nullopt;
  }
  const HeadView shown = state_.view.head_view;
  const bool scores = !options.all_heads && (shown == HeadView::steps || shown == HeadView::qk);
  auto trace = results_.run->trace;
  if (scores) {
    if (!results_.detail || results_.detail->of_trace != trace || results_.detail->head != state_.document.selected) {
      show_message({Message::Level::info, "The scores of this head are still being read; try again.", "export"});
      return std::nullopt;
    }
    trace = results_.detail->trace;
  }
  const bool rotary = results_.model.model->config().turns_halves();
  const bool words = state_.view.text_unit == TextUnit::words && !scores;
  return ViewSource{trace, results_.run, state_.document, state_.view, words, rotary, options.all_heads};
}

void Explorer::export_view(const ExportOptions& options) {
  auto source = view_source(options);
  if (!source) return;
  worker_.submit(
      "export",
      [this, options, source = std::move(*source)](Worker::Job&) -> Worker::Deliver {
        const auto [trace, picture] = source.settled(options);
        const std::string written = export_picture(*trace, picture, options.for_print ? "print" : source.view.theme,
                                                   options.file, {{}, {}, options.dpi});
        return [this, written] { show_message({Message::Level::info, "Written: " + written, "export"}); };
      },
      failed("export"));
}

void Explorer::export_scene(std::function<Scene(const Look&)> build, const ExportOptions& options) {
  worker_.submit(
      "export",
      [this, build = std::move(build), options, theme_id = state_.view.theme](Worker::Job&) -> Worker::Deliver {
        const PangoText measure;
        const Scene scene = build({theme(options.for_print ? "print" : theme_id), measure});
        const std::string written = write_scene(scene, options.file, {{}, {}, options.dpi});
        return [this, written] { show_message({Message::Level::info, "Written: " + written, "export"}); };
      },
      failed("export"));
}

namespace {
constexpr double css_dpi = 96;  // of a logical pixel

/// The picture to the clipboard; what became of it, in words.
std::string copied(const Scene& scene, double scale) {
  const Image image = rasterize(scene, scale);
  hold_picture(encode_png(image, css_dpi * scale, {.title = scene.title, .description = ""}));
  return fmt::format("The picture is on the clipboard: {} × {} pixels.", image.width, image.height);
}
}  // namespace

void Explorer::copy_view(Copy what, double scale, PutText put) {
  ExportOptions options;
  auto source = view_source(options);
  if (!source) return;
  const HeadView shown = source->view.head_view;
  if (what == Copy::picture || shown == HeadView::steps || shown == HeadView::qk || shown == HeadView::row)
    return copy_scene(
        [source = std::move(*source), options](const Look& look) {
          const auto [trace, picture] = source.settled(options);
          return picture_scene(*trace, picture, look);
        },
        what, scale, std::move(put));
  worker_.submit(
      "export",
      [this, source = std::move(*source), options, put = std::move(put)](Worker::Job&) -> Worker::Deliver {
        std::ostringstream csv;
        write_map_csv(csv, *source.settled(options).first, source.document.selected);
        return [this, put, text = tab_separated(csv.str())] {
          put(text);
          show_message({Message::Level::info, "The weights of this head are on the clipboard.", "export"});
        };
      },
      failed("export"));
}

void Explorer::copy_scene(std::function<Scene(const Look&)> build, Copy what, double scale, PutText put) {
  worker_.submit(
      "export",
      [this, build = std::move(build), what, scale, put = std::move(put),
       theme_id = state_.view.theme](Worker::Job&) -> Worker::Deliver {
        const PangoText measure;
        const Scene scene = build({theme(theme_id), measure});
        if (what == Copy::picture)
          return [this, words = copied(scene, scale)] { show_message({Message::Level::info, words, "export"}); };
        std::ostringstream csv;
        write_scene_csv(csv, scene);
        return [this, put, text = tab_separated(csv.str())] {
          put(text);
          show_message({Message::Level::info, "The numbers are on the clipboard.", "export"});
        };
      },
      failed("export"));
}

}  // namespace headscope
