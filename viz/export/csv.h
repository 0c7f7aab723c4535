#pragma once
// The numbers behind a picture, for spreadsheets and data frames (RFC 4180, UTF-8).

#include <filesystem>
#include <iosfwd>

#include "core/trace/trace.h"

namespace headscope {

/// One line per query: position, token label, then one weight per key. The header names every key, "3 ␣John". Weights
/// are the shortest decimals that read back as the same float; a masked cell is empty. Streams row by row, so length
/// costs no memory. Throws Error when the trace has no such map.
void write_map_csv(std::ostream& out, const Trace& trace, int layer, int head);
/// The file appears whole or not at all.
void write_map_csv(const std::filesystem::path& path, const Trace& trace, int layer, int head);

}  // namespace headscope
