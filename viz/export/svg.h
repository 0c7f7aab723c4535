#pragma once
// SVG 1.1: text stays text (selectable, searchable, restyled by its font family), small heatmaps are one rectangle a
// cell, large ones an embedded PNG of whole cells. Opens in browsers, Inkscape, Illustrator and LaTeX tool chains
// alike: no script, no style sheet, no external file.

#include <filesystem>
#include <string>
#include <string_view>

#include "viz/export/raster.h"

namespace headscope {

/// What the recipe stands behind in a file, up to </metadata>.
inline constexpr std::string_view svg_recipe_begin = "<metadata id=\"headscope-recipe\">";

/// The document, UTF-8. `size` sets width and height as they will be shown or printed; the drawing is the same.
std::string encode_svg(const Scene& scene, const OutputSize& size = {});

/// The file appears whole or not at all. Throws Error (size not positive, file system).
void write_svg(const std::filesystem::path& path, const Scene& scene, const OutputSize& size = {});

}  // namespace headscope
