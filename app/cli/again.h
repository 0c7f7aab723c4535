#pragma once
// A picture drawn once more, or a capture made once more, from what its file remembers.

#include <filesystem>

#include "app/cli/console.h"

namespace headscope::cli {

/// Draws what `picture`, a .png, .svg, .pdf or .csv, or a film, with its recipe, shows, into `out`, and says whether it
/// is the same; with
/// "" for `out` that alone. What only the window draws is left to its program (window_program.h). Throws Error where
/// the file has no recipe, and where without `out` the picture is another now.
void draw_again(Console& console, const std::filesystem::path& picture, const std::filesystem::path& out);

/// The same of a capture: its command once more, and whether every tensor is as it was, to the byte.
void capture_again(Console& console, const std::filesystem::path& file, const std::filesystem::path& out);

}  // namespace headscope::cli
