#pragma once
// Pictures of a trace with the classes of its heads on them, written to PNG or SVG by the file's ending.

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/report.h"
#include "viz/export/raster.h"
#include "viz/scene/furniture.h"
#include "viz/scene/head_grid.h"
#include "viz/scene/scene.h"

namespace headscope::cli {

/// The strongest class with score and chance, in the hue of the class; empty for a head without class.
Badge badge_of(const std::vector<HeadReport>& heads, int layer, int head);
/// The strongest class of every head, for the grid.
std::vector<HeadMark> marks_of(const std::vector<HeadReport>& heads);
/// ("Entropy", "0.94 nats") and the like, for the title block of one head.
std::vector<std::pair<std::string, std::string>> facts_of(const std::vector<HeadReport>& heads, const Trace& trace,
                                                          int layer, int head);

enum class FileKind { png, svg, csv };
/// By the ending. Throws UsageError on any other.
FileKind kind_of_file(const std::filesystem::path& path);
/// Returns what was written, "head.png  1280 × 960 pixels".
std::string write_picture(const Scene& scene, const std::filesystem::path& path, const OutputSize& size);

}  // namespace headscope::cli
