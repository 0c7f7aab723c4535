#include "viz/scene/token_axis.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/nth.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double gap_to_map = 7, number_gap = 6, lean = -52;

double radians(double degrees) {
  return degrees * std::numbers::pi / 180;
}
double number_room(const AxisLabel& label) {
  return label.number_width > 0 ? label.number_width + number_gap : 0;
}
double line_height(const Font& font) {
  return 1.18 * font.size;
}

Font number_font(const Font& font) {
  return {FontRole::mono, font.size, 400};
}

Color color_of(const AxisPlan& plan, const AxisLabel& label, Color marked, const Theme& theme) {
  return plan.marked == label.position ? marked : theme.muted;
}

Font font_of(const AxisPlan& plan, const AxisLabel& label) {
  Font font = plan.font;
  if (plan.marked == label.position) font.weight = 600;
  return font;
}

/// Chooses the positions to name and measures their labels.
void fill_labels(AxisPlan& plan, const AxisTokens& tokens, double need, const Style& style) {
  const double per_token = tokens.cell / static_cast<double>(tokens.bin);
  const bool numbered = plan.every > 1;
  plan.marked = tokens.marked;
  const auto add = [&](Index position) {
    AxisLabel label;
    label.position = position;
    label.center = (std::floor(static_cast<double>((position - tokens.first) / tokens.bin)) + 0.5) * tokens.cell;
    label.text = elided(tokens.label(position), plan.font,
                        tokens.longest.value_or(max_label_width * style.theme.text_scale), style.measure);
    label.text_width = style.measure.width(label.text, font_of(plan, label));
    if (numbered) {
      label.number = std::to_string(position);
      label.number_width = style.measure.width(label.number, number_font(plan.font));
    }
    plan.labels.push_back(std::move(label));
  };
  const Index first_round = (tokens.first + plan.every - 1) / plan.every * plan.every;
  for (Index position = first_round; position < tokens.first + tokens.count; position += plan.every) {
    // The marked token is always named; round neighbours that would touch it give way.
    const bool crowded = tokens.marked && position != *tokens.marked && numbered &&
                         std::abs(static_cast<double>(position - *tokens.marked)) * per_token < need;
    if (!crowded) add(position);
  }
  if (tokens.marked && *tokens.marked % plan.every != 0) add(*tokens.marked);
  for (const AxisLabel& label : plan.labels) plan.number_width = std::max(plan.number_width, number_room(label));
}

}  // namespace

std::string AxisTokens::label(Index position) const {
  return queries ? query_label(trace, position) : token_label(trace, position);
}

AxisPlan plan_side_axis(const AxisTokens& tokens, const Style& style) {
  AxisPlan plan;
  plan.font = tokens.cell >= line_height(style.theme.token()) + 2 ? style.theme.token() : style.theme.small_token();
  const double need = line_height(plan.font);
  plan.every =
      tokens.bin == 1 && tokens.cell >= need ? 1 : round_every(tokens.cell / static_cast<double>(tokens.bin), need + 2);
  fill_labels(plan, tokens, need, style);
  double widest = 0;
  for (const AxisLabel& label : plan.labels) widest = std::max(widest, label.text_width);
  plan.depth = std::ceil(widest + plan.number_width + gap_to_map);
  return plan;
}

namespace {

/// Labels across the top or the bottom: flat where all fit, standing where only that names every token, else leaning.
AxisPlan plan_across(const AxisTokens& tokens, const Style& style) {
  AxisPlan plan;
  const Font normal = style.theme.token(), small = style.theme.small_token();
  const double leaning = std::sin(radians(-lean));
  plan.font = tokens.cell * leaning >= line_height(normal) ? normal : small;
  plan.degrees = lean;
  double need = line_height(plan.font) / leaning;
  if (tokens.bin == 1 && tokens.cell < need && tokens.cell >= line_height(plan.font)) {
    plan.degrees = -90;
    need = line_height(plan.font);
  }
  plan.every =
      tokens.bin == 1 && tokens.cell >= need ? 1 : round_every(tokens.cell / static_cast<double>(tokens.bin), need + 2);
  fill_labels(plan, tokens, need, style);
  if (plan.every == 1 && std::all_of(plan.labels.begin(), plan.labels.end(),
                                     [&](const AxisLabel& label) { return label.text_width <= tokens.cell - 8; }))
    plan.degrees = 0;
  const double angle = radians(-plan.degrees), half = half_capital(plan.font);
  for (const AxisLabel& label : plan.labels) {
    const double length = plan.degrees == 0 ? 0 : number_room(label) + label.text_width;
    // The far corner of the slanted line, as high as its ascenders reach.
    plan.depth =
        std::max(plan.depth, std::ceil(length * std::sin(angle) + 2 * half * std::cos(angle) + gap_to_map + 1));
  }
  return plan;
}

}  // namespace

AxisPlan plan_top_axis(const AxisTokens& tokens, const Style& style) {
  AxisPlan plan = plan_across(tokens, style);
  if (plan.degrees == 0) return plan;
  const double angle = radians(-plan.degrees), half = half_capital(plan.font);
  const double cells = std::ceil(static_cast<double>(tokens.count) / static_cast<double>(tokens.bin));
  for (const AxisLabel& label : plan.labels) {
    const double reach =
        label.center + (number_room(label) + label.text_width) * std::cos(angle) + 2 * half * std::sin(angle);
    plan.overhang = std::max(plan.overhang, std::ceil(reach - tokens.cell * cells));
  }
  return plan;
}

AxisPlan plan_bottom_axis(const AxisTokens& tokens, const Style& style) {
  AxisPlan plan = plan_across(tokens, style);
  if (plan.degrees == 0) return plan;
  const double angle = radians(-plan.degrees), half = half_capital(plan.font);
  for (const AxisLabel& label : plan.labels) {
    const double reach =
        (number_room(label) + label.text_width) * std::cos(angle) + 2 * half * std::sin(angle) - label.center;
    plan.overhang = std::max(plan.overhang, std::ceil(reach));
  }
  return plan;
}

double full_depth(const AxisPlan& plan, const AxisTokens& tokens, const Style& style) {
  if (plan.every == 1) return plan.depth;
  // The longest in letters are the longest on paper, or nearly: measuring a few is enough.
  constexpr std::size_t measured = 12;
  const std::vector<Token>& all = tokens.queries ? tokens.trace.queries() : tokens.trace.tokens;
  const auto letters = [&](Index position) {
    return position < static_cast<Index>(all.size()) ? nth(all, position).label.size() : 0;
  };
  std::vector<Index> longest;
  for (Index position = tokens.first; position < tokens.first + tokens.count; ++position) longest.push_back(position);
  const std::size_t few = std::min(measured, longest.size());
  std::ranges::partial_sort(longest, longest.begin() + static_cast<std::ptrdiff_t>(few),
                            [&](Index a, Index b) { return letters(a) > letters(b); });
  Font bold = plan.font;
  bold.weight = 600;
  const double most = tokens.longest.value_or(max_label_width * style.theme.text_scale);
  double widest = 0;
  for (std::size_t i = 0; i < few; ++i)
    widest = std::max(widest, std::min(most, style.measure.width(tokens.label(longest[i]), bold)));
  const std::string last = std::to_string(tokens.first + tokens.count - 1);
  const double length = widest + number_gap + style.measure.width(last, number_font(plan.font));
  if (plan.degrees == 0) return std::max(plan.depth, std::ceil(length + gap_to_map));
  const double angle = radians(-plan.degrees);
  return std::max(plan.depth,
                  std::ceil(length * std::sin(angle) + 2 * half_capital(plan.font) * std::cos(angle) + gap_to_map + 1));
}

namespace {

PointedLabel pointed(Text text, double room, const Style& style) {
  text.font.weight = 600;
  text.text = elided(text.text, text.font, room, style.measure);
  const TextBox box = style.measure.measure(text.text, text.font);
  const double start = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? -box.width / 2 : -box.width;
  const double angle = radians(text.degrees), c = std::cos(angle), s = std::sin(angle), more = 3;
  const double x0 = start - more, x1 = start + box.width + more;
  const double y0 = -line_height(text.font) + 1, y1 = 0.28 * text.font.size + 1;
  const auto place = [&](double x, double y) { return Point{text.at.x + c * x - s * y, text.at.y + s * x + c * y}; };
  return {std::move(text), {place(x0, y0), place(x1, y0), place(x1, y1), place(x0, y1)}};
}

}  // namespace

PointedLabel point_beside(const Text& like, Point edge, const std::string& label, double room, Color color,
                          const Style& style) {
  Text text{{edge.x - gap_to_map, edge.y + half_capital(like.font)}, label, like.font, color, Anchor::end, 0};
  return pointed(std::move(text), room, style);
}

PointedLabel point_above(const Text& like, Point edge, const std::string& label, double room, Color color,
                         const Style& style) {
  const double angle = radians(-like.degrees), half = half_capital(like.font);
  Text text{{edge.x + half * std::sin(angle), edge.y - gap_to_map + half * std::cos(angle)},
            label,
            like.font,
            color,
            Anchor::start,
            like.degrees};
  if (like.degrees == 0) text.at = {edge.x, edge.y - gap_to_map - 1}, text.anchor = Anchor::middle;
  return pointed(std::move(text), room, style);
}

void add_side_axis(Scene& scene, const AxisPlan& plan, double x, double y, const std::string& id, Color marked,
                   const Style& style, Side side, const std::string& maps) {
  const double away = side == Side::left ? -1 : 1;
  const Anchor anchor = side == Side::left ? Anchor::end : Anchor::start;
  for (const AxisLabel& label : plan.labels) {
    const double baseline = y + label.center + half_capital(plan.font), near = x + away * gap_to_map;
    if (!label.number.empty()) {
      scene.add({Line{{{x + away * 4, y + label.center}, {x + away, y + label.center}}, style.theme.faint, 1}, "", ""});
      scene.add({Text{{near, baseline}, label.number, number_font(plan.font), style.theme.faint, anchor, 0}, "", ""});
    }
    scene.add({Text{{near + away * plan.number_width, baseline},
                    label.text,
                    font_of(plan, label),
                    color_of(plan, label, marked, style.theme),
                    anchor,
                    0},
               "label." + id + "." + std::to_string(label.position), "", LabelOf{LabelOf::row, label.position, maps}});
  }
}

void add_bottom_axis(Scene& scene, const AxisPlan& plan, double x, double y, const std::string& id, Color marked,
                     const Style& style) {
  const double angle = radians(-plan.degrees), half = half_capital(plan.font);
  const double c = std::cos(angle), s = std::sin(angle);
  for (const AxisLabel& label : plan.labels) {
    const Color color = color_of(plan, label, marked, style.theme);
    const std::string label_id = "label." + id + "." + std::to_string(label.position);
    if (plan.degrees == 0) {
      scene.add({Text{{x + label.center, y + gap_to_map + 2 * half},
                      label.text,
                      font_of(plan, label),
                      color,
                      Anchor::middle,
                      0},
                 label_id, "", LabelOf{LabelOf::column, label.position}});
      continue;
    }
    const Point end{x + label.center + half * s, y + gap_to_map + half * c};
    const auto along = [&](double distance) { return Point{end.x - distance * c, end.y + distance * s}; };
    if (!label.number.empty()) {
      scene.add({Line{{{x + label.center, y + 1}, {x + label.center, y + 4}}, style.theme.faint, 1}, "", ""});
      scene.add(
          {Text{end, label.number, number_font(plan.font), style.theme.faint, Anchor::end, plan.degrees}, "", ""});
    }
    scene.add({Text{along(number_room(label)), label.text, font_of(plan, label), color, Anchor::end, plan.degrees},
               label_id, "", LabelOf{LabelOf::column, label.position}});
  }
}

void add_top_axis(Scene& scene, const AxisPlan& plan, double x, double y, const std::string& id, Color marked,
                  const Style& style, const std::string& maps) {
  const double angle = radians(-plan.degrees), half = half_capital(plan.font);
  const double c = std::cos(angle), s = std::sin(angle);
  for (const AxisLabel& label : plan.labels) {
    const Color color = color_of(plan, label, marked, style.theme);
    const std::string label_id = "label." + id + "." + std::to_string(label.position);
    if (plan.degrees == 0) {
      scene.add(
          {Text{{x + label.center, y - gap_to_map - 1}, label.text, font_of(plan, label), color, Anchor::middle, 0},
           label_id, "", LabelOf{LabelOf::column, label.position, maps}});
      continue;
    }
    // The middle of the line of type points at the middle of the column.
    const Point start{x + label.center + half * s, y - gap_to_map + half * c};
    const auto along = [&](double distance) { return Point{start.x + distance * c, start.y - distance * s}; };
    if (!label.number.empty()) {
      scene.add({Line{{{x + label.center, y - 4}, {x + label.center, y - 1}}, style.theme.faint, 1}, "", ""});
      scene.add(
          {Text{start, label.number, number_font(plan.font), style.theme.faint, Anchor::start, plan.degrees}, "", ""});
    }
    scene.add({Text{along(number_room(label)), label.text, font_of(plan, label), color, Anchor::start, plan.degrees},
               label_id, "", LabelOf{LabelOf::column, label.position, maps}});
  }
}

}  // namespace headscope
