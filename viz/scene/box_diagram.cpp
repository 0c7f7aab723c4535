#include "viz/scene/box_diagram.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "viz/scene/arrow.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

class BoxDiagramPicture {
 public:
  BoxDiagramPicture(const BoxDiagram& diagram, const Style& style)
      : diagram_(diagram), style_(style), t_(style.theme), scale_(style.theme.text_scale) {
    double last_column = 0, last_row = 0, widest = 0;
    for (const DiagramBox& box : diagram.boxes) {
      last_column = std::max(last_column, box.column);
      last_row = std::max(last_row, box.row + (box.rows - 1) / 2);
      for (const auto& [text, font] : {std::pair{box.text, t_.body()}, {box.number, t_.number()}})
        widest = std::max(widest, style.measure.width(text, font));
    }
    wide_ = std::ceil(widest) + 16 * scale_;
    head_ = diagram.title.empty() ? 0 : std::round(36 * scale_);
    row_step_ = std::max((diagram.height - head_) / (last_row + 1), 46 * scale_);
    column_step_ = last_column > 0 ? std::min((diagram.width - wide_ - 2) / last_column, wide_ + 230 * scale_) : 0;
    scene_.background = t_.background;
    scene_.width = diagram.width;
    scene_.height = std::ceil(head_ + row_step_ * (last_row + 1));
    scene_.title = diagram.title;
  }

  Scene made() {
    Font strong = t_.body();
    strong.weight = 600;
    write({0, std::round(14 * scale_)}, diagram_.title, strong, t_.text, Anchor::start, diagram_.width, "title");
    write({0, std::round(29 * scale_)}, diagram_.remark, t_.caption(), t_.muted, Anchor::start, diagram_.width);
    SceneSeries numbers{diagram_.title, {}, {}, {}};
    for (const DiagramArrow& each : diagram_.arrows) {
      arrow(each);
      for (const DiagramNumber& number : each.numbers) {
        numbers.x.push_back(static_cast<double>(numbers.x.size()));
        numbers.y.push_back(number.value);
        numbers.labels.push_back(number.label);
      }
    }
    for (const DiagramBox& each : diagram_.boxes) box(each);
    if (!numbers.y.empty()) scene_.series.push_back(std::move(numbers));
    return std::move(scene_);
  }

 private:
  void write(Point at, const std::string& text, const Font& font, Color color, Anchor anchor, double room,
             std::string id = "", const std::string& tooltip = "") {
    if (text.empty()) return;
    scene_.add({Text{at, elided(text, font, room, style_.measure), font, color, anchor, 0}, std::move(id), tooltip});
  }
  Rect rect(const DiagramBox& box) const {
    const double tall = row_step_ * (box.rows - 1) + std::round(40 * scale_);
    const Point middle{1 + wide_ / 2 + column_step_ * box.column, head_ + row_step_ * (box.row + 0.5)};
    return {middle.x - wide_ / 2, middle.y - tall / 2, wide_, tall};
  }
  const DiagramBox* of(const std::string& id) const {
    const auto found = std::ranges::find(diagram_.boxes, id, &DiagramBox::id);
    return found == diagram_.boxes.end() ? nullptr : &*found;
  }

  void box(const DiagramBox& box) {
    const Rect r = rect(box);
    const bool plain = box.kind == DiagramBox::Kind::value;
    const Color hue = box.kind == DiagramBox::Kind::attention ? t_.query
                      : box.kind == DiagramBox::Kind::memory  ? t_.value
                                                              : t_.accent;
    scene_.add({Box{r, plain ? t_.background : mix(hue, t_.background, 0.8),
                    plain ? t_.line : mix(hue, t_.background, 0.35), 1, 5},
                "box." + box.id, box.tooltip});
    const Point middle = r.center();
    const double apart = box.number.empty() ? 0 : std::round(8 * scale_);
    write({middle.x, middle.y - apart + half_capital(t_.body())}, box.text, t_.body(), t_.text, Anchor::middle, wide_);
    write({middle.x, middle.y + apart + half_capital(t_.number())}, box.number, t_.number(), t_.muted, Anchor::middle,
          wide_, "box." + box.id + ".number", box.tooltip);
  }

  void arrow(const DiagramArrow& each) {
    const DiagramBox *a = of(each.from), *b = of(each.to);
    if (!a || !b) return;
    const Rect from = rect(*a), to = rect(*b);
    const std::string id = "arrow." + each.id;
    const Color color =
        b->kind == DiagramBox::Kind::memory || a->kind == DiagramBox::Kind::memory ? t_.value : t_.muted;
    const double line = std::round(13 * scale_), above = std::round(5 * scale_);
    const auto words = [&](Point at, Anchor anchor, double room, bool number_below_line) {
      write({at.x, at.y}, each.words, t_.caption(), t_.muted, anchor, room, id + ".words", each.tooltip);
      write({at.x, at.y + (number_below_line ? line + above + 2 : line)}, each.number, t_.number(), t_.text, anchor,
            room, id + ".number", each.tooltip);
    };
    if (std::abs(a->column - b->column) < 1e-9) {  // upright
      const double x = from.center().x + each.lane * wide_ / 4;
      const bool down = from.center().y < to.center().y;
      const double y0 = down ? from.bottom() : from.y, y1 = down ? to.y - 2 : to.bottom() + 2;
      add_arrow(scene_, {{x, y0}, {x, y1}}, color, 1.5, id, each.tooltip);
      const double room = std::max(column_step_ - wide_ / 2 - 12, wide_ / 2);
      words({x + (each.lane < 0 ? -7 : 7), (y0 + y1) / 2 - 2}, each.lane < 0 ? Anchor::end : Anchor::start, room,
            false);
      return;
    }
    const bool right = a->column < b->column;
    const double x0 = right ? from.right() : from.x;
    if (std::abs(a->row - b->row) < std::max(a->rows, b->rows) / 2) {  // level, at the height of the smaller one
      const double y = (a->rows <= b->rows ? from : to).center().y, x1 = right ? to.x - 2 : to.right() + 2;
      add_arrow(scene_, {{x0, y}, {x1, y}}, color, 1.5, id, each.tooltip);
      words({(x0 + x1) / 2, y - above}, Anchor::middle, std::abs(x1 - x0) - 6, true);
      return;
    }
    const double y = from.center().y, x = to.center().x;
    const bool down = from.center().y < to.center().y;
    add_arrow(scene_, {{x0, y}, {x, y}, {x, down ? to.y - 2 : to.bottom() + 2}}, color, 1.5, id, each.tooltip);
    words({(x0 + x) / 2, y - above}, Anchor::middle, std::abs(x - x0) - 6, true);
  }

  const BoxDiagram& diagram_;
  const Style& style_;
  const Theme& t_;
  double scale_, wide_ = 0, head_ = 0, row_step_ = 0, column_step_ = 0;
  Scene scene_;
};

}  // namespace

Scene box_diagram_scene(const BoxDiagram& diagram, const Style& style) {
  return BoxDiagramPicture(diagram, style).made();
}

}  // namespace headscope
