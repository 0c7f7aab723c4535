#include "viz/export/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

}  // namespace

void write_map_csv(std::ostream& out, const Trace& trace, int layer, int head) {
  const AttentionMap& map = map_of(trace, layer, head);
  out << "query,token";
  for (Index k = 0; k < map.n_key(); ++k) out << ',' << quoted(fmt::format("{} {}", k, token_label(trace, k)));
  out << '\n';
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  for (Index q = 0; q < map.n_query(); ++q) {
    map.row(q, row);
    const Index position = map.place().offset + q;
    out << position << ',' << quoted(token_label(trace, position));
    for (Index k = 0; k < map.n_key(); ++k) {
      out << ',';
      if (!map.masked(q, k)) out << fmt::format("{}", row[static_cast<std::size_t>(k)]);
    }
    out << '\n';
  }
}

namespace {

/// What the picture writes beside row or column `index` of its heatmap.
std::string label_in(const Scene& scene, std::initializer_list<const char*> axes, Index index) {
  for (const char* axis : axes)
    if (const Mark* mark = find(scene, fmt::format("{}.{}", axis, index)))
      if (const auto* text = std::get_if<Text>(&mark->shape)) return text->text;
  return "";
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

}  // namespace

void write_scene_csv(std::ostream& out, const Scene& scene) {
  out << "part,row,row_label,column,column_label,value,text\n";
  const auto maps =
      std::ranges::count_if(scene.marks, [](const Mark& mark) { return std::holds_alternative<Heatmap>(mark.shape); });
  for (const Mark& mark : scene.marks) {
    const auto* map = std::get_if<Heatmap>(&mark.shape);
    if (!map) {
      if (!mark.id.empty() && !mark.tooltip.empty()) out << quoted(mark.id) << ",,,,,," << quoted(mark.tooltip) << '\n';
      continue;
    }
    std::vector<std::string> columns;
    for (Index c = 0; c < map->columns(); ++c)
      columns.push_back(maps == 1 ? quoted(label_in(scene, {"column", "label.key"}, c)) : "");
    for (Index r = 0; r < map->rows(); ++r) {
      const std::string row = maps == 1 ? quoted(label_in(scene, {"row", "label.query"}, r)) : "";
      for (Index c = 0; c < map->columns(); ++c) {
        const float value = map->values.at(r, c);
        const bool told = !map->is_masked(r, c) && std::isfinite(value);
        out << quoted(mark.id) << ',' << r << ',' << row << ',' << c << ',' << columns[static_cast<std::size_t>(c)]
            << ',' << (told ? fmt::format("{}", value) : "") << ",\n";
      }
    }
  }
  for (const SceneSeries& series : scene.series)
    for (std::size_t i = 0; i < series.y.size(); ++i)
      out << quoted(series.title) << ',' << i << ',' << (series.labels.empty() ? "" : quoted(series.labels[i])) << ','
          << number(series.x[i]) << ",," << number(series.y[i]) << ",\n";
}

void write_scene_csv(const std::filesystem::path& path, const Scene& scene) {
  write_file_atomically(path, [&](std::ostream& out) { write_scene_csv(out, scene); });
}

void write_map_csv(const std::filesystem::path& path, const Trace& trace, int layer, int head) {
  map_of(trace, layer, head);  // an unknown head is reported before the file system is touched
  write_file_atomically(path, [&](std::ostream& out) { write_map_csv(out, trace, layer, head); });
}

}  // namespace headscope
