#pragma once
// SVG 1.1: text stays text (selectable, searchable, restyled by its font family), small heatmaps are one rectangle a
// cell, large ones an embedded PNG of whole cells. Opens in browsers, Inkscape, Illustrator and LaTeX tool chains
// alike: no script, no style sheet, no external file.

#include <filesystem>
#include <string>
#include <string_view>

#include "viz/export/raster.h"

namespace headscope {

/// A heatmap with more cells than this is embedded as PNG; so are all when a scene's small ones have too many together.
inline constexpr Index svg_cells_per_map = 4096, svg_cells_per_scene = 20000;

/// What the recipe stands behind in a file, up to </metadata>.
inline constexpr std::string_view svg_recipe_begin = "<metadata id=\"headscope-recipe\">";

/// The document, UTF-8. `size` sets width and height as they will be shown or printed; the drawing is the same.
std::string encode_svg(const Scene& scene, const OutputSize& size = {});

/// The file appears whole or not at all. Throws Error (size not positive, file system).
void write_svg(const std::filesystem::path& path, const Scene& scene, const OutputSize& size = {});

}  // namespace headscope
