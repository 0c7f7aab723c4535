#pragma once
// Token labels along a side of a map. Where there is room every token is named; where there is not, every k-th with its
// position, k a round number. Top labels lie flat, lean or stand, whichever needs the least room and stays readable.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/trace/trace.h"
#include "viz/scene/scene.h"
#include "viz/scene/text_measure.h"
#include "viz/scene/theme.h"

namespace headscope {

/// What a builder needs to know to set type: the theme, and who measures. Both outlive the call.
struct Style {
  const Theme& theme;
  const TextMeasure& measure;
};

struct AxisLabel {
  Index position = 0;        ///< token
  double center = 0;         ///< middle of its cell, from the map's edge
  std::string text, number;  ///< number: its position, only where labels are thinned out
  double text_width = 0, number_width = 0;
};

struct AxisPlan {
  Font font;
  double degrees = 0;       ///< 0, −52 or −90
  Index every = 1;          ///< labels name every k-th token
  double number_width = 0;  ///< room for the widest number and its gap; 0 without numbers
  double depth = 0;         ///< room across the axis, gap to the map included
  double overhang = 0;      ///< how far labels reach past the map's far end (below a picture: past its near end)
  std::vector<AxisLabel> labels;
  std::optional<Index> marked;  ///< position whose label stands out
};

struct AxisTokens {
  const Trace& trace;
  Index first = 0, count = 0;          ///< positions first … first + count − 1
  Index bin = 1;                       ///< tokens in a cell
  double cell = 0;                     ///< logical pixels along the axis
  std::optional<Index> marked;         ///< always named
  std::optional<double> longest = {};  ///< logical pixels; longer labels are elided (by default at max_label_width)
  bool queries = false;                ///< positions are the queries', which may be of another text
  std::string label(Index position) const;
};

inline constexpr double max_label_width = 130;  ///< times the theme's text_scale

AxisPlan plan_side_axis(const AxisTokens& tokens, const Style& style);
AxisPlan plan_top_axis(const AxisTokens& tokens, const Style& style);
AxisPlan plan_bottom_axis(const AxisTokens& tokens, const Style& style);

/// How far labels of these tokens may reach from the map at most, whichever of them are named: what a picture keeps
/// free so that nothing moves when another token is marked. `plan`: of the same tokens.
double full_depth(const AxisPlan& plan, const AxisTokens& tokens, const Style& style);

/// The label of a row or a column that is pointed at, where the axis would write it whether or not it does, and the
/// ground under it that hides its neighbours.
struct PointedLabel {
  Text text;
  std::array<Point, 4> ground;
};
/// `like`: any label of that axis, for its type and slant; `edge`: the point of the map's left or upper edge in the
/// middle of the row or column; `room`: how long the label may be, logical pixels.
PointedLabel point_beside(const Text& like, Point edge, const std::string& label, double room, Color color,
                          const Style& style);
PointedLabel point_above(const Text& like, Point edge, const std::string& label, double room, Color color,
                         const Style& style);

enum class Side { left, right };

/// `id`: "query" or "key"; label ids are "label.<id>.<position>". Labels stand left or right of x, above y, below y;
/// `maps` as in LabelOf.
void add_side_axis(Scene& scene, const AxisPlan& plan, double x, double y, const std::string& id, Color marked,
                   const Style& style, Side side = Side::left, const std::string& maps = "");
void add_bottom_axis(Scene& scene, const AxisPlan& plan, double x, double y, const std::string& id, Color marked,
                     const Style& style);
void add_top_axis(Scene& scene, const AxisPlan& plan, double x, double y, const std::string& id, Color marked,
                  const Style& style, const std::string& maps = "");

}  // namespace headscope
