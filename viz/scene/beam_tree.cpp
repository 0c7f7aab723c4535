#include "viz/scene/beam_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

using Fate = BeamTreeNode::Fate;

constexpr double longest_beam_label = 96, beam_gap = 46, beam_margin = 10;
constexpr double heaviest_line = 7;  // line of a token that was certain

/// As wide as "0.00", and never a nothing that is something.
std::string share(double probability) {
  return probability < 0.005 ? "<.01" : fmt::format("{:.2f}", probability);
}

const char* fate_words(Fate fate) {
  return fate == Fate::kept ? said("kept") : fate == Fate::finished ? said("finished") : said("dropped");
}

class TreePainter {
 public:
  TreePainter(Scene& scene, const BeamTreeOptions& options, const Style& style)
      : scene_(scene), o_(options), style_(style), t_(style.theme) {
    row_ = std::round(26 * t_.text_scale);
    number_width_ = style.measure.width("0.00", t_.number());
    if (o_.selected)
      for (std::optional<std::size_t> at = o_.selected; at; at = o_.nodes[*at].parent) way_.push_back(*at);
    plan_columns();
  }

  /// Returns the picture's right and lower edge.
  Point paint(double top) {
    top_ = top + std::round(18 * t_.text_scale);
    place_nodes();
    for (int step = 1; step <= steps_; ++step)
      text({x_of(step) + width_of(step) / 2, top + std::round(11 * t_.text_scale)}, std::to_string(step), t_.caption(),
           t_.faint, Anchor::middle);
    // What stands out is drawn last.
    for (const bool on_way : {false, true})
      for (std::size_t i = 0; i < o_.nodes.size(); ++i)
        if (drawn(o_.nodes[i]) && on(i) == on_way) line_to(i);
    prompt();
    for (std::size_t i = 0; i < o_.nodes.size(); ++i)
      if (drawn(o_.nodes[i])) node(i);
    const double right = x_of(steps_) + width_of(steps_) + std::round(24 * t_.text_scale) + beam_margin;
    const double bottom = top_ + row_ * most_rows_;
    return {std::max(right, beam_margin + legend(bottom + std::round(20 * t_.text_scale)) + beam_margin),
            bottom + std::round(30 * t_.text_scale)};
  }

 private:
  bool drawn(const BeamTreeNode& node) const { return o_.dropped || node.fate != Fate::dropped || is_selected(node); }
  bool is_selected(const BeamTreeNode& node) const { return o_.selected && &node == &o_.nodes[*o_.selected]; }
  bool on(std::size_t i) const { return std::ranges::find(way_, i) != way_.end(); }
  double x_of(int step) const { return nth(columns_, step).x; }
  double width_of(int step) const { return nth(columns_, step).width; }
  double label_of(int step) const { return nth(columns_, step).label; }
  double prompt_y() const { return top_ + row_ / 2; }

  /// Each as wide as its labels need.
  void plan_columns() {
    if (!o_.nodes.empty()) steps_ = o_.nodes.back().step;
    std::vector<double> widest(static_cast<std::size_t>(steps_) + 1, 26);
    widest[0] = style_.measure.width(printable(o_.prompt), t_.token());
    for (const BeamTreeNode& node : o_.nodes)
      if (drawn(node))
        nth(widest, node.step) =
            std::max(nth(widest, node.step), style_.measure.width(printable(node.label), t_.token()));
    double x = beam_margin;
    for (std::size_t step = 0; step < widest.size(); ++step) {
      const double label = std::ceil(std::min(widest[step], longest_beam_label * t_.text_scale));
      const double width = label + (step == 0 ? 16 : number_width_ + 25);
      columns_.push_back({x, width, label});
      x += width + beam_gap * t_.text_scale;
    }
  }

  void place_nodes() {
    y_.assign(o_.nodes.size(), 0);
    int step = 0, row = 0;
    for (std::size_t i = 0; i < o_.nodes.size(); ++i) {
      if (o_.nodes[i].step != step) row = 0;
      step = o_.nodes[i].step;
      if (!drawn(o_.nodes[i])) continue;
      y_[i] = top_ + row_ * (row + 0.5);
      most_rows_ = std::max(most_rows_, ++row);
    }
  }

  void prompt() {
    scene_.add({Box{{beam_margin, prompt_y() - row_ / 2 + 2, width_of(0), row_ - 4}, t_.masked, {0, 0, 0, 0}, 0, 4},
                "prompt", said("where the prompt ends: all texts begin here")});
    text({beam_margin + 8, prompt_y() + half_capital(t_.token())},
         elided(printable(o_.prompt), t_.token(), label_of(0), style_.measure), t_.token(), t_.text);
  }

  void line_to(std::size_t i) {
    const BeamTreeNode& node = o_.nodes[i];
    const int before = node.parent ? o_.nodes[*node.parent].step : 0;
    const Point from{x_of(before) + width_of(before), node.parent ? y_[*node.parent] : prompt_y()};
    const Point to{x_of(node.step), y_[i]};
    const double half = (to.x - from.x) / 2;
    const Color color = on(i)                        ? t_.accent
                        : node.fate == Fate::dropped ? mix(t_.background, t_.faint, 0.55)
                        : node.fate == Fate::kept    ? t_.faint
                                                     : t_.value;
    scene_.add({Curve{from,
                      {from.x + half, from.y},
                      {to.x - half, to.y},
                      to,
                      color,
                      std::max(0.75, heaviest_line * node.probability)},
                "", ""});
  }

  void node(std::size_t i) {
    const BeamTreeNode& node = o_.nodes[i];
    const double x = x_of(node.step), y = y_[i], width = width_of(node.step);
    const bool way = on(i), kept = node.fate == Fate::kept, finished = node.fate == Fate::finished;
    const Color ground = way                ? mix(t_.background, t_.accent, 0.26)
                         : kept || finished ? mix(t_.background, t_.muted, 0.16)
                                            : t_.background;
    const Color frame = way ? t_.accent : finished ? t_.value : kept ? t_.faint : Color{0, 0, 0, 0};
    std::string tip = say("{}   {}\nprobability {} behind what it continues\nΣ ln p of {} {}: {:.4f}", node.label,
                          fate_words(node.fate), short_number(node.probability, 4), node.step,
                          node.step == 1 ? said("token") : said("tokens"), node.sum);
    if (node.place) tip += say("\nfinished text {}: score {:.4f}", *node.place + 1, node.score);
    scene_.add({Box{{x, y - row_ / 2 + 2, width, row_ - 4},
                    ground,
                    frame,
                    frame.a == 0 ? 0
                    : way        ? 1.5
                                 : 1,
                    4},
                fmt::format("node.{}", i), tip + said("\nclick to look at this text"), Part{i}});
    const Color ink = kept || finished || way ? t_.text : t_.muted;
    text({x + 8, y + half_capital(t_.token())},
         elided(printable(node.label), t_.token(), label_of(node.step), style_.measure), t_.token(), ink);
    text({x + width - 7, y + half_capital(t_.number())}, share(node.probability), t_.number(),
         kept || finished || way ? t_.muted : t_.faint, Anchor::end);
    const double behind = x + width + 5;
    if (finished) end_mark(behind, y);
    if (node.place) {
      const std::string said = std::to_string(*node.place + 1);
      const double high = std::round(16 * t_.text_scale), wide = style_.measure.width(said, t_.badge()) + 4;
      // Lines between other nodes pass here.
      scene_.add({Box{{behind + 6, y - high / 2, wide, high}, t_.background, {0, 0, 0, 0}, 0, 3}, "", ""});
      text({behind + 8, y + half_capital(t_.badge())}, said, t_.badge(), t_.text);
    }
    if (node.fate == Fate::dropped) cross(behind + 3, y);
  }

  void end_mark(double x, double y) {
    const double half = row_ / 2 - 5;
    scene_.add({Box{{x, y - half, 3, 2 * half}, t_.value, {0, 0, 0, 0}, 0, 0}, "", ""});
  }
  void cross(double x, double y) {
    for (const double way : {-1.0, 1.0})
      scene_.add({Line{{{x - 3, y - 3 * way}, {x + 3, y + 3 * way}}, t_.faint, 1.25}, "", ""});
  }

  /// Returns its right edge.
  double legend(double y) {
    double x = beam_margin;
    const auto word = [&](double from, const char* said) {
      text({from, y + half_capital(t_.caption())}, said, t_.caption(), t_.muted);
      x = from + style_.measure.width(said, t_.caption()) + 18;
    };
    const double half = std::round(5 * t_.text_scale);
    scene_.add({Box{{x, y - half, 18, 2 * half}, mix(t_.background, t_.muted, 0.16), t_.faint, 1, 3}, "", ""});
    word(x + 24, said("kept"));
    scene_.add({Box{{x, y - half, 18, 2 * half}, mix(t_.background, t_.muted, 0.16), t_.value, 1, 3}, "", ""});
    scene_.add({Box{{x + 21, y - half, 3, 2 * half}, t_.value, {0, 0, 0, 0}, 0, 0}, "", ""});
    word(x + 30, said("finished, with its place"));
    if (o_.dropped) {
      cross(x + 4, y);
      word(x + 13, said("dropped"));
    }
    scene_.add({Line{{{x, y}, {x + 18, y}}, t_.faint, heaviest_line / 2}, "", ""});
    word(x + 24, said("as heavy as the token is probable"));
    return x - 18;
  }

  void text(Point at, std::string words, const Font& font, Color color, Anchor anchor = Anchor::start) {
    scene_.add({Text{at, std::move(words), font, color, anchor, 0}, "", ""});
  }

  Scene& scene_;
  const BeamTreeOptions& o_;
  const Style& style_;
  const Theme& t_;
  struct TreeColumn {
    double x, width, label;
  };
  std::vector<TreeColumn> columns_;  // by step; 0: the prompt
  double row_ = 26, number_width_ = 0, top_ = 0;
  int steps_ = 0, most_rows_ = 1;
  std::vector<std::size_t> way_;
  std::vector<double> y_;  // middle of each node
};

}  // namespace

Scene beam_tree_scene(const BeamTreeOptions& options, const Style& style) {
  Scene scene;
  const Theme& theme = style.theme;
  scene.background = theme.background;
  scene.title = said("beam search");
  scene.description = options.caption;
  double top = beam_margin;
  if (options.titled) {
    top = std::round(30 * theme.text_scale);
    scene.add({Text{{beam_margin, top - 6}, said("Beam search"), theme.title(), theme.text, Anchor::start, 0}, "", ""});
    if (!options.caption.empty()) {
      top += std::round(18 * theme.text_scale);
      scene.add(
          {Text{{beam_margin, top - 6}, options.caption, theme.caption(), theme.muted, Anchor::start, 0}, "", ""});
    }
    top += 6;
  }
  for (const BeamTreeNode& node : options.nodes) {
    if (scene.series.size() < static_cast<std::size_t>(node.step))
      scene.series.push_back({fmt::format("sum of ln p by rank, step {}", node.step), {}, {}, {}});
    SceneSeries& series = scene.series.back();
    series.x.push_back(static_cast<double>(series.x.size() + 1));
    series.y.push_back(node.sum);
    series.labels.push_back(node.label);
  }
  const Point corner = TreePainter(scene, options, style).paint(top);
  scene.width = std::ceil(corner.x);
  if (options.titled && !options.caption.empty())
    scene.width =
        std::max(scene.width, std::ceil(2 * beam_margin + style.measure.width(options.caption, theme.caption())));
  scene.height = std::ceil(corner.y);
  return scene;
}

}  // namespace headscope
