#pragma once
// A picture as a plain value: what builders return, what the PNG and SVG printers and the window consume. Lengths are
// logical pixels (1/96 inch on paper), y grows downwards, marks are drawn in order. A scene knows nothing of font
// files, devices or windows, and holds no pointer that its shared tensors and the built-in colormaps do not keep alive.
// Thread rule: a value; const access from any thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "viz/color/color.h"
#include "viz/scene/geometry.h"
#include "viz/scene/heatmap.h"
#include "viz/scene/meaning.h"

namespace headscope {

enum class FontRole {
  ui,    ///< proportional: "Inter", then any sans
  mono,  ///< tokens and numbers: "JetBrains Mono", then any monospaced
};

struct Font {
  FontRole role = FontRole::ui;
  double size = 12;  ///< em, logical pixels
  int weight = 400;  ///< 400 regular, 600 semi-bold
  bool operator==(const Font&) const = default;
};

enum class Anchor { start, middle, end };

/// One line of text. `at` is the point on the baseline that the anchor names; the line turns about it by `degrees`
/// (positive = clockwise on screen). Valid UTF-8 without control characters (see printable()). Digits are tabular.
struct Text {
  Point at;
  std::string text;
  Font font;
  Color color;
  Anchor anchor = Anchor::start;
  double degrees = 0;
};

struct Box {
  Rect rect;
  Color fill{0, 0, 0, 0};
  Color stroke{0, 0, 0, 0};
  double stroke_width = 0;  ///< drawn centred on the edge
  double radius = 0;        ///< of the corners
};

struct Line {
  std::vector<Point> points;
  Color color;
  double width = 1;
};

/// Cubic Bézier curve.
struct Curve {
  Point from, control_from, control_to, to;
  Color color;
  double width = 1;
};

/// A picture made of pixels, stretched over `rect`: straight alpha, row by row, 4 bytes a pixel.
struct Pixels {
  Rect rect;
  int width = 0, height = 0;
  std::shared_ptr<const std::vector<std::uint8_t>> rgba;
  bool smooth = false;  ///< between pixels; else every pixel is a flat rectangle
};

struct Mark {
  std::variant<Box, Line, Curve, Text, Heatmap, Pixels> shape;
  std::string id;       ///< stable name, "map", "label.key.3"; "" = decoration
  std::string tooltip;  ///< what the number is and where it comes from; "" = none
  Meaning meaning = {};
};

/// Numbers that the shapes of a chart no longer tell: a line's values, points.
struct SceneSeries {
  std::string title;
  std::vector<double> x, y;         ///< equally long
  std::vector<std::string> labels;  ///< of the values; empty = none
};

/// Words and numbers in rows: of a picture that is a table.
struct SceneTable {
  std::vector<std::string> columns;            ///< titles
  std::vector<std::vector<std::string>> rows;  ///< each as long as `columns`
};

struct Scene {
  double width = 0, height = 0;
  Color background;
  std::string title;        ///< for the file's metadata and for readers who cannot see
  std::string description;  ///< provenance: model, site, text, how it was computed
  std::string recipe;       ///< how to make it again (app/state/picture_recipe.h); "" = nobody said
  std::vector<Mark> marks;
  std::vector<SceneSeries> series;  ///< for who wants the numbers
  std::optional<SceneTable> table;  ///< then the picture is this table, and nothing else

  Mark& add(Mark mark) { return marks.emplace_back(std::move(mark)); }
};

/// The mark with this id, or nullptr.
const Mark* find(const Scene& scene, std::string_view id);
/// The topmost mark that means this, or nullptr.
const Mark* mark_of(const Scene& scene, const Meaning& meaning);

/// What the mark stands for, if that is a T; nullptr when it is not, or there is no mark.
template <class T>
const T* meaning(const Mark* mark) {
  return mark ? std::get_if<T>(&mark->meaning) : nullptr;
}

}  // namespace headscope
