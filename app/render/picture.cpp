#include "app/render/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/render/head_report.h"
#include "app/render/vision_pictures.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/trace/first_key.h"
#include "core/trace/query_rows.h"
#include "viz/export/csv.h"
#include "viz/export/pango_text.h"
#include "viz/export/pdf.h"
#include "viz/export/png.h"
#include "viz/export/recipe_note.h"
#include "viz/export/svg.h"
#include "viz/scene/arcs.h"
#include "viz/scene/framed.h"
#include "viz/scene/head_grid.h"
#include "viz/scene/head_map.h"
#include "viz/scene/head_rows.h"
#include "viz/scene/patch_map.h"
#include "viz/scene/row_bars.h"
#include "viz/scene/score_split.h"
#include "viz/scene/several_heads.h"
#include "viz/scene/sound_map.h"

namespace headscope {

namespace {
constexpr double usual_plot = 640, smallest_plot = 64;

/// The trace with the maps that are drawn seen without their first key. Badges and facts keep to the real one.
Trace without_first(const Trace& trace, const PictureRequest& request) {
  Trace seen = trace;
  for (AttentionMap& map : seen.maps)
    for (const HeadId head : request.heads)
      if (map.id() == head) map = without_first_key(map, request.renormalize);
  return seen;
}

void need_factors(const Trace& trace, HeadId head, const char* picture) {
  if (!trace.map(head).is_factored())
    throw Error(picture, "a map in factors, which knows its scores", "a dense map of weights");
}

Scene one_head(const Trace& trace, const Trace& seen, const std::vector<HeadReport>& reports,
               const PictureRequest& request, double plot, const Style& style) {
  const HeadId head = request.heads.front();
  const Badge badge = badge_of(reports, head);
  const std::string title = head_title(head);
  const std::string source = map_name(trace, head) + (trace.source.empty() ? "" : " · " + trace.source);
  switch (request.kind) {
    case PictureRequest::Kind::bars:
      if (!request.query) throw Error("bars", "a query whose weights are drawn", "none");
      return row_bars_scene(
          seen, {.head = head, .query = *request.query, .scaling = request.scaling, .badge = badge, .plot = plot},
          style);
    case PictureRequest::Kind::patches:
      if (!request.query) throw Error("patches", "a query that looks at the picture", "none");
      if (seen.sound) {
        const auto token = seen.between_texts() ? request.query : std::nullopt;
        return sound_map_scene(
            seen, {.head = head, .query = *request.query, .badge = badge, .spoken = request.spoken, .token = token},
            style);
      }
      return patch_map_scene(
          seen, {.head = head, .query = *request.query, .smooth = request.smooth, .badge = badge, .plot = plot}, style);
    case PictureRequest::Kind::arcs: {
      ArcsOptions arcs;
      arcs.head = head;
      arcs.threshold = request.threshold;
      arcs.query = request.query;
      arcs.skip_first = request.skip_first;
      arcs.badge = badge;
      arcs.facts = facts_of(reports, trace, head);
      return arcs_scene(seen, arcs, style);
    }
    case PictureRequest::Kind::steps:
      need_factors(trace, request.heads.front(), "steps");
      return framed(head_steps_scene(trace, {.head = head}, style),
                    {title, badge, describe_run(trace), facts_of(reports, trace, head)}, style, source);
    case PictureRequest::Kind::split: {
      need_factors(trace, request.heads.front(), "split");
      if (!request.query || !request.key) throw Error("split", "the query and the key of one score", "none");
      ScoreSplitOptions split;
      split.head = head;
      split.query = *request.query;
      split.key = *request.key;
      split.rotary = request.rotary;
      return framed(score_split_scene(trace, split, style), {title, badge, describe_run(trace), {}}, style, source);
    }
    case PictureRequest::Kind::map:
      break;
  }
  HeadMapOptions single;
  single.head = head;
  single.scaling = request.scaling;
  single.badge = badge;
  single.facts = facts_of(reports, trace, head);
  single.query = request.query;
  single.key = request.key;
  single.values = request.values;
  single.plot = plot;
  return head_map_scene(seen, single, style);
}
/// One token, every head.
Scene token_in_all_heads(const Trace& trace, const PictureRequest& request, double plot, const Style& style) {
  QueryRows rows = query_rows(trace, *request.query);
  if (leaves_out_first(request)) hide_first_key(rows, request.renormalize);
  HeadRowsOptions options;
  options.query = request.query;
  options.key = request.key;
  options.kind = rows.kind;
  options.scale = request.scaling.scale;
  options.width = plot + 2 * margin;
  options.height = 0;
  options.least_row = rows.heads.size() <= 64 ? 16 : rows.heads.size() <= 256 ? 13 : 6;
  options.values = request.values;
  options.titled = true;
  // Whole layers from 0 on stand layer under layer; a selection of heads is a list.
  const auto heads = std::max(trace.model.dims.heads, 1);
  bool whole = static_cast<int>(rows.heads.size()) % heads == 0;
  for (std::size_t i = 0; i < rows.heads.size(); ++i)
    whole &= rows.heads[i] == HeadId{static_cast<int>(i) / heads, static_cast<int>(i) % heads};
  options.heads = heads;
  if (!whole) options.listed = rows.heads;
  return head_rows_scene(trace, rows.weights, options, style);
}

/// `plot`: side of the map, or width of the chart, that pictures of one head aim at.
Scene scene_of(const Trace& trace, const PictureRequest& request, double plot, const Style& style) {
  const auto reports = report_heads(trace, default_class_rules());
  if (request.heads.empty() && request.kind == PictureRequest::Kind::patches)
    return patch_atlas_scene(trace, request.query.value_or(0), request.smooth, std::max(1.6 * plot, 480.0), style);
  if (request.heads.empty() && request.query) return token_in_all_heads(trace, request, std::max(plot, 240.0), style);
  if (request.heads.empty()) {
    HeadGridOptions grid;
    grid.scaling = request.scaling;
    grid.classes = marks_of(reports);
    return head_grid_scene(trace, grid, style);
  }
  std::optional<Trace> changed;
  if (leaves_out_first(request)) changed = without_first(trace, request);
  const Trace& seen = changed ? *changed : trace;
  if (request.heads.size() == 1) return one_head(trace, seen, reports, request, plot, style);
  SeveralHeadsOptions several;
  for (const auto& [layer, head] : request.heads)
    several.heads.push_back({{layer, head}, badge_of(reports, {layer, head})});
  several.scaling = request.scaling;
  several.columns = request.columns;
  several.plot = 280;  // wide enough for a class with its score and chance below each map
  return several_heads_scene(seen, several, style);
}

/// The picture for a width: where it would have to shrink, it is laid out smaller instead, with fewer labels rather
/// than small ones. Grids and maps side by side keep their layout.
Scene readable_scene(const Trace& trace, const PictureRequest& request, const OutputSize& size, const Style& style) {
  double plot = usual_plot;
  Scene scene = scene_of(trace, request, plot, style);
  const double most = size.width_px ? *size.width_px : size.width_inches ? 96 * *size.width_inches : scene.width;
  for (int round = 0; round < 3 && scene.width > most; ++round) {
    const double less = std::max(plot - (scene.width - most), smallest_plot);
    if (less >= plot) break;
    plot = less;
    scene = scene_of(trace, request, plot, style);
  }
  return scene;
}

}  // namespace

bool leaves_out_first(const PictureRequest& request) {
  if (!request.skip_first && !request.renormalize) return false;
  if (request.heads.empty()) return request.query.has_value() && request.kind != PictureRequest::Kind::patches;
  return request.kind != PictureRequest::Kind::steps && request.kind != PictureRequest::Kind::split;
}

Scene picture_scene(const Trace& trace, const PictureRequest& request, const Style& style) {
  return scene_of(trace, request, usual_plot, style);
}

std::optional<FileKind> kind_of_file(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".png" || ending == ".PNG") return FileKind::png;
  if (ending == ".svg" || ending == ".SVG") return FileKind::svg;
  if (ending == ".pdf" || ending == ".PDF") return FileKind::pdf;
  if (ending == ".csv" || ending == ".CSV") return FileKind::csv;
  return std::nullopt;
}

bool is_film(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".gif" || ending == ".GIF" || ending == ".apng" || ending == ".APNG";
}

std::string description_of(const Scene& scene, const std::string& model_note) {
  return scene.description + (scene.description.empty() || model_note.empty() ? "" : " · ") + model_note;
}

namespace {
Scene noted(Scene scene, const PictureNote& note) {
  scene.description = description_of(scene, note.model);
  scene.recipe = note.recipe;
  return scene;
}
}  // namespace

std::string write_picture(const Scene& plain, const std::filesystem::path& path, const OutputSize& size,
                          const PictureNote& note) {
  expect_fonts();
  const Scene scene = noted(plain, note);
  const auto kind = kind_of_file(path);
  if (kind == FileKind::svg || kind == FileKind::pdf) {
    (kind == FileKind::svg ? write_svg : write_pdf)(path, scene, size);
    return fmt::format("{}  {:.0f} × {:.0f}", path.string(), scene.width, scene.height);
  }
  if (kind != FileKind::png)
    throw Error(path.string(), "a picture's name, ending in .png, .svg or .pdf",
                "\"" + path.extension().string() + "\"");
  const PixelSize written = write_png(path, scene, size);
  return say("{}  {} × {} pixels, {:.0f} dpi", path.string(), written.width, written.height, written.dpi);
}

std::string write_scene(const Scene& scene, const std::filesystem::path& path, const OutputSize& size,
                        const PictureNote& note) {
  if (kind_of_file(path) != FileKind::csv) return write_picture(scene, path, size, note);
  write_scene_csv(path, scene);
  write_csv_metadata(path, noted(scene, note));
  return path.string();
}

std::string export_picture(const Trace& trace, const PictureRequest& request, const std::string& theme_id,
                           const std::filesystem::path& path, const OutputSize& size, const PictureNote& note) {
  const PangoText measure;
  const Style style{theme(theme_id), measure};
  const bool one_token = request.heads.empty() && request.query;
  if (kind_of_file(path) == FileKind::csv && one_token)
    return write_scene(scene_of(trace, request, usual_plot, style), path, size, note);
  if (kind_of_file(path) == FileKind::csv) {
    if (request.heads.size() != 1)
      throw Error(path.string(), "one head, whose numbers a .csv holds", fmt::format("{} heads", request.heads.size()));
    write_map_csv(path, trace, request.heads.front());
    Scene told;
    told.title = head_title(request.heads.front());
    told.description = map_name(trace, request.heads.front());
    write_csv_metadata(path, noted(told, note));
    return path.string();
  }
  return write_picture(readable_scene(trace, request, size, style), path, size, note);
}

}  // namespace headscope
