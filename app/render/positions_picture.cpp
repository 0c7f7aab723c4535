#include "app/render/positions_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/attention/positions/alibi.h"
#include "core/attention/positions/binary_code.h"
#include "core/attention/positions/dual_chunk.h"
#include "core/attention/positions/learned.h"
#include "core/attention/positions/shaw_relative.h"
#include "core/attention/positions/sinusoidal.h"
#include "core/attention/positions/t5_bias.h"
#include "core/attention/positions/transformer_xl.h"
#include "core/attention/rotary.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/compose.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/matrix_map.h"
#include "viz/scene/rotary_dials.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double gap = 36;

/// Half of the room, side by side.
Room half(Room room) {
  return {std::floor((room.width - gap) / 2), room.height};
}

Scene titled(const std::string& title, const Scene& body, const Style& style) {
  Scene scene;
  scene.background = style.theme.background;
  scene.title = title;
  Font font = style.theme.body();
  font.weight = 600;
  const double line = std::round(20 * style.theme.text_scale);
  scene.add(
      {Text{{0, line - 6}, elided(title, font, body.width, style.measure), font, style.theme.text, Anchor::start, 0},
       "title", ""});
  place(scene, body, 0, line + 2);
  scene.width = body.width;
  scene.height = body.height + line + 2;
  return scene;
}

std::vector<std::uint8_t> later_keys(Index n) {
  std::vector<std::uint8_t> masked(static_cast<std::size_t>(n * n), 0);
  for (Index i = 0; i < n; ++i)
    for (Index j = i + 1; j < n; ++j) nth(masked, i * n + j) = 1;
  return masked;
}

MatrixMap causal_map(Tensor values, std::string title, std::string bar, Room room) {
  MatrixMap map;
  map.masked = later_keys(values.dim(0));
  map.values = std::move(values);
  map.title = std::move(title);
  map.bar = std::move(bar);
  map.columns = said("key");
  map.rows = said("query");
  map.width = room.width;
  map.height = room.height;
  return map;
}

Tensor drawn(Shape shape, std::uint64_t seed, double size) {
  Random random(seed);
  Tensor x = Tensor::uninitialized(shape);
  for (float& value : x.mutable_values()) value = static_cast<float>(size * static_cast<double>(random.normal()));
  return x;
}

/// Mean likeness of rows that lie d apart.
ChartSeries likeness_by_distance(const Tensor& likeness, Color color) {
  ChartSeries line{"", color, {}, {}, 1.75};
  const Index n = likeness.dim(0);
  for (Index d = 0; d < n; ++d) {
    double sum = 0;
    for (Index p = 0; p + d < n; ++p) sum += static_cast<double>(likeness.at(p, p + d));
    line.x.push_back(static_cast<double>(d));
    line.y.push_back(sum / static_cast<double>(n - d));
  }
  return line;
}

LineChart chart_of(Room room, std::string y, std::string x) {
  LineChart chart;
  chart.width = room.width;
  chart.height = room.height;
  chart.y_title = std::move(y);
  chart.x_title = std::move(x);
  chart.grid = true;
  return chart;
}

}  // namespace

Scene permuted_picture(const PermutedPicture& picture, Room room, const Style& style) {
  const Theme& theme = style.theme;
  const auto n = picture.labels.size();
  const Font font = theme.token();
  const double line = std::round(18 * theme.text_scale), left = 200 * theme.text_scale;
  const double pitch = std::min(110.0, (room.width - left) / static_cast<double>(std::max<std::size_t>(n, 1)));
  Scene words;
  words.background = theme.background;
  words.width = room.width;
  const double lower = 5.5 * line;
  words.height = lower + line;
  words.add({Text{{0, line}, said("the text"), theme.body(), theme.muted, Anchor::start, 0}, "", ""});
  words.add({Text{{0, lower}, said("backwards"), theme.body(), theme.muted, Anchor::start, 0}, "", ""});
  for (std::size_t i = 0; i < n; ++i) {
    const double x = left + pitch * (static_cast<double>(i) + 0.5);
    const auto from = static_cast<std::size_t>(picture.order[i]);
    const double origin = left + pitch * (static_cast<double>(from) + 0.5);
    words.add({Curve{{origin, line + 6},
                     {origin, line + 40},
                     {x, lower - 46},
                     {x, lower - line + 2},
                     with_opacity(theme.accent, 0.55),
                     1.25},
               "", ""});
    words.add({Text{{x, line},
                    elided(printable(picture.labels[i]), font, pitch - 6, style.measure),
                    font,
                    theme.text,
                    Anchor::middle,
                    0},
               "", ""});
    words.add({Text{{x, lower},
                    elided(printable(picture.labels[from]), font, pitch - 6, style.measure),
                    font,
                    theme.text,
                    Anchor::middle,
                    0},
               "", ""});
  }
  MatrixMap moved;
  moved.values = Tensor::zeros({static_cast<Index>(picture.moved.size()), static_cast<Index>(n)});
  for (std::size_t way = 0; way < picture.moved.size(); ++way)
    for (std::size_t i = 0; i < n; ++i)
      moved.values.ref(static_cast<Index>(way), static_cast<Index>(i)) = static_cast<float>(picture.moved[way][i]);
  moved.bar = said("largest difference of the token's output between the two orders");
  moved.square = false;
  moved.low = 0;
  for (const std::string& label : picture.labels) moved.column_labels.push_back(printable(label));
  // Ways stand left of the map, as wide as the words above leave room for.
  moved.row_labels.assign(picture.moved.size(), "");
  moved.width = 8 + pitch * static_cast<double>(n);
  moved.height = 66 + 64 * static_cast<double>(picture.moved.size()) + 60;
  const Scene cells = matrix_map_scene(moved, style);
  Scene scene;
  scene.background = theme.background;
  scene.title = said("Without positions");
  place(scene, words, 0, 0);
  const double y = words.height + 14;
  place(scene, cells, left - 6, y);
  const Mark* map = find(cells, "map");
  const Heatmap& drawn_map = std::get<Heatmap>(map->shape);
  for (std::size_t way = 0; way < picture.ways.size(); ++way)
    scene.add({Text{{0, y + drawn_map.cell(static_cast<Index>(way), 0).center().y + half_capital(theme.body())},
                    picture.ways[way],
                    theme.body(),
                    theme.text,
                    Anchor::start,
                    0},
               "", ""});
  scene.width = std::max(room.width, left + cells.width);
  scene.height = y + cells.height;
  return scene;
}

Scene learned_picture(const Tensor& table, bool centered, const std::string& source, Room room, const Style& style) {
  const Room side = half(room);
  const Tensor likeness = cosine_similarity(table, centered);
  MatrixMap map;
  map.values = likeness;
  map.title = said("How alike two positions are");
  map.bar = centered ? said("cosine, the mean row taken off") : said("cosine of the angle between rows");
  map.rows = map.columns = said("position");
  map.low = -1;
  map.high = 1;
  map.width = side.width;
  map.height = room.height;
  map.provenance = source;
  const Room chart{side.width, std::floor(room.height / 2 - 34)};
  LineChart norms = chart_of(chart, said("length of each row"), said("position"));
  ChartSeries line{"", style.theme.accent, {}, {}, 1.75};
  const Tensor lengths = row_norms(table);
  for (Index p = 0; p < lengths.dim(0); ++p) {
    line.x.push_back(static_cast<double>(p));
    line.y.push_back(static_cast<double>(lengths.at(p)));
  }
  norms.y_low = 0;
  norms.series = {line};
  LineChart near = chart_of(chart, said("mean cosine"), said("positions apart"));
  near.series = {likeness_by_distance(likeness, style.theme.accent)};
  const Scene charts[] = {
      titled(said("Length of the vector that each position adds"), line_chart_scene(norms, style), style),
      titled(said("Likeness by distance"), line_chart_scene(near, style), style)};
  const Scene parts[] = {matrix_map_scene(map, style), below(charts, 20)};
  return beside(parts, gap);
}

Scene sinusoidal_picture(int dimensions, Index positions, Index position, Room room, const Style& style) {
  const std::vector<double> omega = rotary_frequencies({}, dimensions);
  DialsOptions dials;
  dials.width = room.width;
  dials.noun = to_say("pair");
  dials.largest = std::clamp(room.height * 0.4 / (dimensions > 32 ? 2 : 1) - 50, 40.0, 120.0);
  for (std::size_t i = 0; i < omega.size(); ++i) {
    Dial dial;
    dial.query_length = 1;
    // sin across, cos up: a hand that starts at twelve and runs with the clock.
    dial.query_angle = std::numbers::pi / 2;
    dial.query_turn = -static_cast<double>(position) * omega[i];
    dial.wavelength = 2 * std::numbers::pi / omega[i];
    const double angle = static_cast<double>(position) * omega[i];
    dial.tooltip = fmt::format("PE({}, {}) = sin {} = {}; PE({}, {}) = cos {} = {}", position, 2 * i,
                               short_number(angle, 4), short_number(std::sin(angle), 3), position, 2 * i + 1,
                               short_number(angle, 4), short_number(std::cos(angle), 3));
    dials.dials.push_back(std::move(dial));
  }
  const Scene clock =
      titled(say("Position {} as {} clock hands", position, dimensions / 2), rotary_dials_scene(dials, style), style);
  const Room lower{std::floor((room.width - gap) / 2), std::max(160.0, room.height - clock.height - 20)};
  const Tensor table = sinusoidal_positions(0, positions, dimensions);
  MatrixMap map;
  map.values = table;
  map.title = said("The table: what is added at every position");
  map.rows = said("position");
  map.columns = said("dimension: sin, cos of pair 0, of pair 1, …");
  map.bar = "PE";
  map.low = -1;
  map.high = 1;
  map.square = false;
  map.width = lower.width;
  map.height = lower.height;
  map.marked = Cell{position, 0};
  map.numbers = positions <= 16 && dimensions <= 8;
  if (position >= positions) map.marked.reset();
  LineChart near =
      chart_of({lower.width, lower.height - 26}, said("cosine"), said("positions apart: the same from any position"));
  near.series = {likeness_by_distance(cosine_similarity(table), style.theme.accent)};
  const Scene parts[] = {matrix_map_scene(map, style),
                         titled(said("Likeness by distance"), line_chart_scene(near, style), style)};
  const Scene rows[] = {clock, beside(parts, gap)};
  return below(rows, 20);
}

Scene binary_picture(Index positions, int bits, Room room, const Style& style) {
  const Room side = half(room);
  MatrixMap code;
  code.values = binary_table(positions, bits);
  code.title = say("{} positions in {} bits", positions, bits);
  code.rows = said("position");
  code.columns = said("bit, the fastest first");
  code.bar = said("bit");
  code.square = false;
  code.width = std::min(side.width, 120.0 + 60 * bits);
  code.height = room.height;
  // Waves with the cycle of each bit, lowest in the middle of its zeros: bit b goes round in 2^(b+1) positions.
  MatrixMap waves = code;
  waves.values = Tensor::zeros({positions, bits});
  for (Index p = 0; p < positions; ++p)
    for (int b = 0; b < bits; ++b) {
      const double cycle = std::exp2(b + 1), middle = (cycle / 2 - 1) / 2;
      waves.values.ref(p, b) =
          static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * (static_cast<double>(p) - middle) / cycle));
    }
  waves.title = said("Softened: waves of the same lengths");
  waves.columns = "½ − ½ cos(2π (p − (2^b − 1)/2) / 2^(b+1))";
  waves.bar = said("value");
  waves.low = 0;
  waves.high = 1;
  const Scene parts[] = {matrix_map_scene(code, style), matrix_map_scene(waves, style)};
  return beside(parts, gap);
}

Scene shaw_picture(const Tensor& q, const Tensor& k, double scale, int window, std::uint64_t seed, Room room,
                   const Style& style) {
  const Index n = std::min<Index>(q.dim(0), 48), d = q.dim(1);
  const Room side{std::floor((room.width - gap) / 2), std::floor((room.height - gap / 2) / 2)};
  Tensor which = Tensor::zeros({n, n}), added = Tensor::zeros({n, n});
  const Tensor table = drawn({2 * window + 1, d}, seed, 1 / std::sqrt(static_cast<double>(d)));
  const Tensor few_q = q.slice(0, 0, n), few_k = k.slice(0, 0, n);
  const Tensor with = shaw_scores(few_q, few_k, table, scale);
  const Tensor without = shaw_scores(few_q, few_k, Tensor::zeros({2 * window + 1, d}), scale);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      which.ref(i, j) = static_cast<float>(shaw_index(j - i, window) - window);
      added.ref(i, j) = with.at(i, j) - without.at(i, j);
    }
  MatrixMap index = causal_map(which, say("Which of {} embeddings a cell adds", 2 * window + 1),
                               say("clip(j − i, ±{})", window), side);
  index.masked.clear();
  const auto map = [&](const Tensor& values, const char* title) {
    return matrix_map_scene(causal_map(values, title, said("score"), side), style);
  };
  const Scene upper[] = {matrix_map_scene(index, style), map(added, said("What it adds: q_i · a / √d"))};
  const Scene lower[] = {map(without, said("Scores without it")), map(with, said("Scores with it"))};
  const Scene rows[] = {beside(upper, gap), beside(lower, gap)};
  Scene scene = below(rows, gap / 2);
  scene.description = say("embeddings drawn from N(0, 1/√d), seed {}: a trained model would have learnt them", seed);
  return scene;
}

Scene transformer_xl_picture(const Tensor& q, const Tensor& k, double scale, std::uint64_t seed, Room room,
                             const Style& style) {
  const Index n = std::min<Index>(q.dim(0), 48), d = q.dim(1);
  const double size = 1 / std::sqrt(static_cast<double>(d));
  const Tensor u = drawn({d}, seed, size), v = drawn({d}, seed + 1, size), w = drawn({d, d}, seed + 2, size);
  const TransformerXlTerms terms = transformer_xl_scores(q.slice(0, 0, n), k.slice(0, 0, n), u, v, w, scale);
  const Room side{std::floor((room.width - 2 * gap) / 3), std::floor((room.height - gap) / 2)};
  const auto map = [&](const Tensor& values, const char* title) {
    return matrix_map_scene(causal_map(values, title, said("score"), side), style);
  };
  const Scene upper[] = {map(terms.content, said("q_i·k_j: content")),
                         map(terms.content_position, said("q_i·r: content asks for a distance")),
                         map(terms.sum, said("All four: the scores"))};
  const Scene lower[] = {map(terms.key_bias, said("u·k_j: keys wanted anyway")),
                         map(terms.position_bias, said("v·r: distances wanted anyway"))};
  const Scene rows[] = {beside(upper, gap), beside(lower, gap)};
  return below(rows, gap / 2);
}

Scene t5_picture(int buckets, int max_distance, bool both_directions, const std::vector<float>& bias, Index tokens,
                 Room room, const Style& style) {
  const Room side = half(room);
  const Index n = std::clamp<Index>(tokens, 16, 64);
  Tensor which = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      which.ref(i, j) = static_cast<float>(t5_bucket(j - i, both_directions, buckets, max_distance));
  MatrixMap map = causal_map(which, say("The bucket of each cell, of {}", buckets), said("bucket"), side);
  map.low = 0;
  map.high = buckets - 1;
  if (both_directions) map.masked.clear();
  const Room chart{side.width, std::floor(room.height / 2 - 34)};
  LineChart by_distance = chart_of(chart, said("bucket"), said("tokens before the query"));
  ChartSeries steps{"", style.theme.accent, {}, {}, 1.75}, numbers{"", style.theme.key, {}, {}, 1.75};
  const Index farthest = max_distance + max_distance / 4;
  // Steps, not slopes: a bucket has one number from its first distance to its last.
  const auto step_to = [](ChartSeries& line, Index distance, double value) {
    if (!line.y.empty() && line.y.back() != value) {
      line.x.push_back(static_cast<double>(distance) - 0.5);
      line.y.push_back(line.y.back());
      line.x.push_back(static_cast<double>(distance) - 0.5);
      line.y.push_back(value);
    }
    line.x.push_back(static_cast<double>(distance));
    line.y.push_back(value);
  };
  for (Index distance = 0; distance <= farthest; ++distance) {
    const int bucket = t5_bucket(-distance, false, buckets, max_distance);
    step_to(steps, distance, t5_bucket(-distance, both_directions, buckets, max_distance));
    if (!bias.empty())
      step_to(numbers, distance,
              static_cast<double>(nth(bias, std::min<int>(bucket, static_cast<int>(bias.size()) - 1))));
  }
  by_distance.y_low = 0;
  by_distance.series = {steps};
  by_distance.marks = {{static_cast<double>(max_distance), said("largest distance")}};
  std::vector<Scene> charts{
      titled(said("Near distances one by one, far ones together"), line_chart_scene(by_distance, style), style)};
  if (!bias.empty()) {
    LineChart learnt = chart_of(chart, said("number added to the score"), said("tokens before the query"));
    learnt.series = {numbers};
    charts.push_back(titled(said("Numbers that fit the selected head: its mean score by bucket"),
                            line_chart_scene(learnt, style), style));
  }
  const Scene parts[] = {matrix_map_scene(map, style), below(charts, 20)};
  return beside(parts, gap);
}

Scene chunk_picture(Index chunk, Index context, Index tokens, Room room, const Style& style) {
  const Room side = half(room);
  // A long text is drawn by every k-th token; the distances are those of the tokens drawn.
  const Index every = std::max<Index>(1, (tokens + 255) / 256), n = (tokens + every - 1) / every;
  Tensor distance = Tensor::zeros({n, n}), part = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j <= i; ++j) {
      distance.ref(i, j) = static_cast<float>(dual_chunk_distance(i * every, j * every, chunk, context));
      part.ref(i, j) = static_cast<float>(chunk_part(i * every, j * every, chunk));
    }
  const auto labelled = [&](MatrixMap map) {
    for (Index i = 0; i < n; ++i) {
      map.row_labels.push_back(std::to_string(i * every));
      map.column_labels.push_back(std::to_string(i * every));
    }
    map.numbers = false;
    return map;
  };
  MatrixMap map = labelled(causal_map(distance, say("The distance at which each key is met: never {} or more", context),
                                      said("re-mapped distance"), side));
  map.low = 0;
  map.high = static_cast<double>(context);
  const Room lower{side.width, std::floor(room.height / 2 - 16)};
  MatrixMap parts_map = labelled(causal_map(part, said("Own chunk, the one before, all further back"),
                                            said("0 own · 1 before · 2 further"), lower));
  parts_map.low = 0;
  parts_map.high = 2;
  LineChart late =
      chart_of({lower.width, lower.height - 34}, said("distance that the last token uses"), said("true distance"));
  ChartSeries mapped{"", style.theme.accent, {}, {}, 2},
      true_line{"", with_opacity(style.theme.muted, 0.8), {}, {}, 1.25};
  const Index last = tokens - 1;
  for (Index j = last; j >= 0; j -= every) {
    mapped.x.push_back(static_cast<double>(last - j));
    mapped.y.push_back(static_cast<double>(dual_chunk_distance(last, j, chunk, context)));
    true_line.x.push_back(static_cast<double>(last - j));
    true_line.y.push_back(static_cast<double>(last - j));
  }
  late.y_low = 0;
  late.series = {true_line, mapped};
  late.marks = {{static_cast<double>(context), said("trained context")}};
  const Scene right[] = {matrix_map_scene(parts_map, style),
                         titled(said("What the last token sees: near distances true, far ones folded back"),
                                line_chart_scene(late, style), style)};
  const Scene all[] = {matrix_map_scene(map, style), below(right, 20)};
  return beside(all, gap);
}

Scene alibi_picture(int heads, int head, Index tokens, Room room, const Style& style) {
  const Room side = half(room);
  const std::vector<double> slopes = alibi_slopes(heads);
  const Index n = std::clamp<Index>(tokens, 8, 64);
  Tensor bias = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j <= i; ++j) bias.ref(i, j) = static_cast<float>(-nth(slopes, head) * static_cast<double>(i - j));
  MatrixMap map = causal_map(bias, say("What head {} adds, slope {}", head, short_number(nth(slopes, head), 4)),
                             said("−slope · (i − j)"), side);
  map.sequential = true;
  map.high = 0;
  const Room chart{side.width, std::floor(room.height / 2 - 34)};
  LineChart by_distance = chart_of(chart, said("added to the score"), said("tokens before the query"));
  for (int h = 0; h < heads; ++h) {
    const double t = heads > 1 ? static_cast<double>(h) / (heads - 1) : 0;
    ChartSeries line{"",
                     h == head ? style.theme.accent : with_opacity(mix(style.theme.query, style.theme.key, t), 0.6),
                     {0, static_cast<double>(n)},
                     {0, -nth(slopes, h) * static_cast<double>(n)},
                     h == head ? 2.5 : 1.2};
    by_distance.series.push_back(std::move(line));
  }
  by_distance.y_high = 0;
  LineChart by_head = chart_of(chart, said("log₂ slope"), said("head"));
  ChartSeries dots{"", style.theme.accent, {}, {}, 1.75};
  for (int h = 0; h < heads; ++h) {
    dots.x.push_back(h);
    dots.y.push_back(std::log2(nth(slopes, h)));
  }
  by_head.series = {dots};
  by_head.marker = Point{static_cast<double>(head), nth(dots.y, head)};
  const Scene charts[] = {
      titled(said("Every head forgets at its own pace"), line_chart_scene(by_distance, style), style),
      titled(say("Slopes of {} heads", heads), line_chart_scene(by_head, style), style)};
  const Scene parts[] = {matrix_map_scene(map, style), below(charts, 20)};
  return beside(parts, gap);
}

}  // namespace headscope
