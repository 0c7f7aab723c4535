#pragma once
// PDF 1.4 (ISO 32000-1): everything of a scene as vectors, text as text in fonts that the file holds, small heatmaps
// one rectangle a cell, large ones an image of whole cells. The same scene gives the same bytes.

#include <filesystem>
#include <string>
#include <string_view>

#include "viz/export/raster.h"

namespace headscope {

/// Behind which the recipe stands in the dictionary that says what the file is. A line of its own: within a string none
/// begins.
inline constexpr std::string_view pdf_recipe_begin = "\n   /Headscope (";

/// One page as large as the scene. `size` sets its width as for SVG; the drawing is the same. Throws Error (size not
/// positive or beyond pixel_size()'s limits, or what cairo reports).
std::string encode_pdf(const Scene& scene, const OutputSize& size = {});

/// What the pages show: the file without what it says of itself.
std::string_view pdf_drawing(std::string_view pdf);

/// The file appears whole or not at all. Throws Error as above, and from the file system.
void write_pdf(const std::filesystem::path& path, const Scene& scene, const OutputSize& size = {});

}  // namespace headscope
