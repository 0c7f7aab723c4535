#include "app/widgets/plots.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/widgets/controls.h"
#include "viz/color/norm.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

struct Axis {
  double low = 0, high = 1;
  bool log = false;
  double unit(double v) const {
    const double t = log ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
    return std::isfinite(t) ? t : 0;
  }
  double value(double t) const { return log ? low * std::pow(high / low, t) : low + t * (high - low); }
};

Axis axis(std::span<const Series> series, bool vertical, const PlotOptions& options) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Series& s : series)
    for (const double v : vertical ? s.y : s.x)
      if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  if (low > high) low = 0, high = 1;
  Axis out;
  out.log = !vertical && options.log_x && low > 0;
  if (vertical) {
    const double room = (high - low) * 0.06;
    low -= room, high += room;
  }
  out.low = (vertical ? options.y_low : options.x_low).value_or(low);
  out.high = (vertical ? options.y_high : options.x_high).value_or(high);
  if (!(out.high > out.low)) out.high = out.low + 1;
  if (out.log && !(out.low > 0)) out.log = false;
  return out;
}

/// The same curves as a picture for a file.
Scene chart_of(const std::vector<Series>& series, const PlotOptions& options, double width, const Look& look) {
  LineChart chart;
  chart.width = width;
  chart.height = std::max(options.height, 120.0);
  chart.y_title = options.title;
  chart.x_title = options.x_name == "x" ? "" : options.x_name;
  chart.y_low = options.y_low;
  chart.y_high = options.y_high;
  chart.log_x = options.log_x;
  chart.grid = options.scales;
  chart.marker = options.marker;
  for (const auto& [at, text] : options.x_ticks) {
    chart.x_ticks.push_back(at);
    chart.x_labels.push_back(text);
  }
  for (const Series& line : series) chart.series.push_back({line.label, line.color, line.x, line.y, line.width});
  return line_chart_scene(chart, look);
}

/// Round values inside the axis, at most about `wanted` of them: steps of 1, 2 or 5 times a power of ten.
std::vector<double> round_values(const Axis& axis, int wanted) {
  const double span = axis.high - axis.low, raw = span / std::max(wanted, 1);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw) {
      step = factor * power;
      break;
    }
  std::vector<double> values;
  for (double v = std::ceil(axis.low / step - 1e-9) * step; v <= axis.high + 1e-9 * span; v += step)
    values.push_back(std::abs(v) < 1e-9 * span ? 0 : v);
  return values;
}

bool named(const Series& s, const PlotOptions& options) {
  return options.end_labels && !s.quiet && !s.label.empty() && !s.y.empty() && std::isfinite(s.y.back());
}

/// Room on the right for the names of the lines, where the chart is large enough to give it; 0: they stand among them.
float names_room(const Ui& ui, std::span<const Series> series, const PlotOptions& options, float width) {
  if (!options.scales) return 0;
  double widest = 0;
  for (const Series& s : series)
    if (named(s, options)) widest = std::max(widest, ui.fonts.width(s.label, ui.small()));
  const float room = widest > 0 ? ui.px(widest + 8) : 0;
  return room <= 0.25f * width ? room : 0;
}

}  // namespace

PlotTouch plot(const Ui& ui, const char* id, std::span<const Series> series, const PlotOptions& options) {
  PlotTouch touch;
  const float width = std::max(ImGui::GetContentRegionAvail().x, ui.px(40)), height = ui.px(options.height);
  const float ticks_height = options.x_ticks.empty() && !options.scales ? 0 : ui.px(16 * ui.theme.text_scale);
  const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + width, at.y + height};
  if (ui.pictures.asked) {
    const double across = static_cast<double>(width / ui.scale);
    ui.pictures.add(id, options.title, across * options.height,
                    [lines = std::vector<Series>(series.begin(), series.end()), options, across](const Look& look) {
                      return chart_of(lines, options, across, look);
                    });
  }
  touch.clicked = ImGui::InvisibleButton(id, {width, height + ticks_height});
  touch.hovered = ImGui::IsItemHovered();
  const float edge = ui.px(8);
  const float margin = options.scales ? ui.px(34 * ui.theme.text_scale) : 0;
  const float title = options.title.empty() ? 0 : ui.px(ui.small().size + 4);  // stands above the lines, not among them
  const float names = names_room(ui, series, options, width);
  const ImVec2 low{at.x + edge + margin, end.y - edge}, high{end.x - edge - names, at.y + edge + title};
  const Axis x = axis(series, false, options), y = axis(series, true, options);
  const auto place = [&](double px, double py) {
    return ImVec2{low.x + static_cast<float>(x.unit(px)) * (high.x - low.x),
                  low.y + static_cast<float>(std::clamp(y.unit(py), -0.05, 1.05)) * (high.y - low.y)};
  };
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  if (options.frame) draw.AddRect(at, end, col(ui.theme.line), ui.px(2));
  const Font small = ui.small();
  if (!options.title.empty())
    draw_text(ui, draw, {{0, 0}, options.title, small, ui.theme.faint, Anchor::start, 0},
              {at.x + ui.px(7), at.y + ui.px(5 + small.size)});
  if (options.scales) {
    const Color thin = with_opacity(ui.theme.line, 0.6);
    for (const double value : round_values(y, static_cast<int>(options.height / 40))) {
      const float line = place(x.low, value).y;
      draw.AddLine({low.x, line}, {names > 0 ? high.x : end.x - 1, line}, col(thin), 1);
      draw_text(ui, draw, {{0, 0}, short_number(value, 4), small, ui.theme.faint, Anchor::end, 0},
                {low.x - ui.px(5), line + ui.px(0.36 * small.size)});
    }
    if (options.x_ticks.empty())
      for (const double value : round_values(x, static_cast<int>((high.x - low.x) / ui.px(110))))
        draw_text(ui, draw, {{0, 0}, short_number(value, 6), small, ui.theme.faint, Anchor::middle, 0},
                  {place(value, y.low).x, end.y + ui.px(3 + small.size)});
  }
  for (const auto& [value, text] : options.x_ticks)
    draw_text(ui, draw, {{0, 0}, text, small, ui.theme.faint, Anchor::middle, 0},
              {place(value, y.low).x, end.y + ui.px(3 + small.size)});

  draw.PushClipRect(at, end, true);
  std::vector<float> label_places;
  for (const Series& s : series) {
    std::vector<ImVec2> points;
    const auto flush = [&] {
      if (points.size() > 1)
        draw.AddPolyline(points.data(), static_cast<int>(points.size()), col(s.color), 0,
                         static_cast<float>(s.width) * ui.scale);
      points.clear();
    };
    for (std::size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i)
      std::isfinite(s.y[i]) && std::isfinite(s.x[i]) ? points.push_back(place(s.x[i], s.y[i])) : flush();
    flush();
    if (!named(s, options)) continue;
    float line = place(s.x.back(), s.y.back()).y + (names > 0 ? ui.px(half_capital(small)) : -ui.px(4));
    const float least = ui.px(small.size + 2);
    // Labels of neighbouring lines step aside, up or down, whichever is nearer and inside.
    const float top = at.y + ui.px(small.size), bottom = end.y - ui.px(2), wanted = std::clamp(line, top, bottom);
    const auto taken = [&](float place_y) {
      return std::ranges::any_of(label_places, [&](float other) { return std::abs(other - place_y) < least - 0.5f; });
    };
    line = wanted;
    for (int step = 1; taken(line) && step < 40; ++step) {
      const float shift = least * static_cast<float>((step + 1) / 2);
      line = step % 2 ? wanted - shift : wanted + shift;
      if (line < top) line = wanted + shift;
      if (line > bottom) line = wanted - shift;
    }
    label_places.push_back(line);
    draw_text(ui, draw, {{0, 0}, s.label, small, s.color, names > 0 ? Anchor::start : Anchor::end, 0},
              {high.x + (names > 0 ? ui.px(6) : 0), line});
  }
  if (options.marker) {
    const ImVec2 p = place(options.marker->x, options.marker->y);
    draw.AddCircleFilled(p, ui.px(4.5), col(ui.theme.background), 20);
    draw.AddCircleFilled(p, ui.px(3.5), col(ui.theme.accent), 20);
  }
  if (touch.hovered) {
    const double t = std::clamp(static_cast<double>((ImGui::GetMousePos().x - low.x) / (high.x - low.x)), 0.0, 1.0);
    touch.x = x.value(t);
    std::vector<std::string> lines;
    double nearest_x = touch.x;
    for (const Series& s : series) {
      if (s.x.empty() || s.quiet) continue;
      std::size_t best = 0;
      for (std::size_t i = 1; i < std::min(s.x.size(), s.y.size()); ++i)
        if (std::abs(x.unit(s.x[i]) - t) < std::abs(x.unit(s.x[best]) - t)) best = i;
      nearest_x = s.x[best];
      if (best < s.y.size())
        lines.push_back((s.label.empty() ? options.title : s.label) + "  " + short_number(s.y[best], 4));
    }
    if (options.readout && !lines.empty()) {
      const float px = place(nearest_x, y.low).x;
      draw.AddLine({px, at.y}, {px, end.y}, col(with_opacity(ui.theme.muted, 0.5)), 1);
      lines.insert(lines.begin(), options.x_name + " " + short_number(nearest_x, 4));
      tooltip(ui, lines);
    }
  }
  draw.PopClipRect();
  return touch;
}

}  // namespace headscope
