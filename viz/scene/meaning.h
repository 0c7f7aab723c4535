#pragma once
// What a mark stands for, as a value: what a click selects, what a key walks to, what a table writes beside numbers.
// A mark's id is its name in files and tests; nobody reads a meaning out of it.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/head_id.h"

namespace headscope {

/// Cells of which each row belongs to a head.
struct HeadRows {
  std::vector<HeadId> heads;  ///< (row)
  bool operator==(const HeadRows&) const = default;
};

/// A token by its position in the text; of two texts, 0 or 1 says in which.
struct TokenAt {
  Index position = 0;
  int text = 0;
  bool operator==(const TokenAt&) const = default;
};

/// A token of the vocabulary.
struct VocabularyToken {
  std::int32_t id = 0;
  bool operator==(const VocabularyToken&) const = default;
};

/// One of several alike in a picture: the third strip, the matrix of the second method.
struct Part {
  std::size_t index = 0;
  bool operator==(const Part&) const = default;
};

/// The title of the matrix with this id, which folds and opens it.
struct TitleOf {
  std::string matrix;
  bool operator==(const TitleOf&) const = default;
};

/// What is written beside a row or above a column of heatmaps.
struct LabelOf {
  enum Axis { row, column } axis = row;
  Index index = 0;        ///< what the row or column stands for (Heatmap::first_row)
  std::string maps = {};  ///< how the ids of these heatmaps begin; "" = all of the picture
  bool operator==(const LabelOf&) const = default;
};

/// The line of an axis at this value.
struct AxisLevel {
  double value = 0;
  bool operator==(const AxisLevel&) const = default;
};

/// The ground of a chart of which a click chooses a place along x.
struct PlotArea {
  double low = 0, high = 1;  ///< x at its left and right edge
  bool log = false;
  std::vector<double> stops = {};   ///< the values that lines have, rising
  double x_at(double share) const;  ///< share: 0 at the left edge, 1 at the right
  double share_of(double x) const;
  bool operator==(const PlotArea&) const = default;
};

/// Helps to read a picture and is none of its numbers.
enum class Aside { color_bar, minimap };

using Meaning = std::variant<std::monostate, HeadId, HeadRows, TokenAt, VocabularyToken, Part, TitleOf, LabelOf,
                             AxisLevel, PlotArea, Aside>;

}  // namespace headscope
