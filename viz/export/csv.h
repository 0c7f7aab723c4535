#pragma once
// The numbers behind a picture, for spreadsheets and data frames (RFC 4180, UTF-8).

#include <filesystem>
#include <iosfwd>
#include <string>

#include "core/trace/trace.h"
#include "viz/scene/scene.h"

namespace headscope {

/// One line per query: position, token label, then one weight per key. The header names every key, "3 ␣John". Weights
/// are the shortest decimals that read back as the same float; a masked cell is empty. Streams row by row, so length
/// costs no memory. Throws Error when the trace has no such map.
void write_map_csv(std::ostream& out, const Trace& trace, HeadId head);
/// The numbers that any picture shows, one per line: part, row, row_label, column, column_label, value, text.
/// A heatmap: its cells, by what they stand for (Heatmap::first_row, first_column, row_bin, column_bin), with the
/// labels that the picture writes; masked cells have no value, colour bars and the small map beside a part of it are
/// left out. A chart's series: row is the place in it, column what stands on the x axis. Every other mark that has a
/// tooltip: its text, and as row_label the words it is drawn with; what two marks say alike is said once. A picture
/// that is a table (Scene::table): that table instead.
void write_scene_csv(std::ostream& out, const Scene& scene);
void write_scene_csv(const std::filesystem::path& path, const Scene& scene);

/// The same lines with tabs between their cells and no quotes, as spreadsheets paste them: tabs and line breaks inside
/// a cell become blanks.
std::string tab_separated(const std::string& csv);

/// The file appears whole or not at all.
void write_map_csv(const std::filesystem::path& path, const Trace& trace, HeadId head);

}  // namespace headscope
