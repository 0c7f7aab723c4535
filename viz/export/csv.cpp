#include "viz/export/csv.h"

#include <fmt/format.h>

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

void write_map_csv(const std::filesystem::path& path, const Trace& trace, int layer, int head) {
  map_of(trace, layer, head);  // an unknown head is reported before the file system is touched
  write_file_atomically(path, [&](std::ostream& out) { write_map_csv(out, trace, layer, head); });
}

}  // namespace headscope
