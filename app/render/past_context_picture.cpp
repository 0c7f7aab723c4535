#include "app/render/past_context_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/compose.h"

namespace headscope {

namespace {

/// "within 256", "256–512" …
std::string part_name(const LongRun& run, std::size_t part) {
  const auto from = static_cast<int>(part) * run.context;
  return part == 0 ? say("within {}", run.context) : fmt::format("{}–{}", from, from + run.context);
}

std::size_t parts_of(const LongRun& run) {
  return run.lines.empty() ? 0 : run.lines.front().by_part.size();
}

Color hue_of(NaiveCodes::Code code, const Style& style) {
  return code == NaiveCodes::counted    ? style.theme.key
         : code == NaiveCodes::squeezed ? style.theme.query
                                        : style.theme.value;
}

}  // namespace

LineChart past_context_chart(const LongRun& run, const std::string& chosen, const Style& style) {
  LineChart chart;
  chart.y_title = said("loss, nats per token");
  chart.x_title = said("position");
  chart.grid = true;
  chart.x_low = 0;
  chart.x_high = run.tokens;
  chart.marks = {{static_cast<double>(run.context), say("trained length {}", run.context)}};
  for (const bool front : {false, true})
    for (std::size_t i = 0; i < run.lines.size(); ++i) {
      const LongRun::Line& line = run.lines[i];
      if ((line.title == chosen) != front) continue;
      const double t = static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(run.lines.size() - 1, 1));
      ChartSeries series{said(line.title),
                         front ? style.theme.accent : mix(style.theme.value, style.theme.key, t),
                         {},
                         {},
                         front ? 2.75 : 1.5};
      for (std::size_t b = 0; b < line.loss.size(); ++b) {
        if (std::isnan(line.loss[b])) break;  // as far as it can read
        const int first = static_cast<int>(b) * run.bin, last = std::min(first + run.bin, run.tokens - 1);
        series.x.push_back((first + last) / 2.0 + 1);
        series.y.push_back(line.loss[b]);
      }
      chart.series.push_back(std::move(series));
    }
  return chart;
}

MatrixMap past_context_table(const LongRun& run) {
  MatrixMap map;
  const auto lines = static_cast<Index>(run.lines.size()), parts = static_cast<Index>(parts_of(run));
  map.values = Tensor::zeros({lines, parts});
  for (Index i = 0; i < lines; ++i) {
    const LongRun::Line& line = nth(run.lines, i);
    map.row_labels.push_back(said(line.title));
    for (Index p = 0; p < parts; ++p) {
      const double loss = nth(line.by_part, p);
      map.masked.push_back(std::isnan(loss) ? 1 : 0);
      map.values.ref(i, p) = std::isnan(loss) ? 0 : static_cast<float>(loss);
    }
  }
  for (Index p = 0; p < parts; ++p) map.column_labels.push_back(part_name(run, static_cast<std::size_t>(p)));
  map.bar = said("mean loss, nats");
  map.square = false;
  map.mask_legend = false;
  map.sequential = true;
  if (const int best = run.best(parts_of(run) - 1); best >= 0) map.marked = Cell{best, parts - 1};
  map.provenance = say("mean of −ln p over the tokens at these positions, {}", run.source);
  return map;
}

std::string past_context_words(const LongRun& run) {
  std::string words = said("Least loss: ");
  for (std::size_t part = 0; part < parts_of(run); ++part) {
    const int best = run.best(part);
    if (best < 0) continue;
    words += fmt::format("{}{} {} ({:.2f})", part > 0 ? ", " : "", part_name(run, part),
                         said(nth(run.lines, best).title), nth(run.lines, best).by_part[part]);
  }
  return words + said(". Measured on this model, which was trained at one length; nothing was trained anew.");
}

Scene past_context_picture(const LongRun& run, Room room, const Style& style) {
  LineChart chart = past_context_chart(run, "", style);
  chart.width = room.width;
  chart.height = room.height * 0.6;
  MatrixMap map = past_context_table(run);
  map.width = room.width;
  map.height = room.height * 0.36;
  const Scene parts[] = {line_chart_scene(chart, style), matrix_map_scene(map, style)};
  return below(parts, 16);
}

LineChart naive_likeness_chart(const NaiveCodes& codes, const Style& style) {
  LineChart chart;
  chart.y_title = said("cosine of two different words");
  chart.x_title = said("position");
  chart.grid = true;
  chart.y_low = 0;
  chart.y_high = 1;
  chart.points = true;
  chart.log_x = true;
  for (const auto code : {NaiveCodes::squeezed, NaiveCodes::sinusoids, NaiveCodes::counted}) {
    ChartSeries series{std::string(said_view(NaiveCodes::titles[code])), hue_of(code, style), {}, {}, 2.25};
    for (std::size_t i = 1; i < codes.positions.size(); ++i) {  // position 0 has no place on a log axis
      series.x.push_back(codes.positions[i]);
      series.y.push_back(codes.likeness[code][i]);
    }
    chart.series.push_back(std::move(series));
  }
  chart.marks = {{static_cast<double>(codes.context), said("trained length")}};
  return chart;
}

LineChart naive_step_chart(const NaiveCodes& codes, const Style& style) {
  LineChart chart;
  chart.y_title = said("neighbours' codes apart, ÷ length of a word's embedding");
  chart.x_title = said("tokens in the text");
  chart.grid = true;
  chart.log_x = true;
  chart.log_y = true;
  chart.points = true;
  for (const auto code : {NaiveCodes::counted, NaiveCodes::sinusoids, NaiveCodes::squeezed})
    chart.series.push_back(
        {std::string(said_view(NaiveCodes::titles[code])), hue_of(code, style), codes.lengths, codes.step[code], 2.25});
  return chart;
}

std::string naive_words(const NaiveCodes& codes) {
  const std::size_t last = codes.positions.size() - 1;
  const auto at = static_cast<std::size_t>(
      std::ranges::lower_bound(codes.positions, static_cast<double>(codes.context)) - codes.positions.begin());
  return say(
      "Counting grows without bound: at position {:.0f} two different words, {:.2f} alike without a code, are {:.4f} "
      "alike, and a text one token longer holds a number never seen in training. 0 … 1 keeps its size, but a step "
      "between neighbours is {} times a word's length in a text of {:.0f} tokens and {} times in one of {:.0f}: the "
      "same distance means something else in every text.",
      codes.positions[std::min(at, last)], codes.likeness[NaiveCodes::counted].front(),
      codes.likeness[NaiveCodes::counted][std::min(at, last)],
      short_number(codes.step[NaiveCodes::squeezed].front(), 2), codes.lengths.front(),
      short_number(codes.step[NaiveCodes::squeezed].back(), 2), codes.lengths.back());
}

Scene naive_picture(const NaiveCodes& codes, Room room, const Style& style) {
  LineChart left = naive_likeness_chart(codes, style), right = naive_step_chart(codes, style);
  left.width = right.width = room.width;
  left.height = right.height = room.height / 2 - 10;
  const Scene parts[] = {line_chart_scene(left, style), line_chart_scene(right, style)};
  return below(parts, 16);
}

}  // namespace headscope
