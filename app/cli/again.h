#pragma once
// A picture drawn once more, from what its file remembers.

#include <filesystem>

#include "app/cli/console.h"

namespace headscope::cli {

/// Draws what `picture`, a .png, .svg, .pdf or .csv, or a film, with its recipe, shows, into `out`, and says whether it
/// is the same; with
/// "" for `out` that alone. Throws Error where the file has no recipe, where the recipe is of a page of the window, and
/// where without `out` the picture is another now.
void draw_again(Console& console, const std::filesystem::path& picture, const std::filesystem::path& out);

}  // namespace headscope::cli
