#pragma once
// Words and numbers in rows, as a picture: what a page lists, for a file.

#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct Table {
  static constexpr std::size_t most = 200;  ///< rows that are drawn; the last line says how many more there are
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `columns`
};

/// A number as a cell: the shortest decimal that reads back as the same; "" when there is none.
std::string number_cell(double value);
std::string number_cell(float value);

/// Columns of numbers end level, others begin level. Scene::table holds every row.
Scene table_scene(Table table, const Style& style);

}  // namespace headscope
