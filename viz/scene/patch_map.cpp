#include "viz/scene/patch_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double densest = 0.8;       // opacity of the largest weight over a picture
constexpr Index most_side = 2048;     // of the picture in a scene, pixels
constexpr Index overlay_side = 512;   // of the smooth overlay, pixels
constexpr double smallest_side = 48;  // of the drawn picture, logical pixels

using Bytes = std::vector<std::uint8_t>;

/// The picture's pixels, averaged over squares where it is larger than any page.
Pixels pixels_of(const PatchPicture& picture, const Rect& rect) {
  const Index bin = (std::max(picture.width, picture.height) + most_side - 1) / most_side;
  const Index width = (picture.width + bin - 1) / bin, height = (picture.height + bin - 1) / bin;
  auto out = std::make_shared<Bytes>(static_cast<std::size_t>(width * height * 4), std::uint8_t{255});
  for (Index y = 0; y < height; ++y)
    for (Index x = 0; x < width; ++x) {
      const Index y1 = std::min((y + 1) * bin, picture.height), x1 = std::min((x + 1) * bin, picture.width);
      for (Index channel = 0; channel < 3; ++channel) {
        Index sum = 0;
        for (Index row = y * bin; row < y1; ++row)
          for (Index column = x * bin; column < x1; ++column)
            sum += nth(picture.rgb, (row * picture.width + column) * 3 + channel);
        const Index count = (y1 - y * bin) * (x1 - x * bin);
        nth(*out, (y * width + x) * 4 + channel) = static_cast<std::uint8_t>((sum + count / 2) / count);
      }
    }
  return {rect, static_cast<int>(width), static_cast<int>(height), std::move(out), true};
}

/// Weight → colour: over a picture the more transparent the smaller, on bare ground opaque.
struct Shade {
  ColorNorm norm;
  const Colormap* colormap = nullptr;
  bool over_picture = false;

  Color operator()(double weight) const {
    const Color color = colormap->at((weight - norm.low) / (norm.high - norm.low));
    if (!over_picture) return color;
    return with_opacity(color, densest * std::min(1.0, std::abs(weight) / norm.high));
  }
};

Shade shade_of(const std::vector<double>& patches, const PatchPicture& picture, const Theme& theme) {
  const auto [least, most] = std::minmax_element(patches.begin(), patches.end());
  const bool is_signed = *least < 0;
  double high = is_signed ? std::max(-*least, *most) : *most;
  if (!(high > 0)) high = 1;
  return {{Scale::linear, is_signed ? -high : 0, high},
          is_signed ? theme.diverging : theme.sequential,
          !picture.rgb.empty()};
}

/// Between the middles of patches the weights run straight (bilinear), beyond the outermost middles they stay.
Pixels smooth_overlay(const PatchPicture& picture, const std::vector<double>& patches, const Shade& shade,
                      const Rect& rect) {
  const auto w = static_cast<double>(picture.shown_width()), h = static_cast<double>(picture.shown_height());
  const double scale = static_cast<double>(overlay_side) / std::max(w, h);
  const auto side = [&](double length) { return std::max(static_cast<Index>(std::lround(length * scale)), Index{1}); };
  const Index width = side(w), height = side(h);
  auto out = std::make_shared<Bytes>(static_cast<std::size_t>(width * height * 4));
  struct Between {
    Index low = 0, high = 0;
    double share = 0;
  };
  const auto between = [](Index pixel, Index pixels, Index count) {
    const double at =
        (static_cast<double>(pixel) + 0.5) / static_cast<double>(pixels) * static_cast<double>(count) - 0.5;
    const double inside = std::clamp(at, 0.0, static_cast<double>(count - 1));
    const auto low = static_cast<Index>(inside);
    return Between{low, std::min(low + 1, count - 1), inside - static_cast<double>(low)};
  };
  for (Index y = 0; y < height; ++y) {
    const Between row = between(y, height, picture.rows);
    for (Index x = 0; x < width; ++x) {
      const Between column = between(x, width, picture.columns);
      const auto along = [&](Index r) {
        const double left = nth(patches, r * picture.columns + column.low);
        return left + column.share * (nth(patches, r * picture.columns + column.high) - left);
      };
      const double above = along(row.low), weight = above + row.share * (along(row.high) - above);
      const Color color = shade(weight);
      std::uint8_t* to = out->data() + (y * width + x) * 4;
      to[0] = color.r, to[1] = color.g, to[2] = color.b, to[3] = color.a;
    }
  }
  return {rect, static_cast<int>(width), static_cast<int>(height), std::move(out), true};
}

/// "pattern[3, :]" → "pattern[3, 7]"
std::string of_key(std::string name, Index key) {
  if (const std::size_t all = name.rfind(':'); all != std::string::npos) name.replace(all, 1, std::to_string(key));
  return name;
}

/// What the row gives to keys that are no patch.
std::string beside_the_picture(const Trace& trace, const PatchPicture& picture, const std::vector<double>& row) {
  double patches = 0;
  for (Index key = picture.leading; key < picture.keys(); ++key) patches += nth(row, key);
  std::string out = say("{} on the picture", short_number(patches, 3));
  constexpr Index named = 6;
  for (Index key = 0; key < std::min(picture.leading, named); ++key)
    out += say(", {} on {}", short_number(nth(row, key), 3), token_word(trace, key));
  if (picture.leading > named) out += said(", the rest on further tokens");
  return out;
}

/// Where `key` is a patch.
void frame_query(Scene& scene, const PatchPicture& picture, const Rect& drawn, std::optional<Index> key,
                 const Theme& theme) {
  const auto own = key ? picture.patch_of(*key) : std::nullopt;
  if (!own) return;
  const Rect patch = patch_rect(picture, drawn, *own / picture.columns, *own % picture.columns);
  scene.add({Box{patch, {0, 0, 0, 0}, theme.background, 4, 0}, "", ""});  // to be seen on any colour
  scene.add({Box{patch, {0, 0, 0, 0}, theme.query, 2, 0}, "query", ""});
}

}  // namespace

Scene picture_thumbnail(const PatchPicture& picture, std::optional<Index> key, double side, const Style& style) {
  const auto w = static_cast<double>(picture.shown_width()), h = static_cast<double>(picture.shown_height());
  Scene scene;
  scene.background = style.theme.background;
  scene.width = std::round(w * side / std::max(w, h));
  scene.height = std::round(h * side / std::max(w, h));
  const Rect drawn{0, 0, scene.width, scene.height};
  if (!picture.rgb.empty()) scene.add({pixels_of(picture, drawn), "picture", ""});
  frame_query(scene, picture, drawn, key, style.theme);
  return scene;
}

Rect patch_rect(const PatchPicture& picture, const Rect& drawn, Index row, Index column) {
  const PixelBox box = picture.box(row, column);
  const double sx = drawn.w / static_cast<double>(picture.shown_width()),
               sy = drawn.h / static_cast<double>(picture.shown_height());
  return {drawn.x + box.x0 * sx, drawn.y + box.y0 * sy, (box.x1 - box.x0) * sx, (box.y1 - box.y0) * sy};
}

Scene patch_map_scene(const Trace& trace, const PatchMapOptions& options, const Style& style) {
  const AttentionMap& map = map_of(trace, options.head);
  const Index offset = map.place().offset, row_index = options.query - offset;
  if (row_index < 0 || row_index >= map.n_query())
    throw Error("query of the picture", fmt::format("a position from {} to {}", offset, offset + map.n_query() - 1),
                std::to_string(options.query));
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  map.row(row_index, row);
  PatchValues values;
  values.by_key.assign(row.begin(), row.end());
  values.title = say("{} · query {} “{}”", head_title(options.head), options.query, query_label(trace, options.query));
  values.name = fmt::format("{}[{}, :]", map_name(trace, map.id()), row_index);
  values.unit = describe_weights(map.place().kind, Scale::linear);
  if (!trace.between_texts()) values.query = options.query;
  values.says = [&](Index key, double weight) {
    return weight_says(trace, map.place().kind, options.query, key, weight);
  };
  return patch_values_scene(trace, values, options, style);
}

Scene patch_values_scene(const Trace& trace, const PatchValues& values, const PatchMapOptions& options,
                         const Style& style) {
  const Theme& theme = style.theme;
  if (!trace.picture)
    throw Error("attention over a picture", "a trace whose keys are patches (an array grid beside attn)", "a text");
  const PatchPicture& picture = *trace.picture;
  const auto first = values.by_key.begin();
  const std::vector<double> patches(first + picture.leading, first + picture.keys());
  const Shade shade = shade_of(patches, picture, theme);

  const bool bare = options.room.has_value();
  const double edge = bare ? slim_margin : margin, below = 84 * theme.text_scale;  // bar, caption
  const auto w = static_cast<double>(picture.shown_width()), h = static_cast<double>(picture.shown_height());
  const double scale =
      bare ? std::min((options.room->width - 2 * edge) / w, (options.room->height - 2 * edge - below) / h)
           : options.plot / std::max(w, h);
  const double fits = std::max(scale, smallest_side / std::max(w, h));
  const double width = std::max(std::round(w * fits), bare ? 200.0 : narrowest * theme.text_scale);

  Scene scene;
  scene.background = theme.background;
  scene.width = std::ceil(width) + 2 * edge;
  scene.title = trace.model.name + " · " + values.title;
  double y = edge;
  if (!bare)
    y = std::round(
        add_header(scene, {values.title, options.badge, describe_run(trace), {}}, margin, margin, width, style) + 14);
  const Rect drawn{std::round(edge), y, std::round(w * fits), std::round(h * fits)};
  if (!picture.rgb.empty()) scene.add({pixels_of(picture, drawn), "picture", ""});
  if (options.smooth) scene.add({smooth_overlay(picture, patches, shade, drawn), "overlay", ""});
  SceneSeries numbers{
      values.name.substr(0, values.name.rfind(':')) + std::to_string(picture.leading) + ":]", {}, {}, {}};
  for (Index r = 0; r < picture.rows; ++r)
    for (Index c = 0; c < picture.columns; ++c) {
      const Index key = picture.key_of(r, c);
      const double weight = nth(patches, key - picture.leading);
      scene.add({Box{patch_rect(picture, drawn, r, c),
                     options.smooth ? Color{0, 0, 0, 0} : shade(weight),
                     {0, 0, 0, 0},
                     0,
                     0},
                 fmt::format("patch.{}.{}", r, c),
                 fmt::format("{}\n{} = {}", values.says ? values.says(key, weight) : token_label(trace, key),
                             of_key(values.name, key), short_number(weight, 4)),
                 TokenAt{key}});
      numbers.x.push_back(static_cast<double>(key));
      numbers.y.push_back(weight);
      numbers.labels.push_back(token_label(trace, key));
    }
  scene.series.push_back(std::move(numbers));
  frame_query(scene, picture, drawn, values.query, theme);
  y = drawn.bottom() + 10;
  const double highest = *std::max_element(patches.begin(), patches.end());
  y = add_color_bar(scene, {values.unit, shade.norm, shade.colormap, highest, false, false}, drawn.x, y, width, style);
  std::string caption = values.caption.empty() ? beside_the_picture(trace, picture, values.by_key) : values.caption;
  scene.description = say("{}; {} × {} patches{}{} · {}{}", caption, picture.rows, picture.columns,
                          picture.rgb.empty() ? "" : say(" over {} × {} pixels", picture.width, picture.height),
                          options.smooth ? said(", between their middles interpolated") : "", values.name,
                          trace.source.empty() ? "" : " · " + trace.source);
  y = add_caption(scene, bare ? elided(caption, theme.caption(), width, style.measure) : scene.description, drawn.x,
                  y + 4, width, style);
  scene.height = std::ceil(y + edge);
  return scene;
}

}  // namespace headscope
