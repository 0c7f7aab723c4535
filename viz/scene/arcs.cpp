#include "viz/scene/arcs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"
#include "viz/scene/token_axis.h"

namespace headscope {

namespace {

constexpr double widest_pitch = 72;  // further apart, neighbours are lost from sight

struct Thread {
  Index query = 0, key = 0;
  float weight = 0;
};

struct Threads {
  std::vector<Thread> strongest;  ///< ascending, so the strongest are drawn last
  Index visible = 0;              ///< weights that are not masked
  Index above = 0;                ///< at or above the threshold, before the limit
  double mass = 0, all = 0;       ///< Σ|weight| drawn, and of the whole map
};

Threads collect(const AttentionMap& map, const ArcsOptions& options) {
  Threads out;
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  const auto stronger = [](const Thread& a, const Thread& b) { return std::abs(a.weight) > std::abs(b.weight); };
  for (Index q = 0; q < map.n_query(); ++q) {
    map.row(q, row);
    for (Index k = 0; k < map.n_key(); ++k) {
      const float weight = nth(row, k);
      out.visible += !map.masked(q, k);
      if (!std::isfinite(weight)) continue;
      out.all += std::abs(weight);
      if (weight == 0 || std::abs(weight) < options.threshold || (options.skip_first && k == 0)) continue;
      ++out.above;
      // A heap with the weakest on top keeps the list short however long the text is.
      out.strongest.push_back({q, k, weight});
      std::push_heap(out.strongest.begin(), out.strongest.end(), stronger);
      if (static_cast<Index>(out.strongest.size()) > std::max<Index>(options.most, 1)) {
        std::pop_heap(out.strongest.begin(), out.strongest.end(), stronger);
        out.strongest.pop_back();
      }
    }
  }
  std::sort(out.strongest.begin(), out.strongest.end(),
            [&](const Thread& a, const Thread& b) { return stronger(b, a); });
  for (const Thread& thread : out.strongest) out.mass += std::abs(thread.weight);
  return out;
}

/// How weights look: one style for the drawing and for the legend that explains it.
struct ThreadStyle {
  Color positive, negative;
  double faintest = 0.18;  ///< opacity of a vanishing weight

  Color color(double weight, double strength, double fade) const {
    return with_opacity(weight < 0 ? negative : positive, fade * (faintest + (1 - faintest) * strength));
  }
  static double width(double strength) { return 0.7 + 2.5 * strength; }
};

/// Samples of the weights that widths and opacities stand for.
double add_legend(Scene& scene, const ThreadStyle& thread_style, double high, bool negative, double x, double y,
                  const Style& style) {
  const Font font = style.theme.caption();
  const double line = std::round(15 * style.theme.text_scale), middle = y + line / 2;
  scene.add({Text{{x, middle + half_capital(font)}, said("weight"), font, style.theme.muted, Anchor::start, 0},
             "legend.weight", ""});
  double at = x + style.measure.width(said("weight"), font) + 14;
  for (const double strength : {-0.5, 0.1, 0.25, 0.5, 1.0}) {
    if (strength < 0 && !negative) continue;
    const std::string text = short_number(strength * high, 2);
    const double size = std::abs(strength);
    scene.add({Line{{{at, middle}, {at + 22, middle}}, thread_style.color(strength, size, 1), ThreadStyle::width(size)},
               "", ""});
    scene.add({Text{{at + 28, middle + half_capital(font)}, text, font, style.theme.muted, Anchor::start, 0}, "", ""});
    at += 28 + style.measure.width(text, font) + 14;
  }
  return y + line;
}

}  // namespace

Scene arcs_scene(const Trace& trace, const ArcsOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  const AttentionMap& map = map_of(trace, options.head);
  const Index offset = map.place().offset, longest = std::max(map.n_query(), map.n_key());
  if (!(options.threshold >= 0))
    throw Error("threshold of threads", "a number from 0 up", fmt::format("{}", options.threshold));
  if (options.query && (*options.query < offset || *options.query >= offset + map.n_query()))
    throw Error("highlighted query", fmt::format("a position from {} to {}", offset, offset + map.n_query() - 1),
                std::to_string(*options.query));
  const Threads threads = collect(map, options);
  const bool negative = map.stats().any_negative();
  const float largest = threads.strongest.empty() ? 1 : std::abs(threads.strongest.back().weight);
  const double high = map.place().kind == MapKind::effective || map.place().kind == MapKind::difference ? largest : 1;

  // Every token has a line of its own while the page allows; then labels thin out and lines close up.
  double pitch = std::floor(std::clamp(640.0 / static_cast<double>(longest), longest <= 75 ? 13.0 : 1.0, 22.0));
  if (longest > 75) pitch = std::max(0.25, std::min(12.0, 960.0 / static_cast<double>(longest)));
  if (options.height > 0) {  // axes, legend and edges take the rest
    const double roomy = std::floor((options.height - 96 * theme.text_scale) / static_cast<double>(longest));
    pitch = std::clamp(roomy, pitch, std::max(pitch, widest_pitch));
  }
  const double edge = options.bare ? slim_margin : margin, most = std::max(options.most_width - 2 * edge, 240.0);
  const double longest_label = std::min(max_label_width * theme.text_scale, 0.26 * most);
  const AxisPlan queries =
      plan_side_axis({trace, offset, map.n_query(), 1, pitch, options.query, longest_label, true}, style);
  const AxisPlan keys = plan_side_axis({trace, 0, map.n_key(), 1, pitch, {}, longest_label}, style);
  const double tall = pitch * static_cast<double>(longest);
  const double left = std::max(queries.depth, 56 * theme.text_scale),
               right = std::max(keys.depth, 56 * theme.text_scale);
  double span = std::min(std::clamp(std::round(0.55 * tall), 200.0, 340.0), std::max(most - left - right, 60.0));
  if (options.width > 0)
    span = std::max(span, std::min(options.width - left - right - 2 * edge, std::round(0.9 * tall)));
  const double width = std::max(left + span + right, std::min(narrowest * theme.text_scale, most));

  Scene scene;
  scene.background = theme.background;
  scene.width = std::ceil(width) + 2 * edge;
  scene.title = say("{} layer {} head {}, threads", trace.model.name, options.head.layer, options.head.head);
  double y = edge;
  if (!options.bare)
    y = add_header(scene, {head_title(options.head), options.badge, describe_run(trace), options.facts}, margin, margin,
                   width, style);
  const double x0 = std::round(edge + left), x1 = x0 + width - left - right;
  Font axis = theme.caption();
  axis.weight = 600;
  y = std::round(y + 14 + 15 * theme.text_scale);
  scene.add({Text{{x0 - 7, y - 5}, said("query"), axis, theme.query, Anchor::end, 0}, "axis.query", ""});
  scene.add({Text{{x1 + 7, y - 5}, said("key"), axis, theme.key, Anchor::start, 0}, "axis.key", ""});
  y += 4;

  const auto height_of = [&](Index position) { return y + (static_cast<double>(position) + 0.5) * pitch; };
  // Signed weights take the two sides of the diverging map; beside a chosen row the others step back, the more the
  // denser.
  ThreadStyle thread_style{theme.accent, theme.accent, options.query ? 0.45 : 0.18};
  if (negative) thread_style.positive = theme.diverging->at(0.86), thread_style.negative = theme.diverging->at(0.14);
  const double count = static_cast<double>(threads.strongest.size());
  const double others = options.query ? std::clamp(40.0 / (count + 1), 0.05, 0.25) : 1;
  const auto draw = [&](const Thread& thread, double fade) {
    const double strength = std::min(1.0, std::abs(thread.weight) / high);
    const Point from{x0, height_of(thread.query)}, to{x1, height_of(thread.key)};
    const double bend = 0.45 * (x1 - x0);
    const Point leaving{from.x + bend, from.y}, arriving{to.x - bend, to.y};
    const Color color = thread_style.color(thread.weight, strength, fade);
    scene.add({Curve{from, leaving, arriving, to, color, ThreadStyle::width(strength)},
               fmt::format("arc.{}.{}", thread.query + offset, thread.key),
               fmt::format("{}\n{}[{}, {}] = {}",
                           weight_says(trace, map.place().kind, thread.query + offset, thread.key,
                                       static_cast<double>(thread.weight)),
                           map_name(trace, map.id()), thread.query, thread.key, short_number(thread.weight, 4))});
  };
  for (const Thread& thread : threads.strongest)
    if (!options.query || thread.query + offset != *options.query) draw(thread, others);
  for (const Thread& thread : threads.strongest)
    if (options.query && thread.query + offset == *options.query) draw(thread, 1);
  SceneSeries numbers{map_name(trace, map.id()) + ", weight by query", {}, {}, {}};
  for (const Thread& thread : threads.strongest) {
    numbers.x.push_back(static_cast<double>(thread.query + offset));
    numbers.y.push_back(static_cast<double>(thread.weight));
    numbers.labels.push_back(fmt::format("{} → {}", thread.query + offset, thread.key));
  }
  scene.series.push_back(std::move(numbers));
  add_side_axis(scene, queries, x0, y, "query", theme.text, style);
  add_side_axis(scene, keys, x1, y, "key", theme.text, style, Side::right);
  y += tall + 12;
  y = add_legend(scene, thread_style, high, negative, edge, y, style);

  std::string caption = say("{} of {} weights are {} or more{} and hold {:.0f} % of all attention", threads.above,
                            threads.visible, short_number(options.threshold), negative ? said(" in size") : "",
                            threads.all > 0 ? 100 * threads.mass / threads.all : 0);
  if (options.skip_first) caption += said("; key 0 is left out");
  if (threads.above > static_cast<Index>(threads.strongest.size()))
    caption += say("; the strongest {} are drawn", threads.strongest.size());
  caption += " · " + map_name(trace, map.id()) + (trace.source.empty() ? "" : " · " + trace.source);
  scene.description = caption;
  if (!options.bare) y = add_caption(scene, caption, margin, y + 6, width, style);
  scene.height = std::ceil(y + edge);
  return scene;
}

}  // namespace headscope
