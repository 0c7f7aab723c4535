#include "viz/export/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <ranges>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/nth.h"
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

void write_map_csv(std::ostream& out, const Trace& trace, HeadId head) {
  const AttentionMap& map = map_of(trace, head);
  out << "query,token";
  for (Index k = 0; k < map.n_key(); ++k) out << ',' << quoted(fmt::format("{} {}", k, token_label(trace, k)));
  out << '\n';
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  for (Index q = 0; q < map.n_query(); ++q) {
    map.row(q, row);
    const Index position = map.place().offset + q;
    out << position << ',' << quoted(query_label(trace, position));
    for (Index k = 0; k < map.n_key(); ++k) {
      out << ',';
      if (!map.masked(q, k)) out << fmt::format("{}", nth(row, k));
    }
    out << '\n';
  }
}

namespace {

/// What the picture writes beside rows and columns of its heatmaps.
class Labels {
 public:
  explicit Labels(const Scene& scene) {
    for (const Mark& mark : scene.marks)
      if (const auto* label = meaning<LabelOf>(&mark))
        texts_[{label->axis, label->index}].emplace(label->maps, &std::get<Text>(mark.shape).text);
  }

  /// The one that was written for the fewest maps, this among them; "" = none.
  std::string of(const std::string& map, LabelOf::Axis axis, Index index) const {
    const auto labels = texts_.find({axis, index});
    if (labels == texts_.end()) return "";
    for (const auto& [maps, text] : labels->second | std::views::reverse)  // longer names after their beginnings
      if (map.starts_with(maps)) return *text;
    return "";
  }

 private:
  std::map<std::pair<LabelOf::Axis, Index>, std::map<std::string, const std::string*>> texts_;
};

std::string exact(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

void write_cells(std::ostream& out, const std::string& id, const Heatmap& map, const Labels& labels) {
  std::vector<std::string> columns;
  for (Index c = 0; c < map.columns(); ++c) {
    const Index stands_for = map.first_column + c * map.column_bin;
    columns.push_back(fmt::format("{},{}", stands_for, quoted(labels.of(id, LabelOf::column, stands_for))));
  }
  for (Index r = 0; r < map.rows(); ++r) {
    const Index stands_for = map.first_row + r * map.row_bin;
    const std::string row =
        fmt::format("{},{},{}", quoted(id), stands_for, quoted(labels.of(id, LabelOf::row, stands_for)));
    for (Index c = 0; c < map.columns(); ++c) {
      const float value = map.values.at(r, c);
      const bool told = !map.is_masked(r, c) && std::isfinite(value);
      out << row << ',' << nth(columns, c) << ',' << (told ? fmt::format("{}", value) : "") << ",\n";
    }
  }
}

void write_table(std::ostream& out, const SceneTable& table) {
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) out << (i ? "," : "") << quoted(cells[i]);
    out << '\n';
  };
  line(table.columns);
  for (const auto& row : table.rows) line(row);
}

}  // namespace

void write_scene_csv(std::ostream& out, const Scene& scene) {
  if (scene.table) return write_table(out, *scene.table);
  out << "part,row,row_label,column,column_label,value,text\n";
  const Labels labels(scene);
  std::unordered_set<std::string> said;  // a bar and its place say the same: once is enough
  for (const Mark& mark : scene.marks) {
    if (const auto* map = std::get_if<Heatmap>(&mark.shape)) {
      if (!meaning<Aside>(&mark)) write_cells(out, mark.id, *map, labels);
      continue;
    }
    if (mark.id.empty() || mark.tooltip.empty()) continue;
    const auto* words = std::get_if<Text>(&mark.shape);  // a number that is written out: "‖x‖ 3.21"
    const std::string fields = fmt::format("{},,,,{}", words ? quoted(words->text) : "", quoted(mark.tooltip));
    if (said.insert(fields).second) out << quoted(mark.id) << ",," << fields << '\n';
  }
  for (const SceneSeries& series : scene.series)
    for (std::size_t i = 0; i < series.y.size(); ++i)
      out << quoted(series.title) << ',' << i << ',' << (series.labels.empty() ? "" : quoted(series.labels[i])) << ','
          << exact(series.x[i]) << ",," << exact(series.y[i]) << ",\n";
}

void write_scene_csv(const std::filesystem::path& path, const Scene& scene) {
  write_file_atomically(path, [&](std::ostream& out) { write_scene_csv(out, scene); });
}

void write_map_csv(const std::filesystem::path& path, const Trace& trace, HeadId head) {
  map_of(trace, head);  // an unknown head is reported before the file system is touched
  write_file_atomically(path, [&](std::ostream& out) { write_map_csv(out, trace, head); });
}

std::string tab_separated(const std::string& csv) {
  std::string out;
  out.reserve(csv.size());
  bool quoted = false;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const char c = csv[i];
    if (c == '"' && quoted && i + 1 < csv.size() && csv[i + 1] == '"')
      out += csv[i++];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out += '\t';
    else if (c == '\r' && !quoted)
      continue;
    else
      out += quoted && (c == '\t' || c == '\n' || c == '\r') ? ' ' : c;
  }
  return out;
}

}  // namespace headscope
