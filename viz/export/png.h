#pragma once
// PNG: encoding of images, and scenes straight to files. The file states its resolution (pHYs), its colour space
// (sRGB), its title and where its numbers come from (iTXt).

#include <filesystem>
#include <string>
#include <string_view>

#include "viz/export/raster.h"

namespace headscope {

struct FileNote {
  std::string title, description, recipe = {};  ///< "" = left out
};
inline constexpr const char* png_recipe_key = "Headscope";  ///< of the chunk that holds the recipe

/// Opaque images are written without alpha. Throws Error when libpng reports a failure.
std::string encode_png(const Image& image, double dpi = 96, const FileNote& note = {});

/// Everything before its first pixels: what it says of itself.
std::string_view png_head(std::string_view png);
/// What stands in the chunks of one type, "IDAT", joined; "" where there are none, or this is no PNG.
std::string png_chunks(std::string_view png, std::string_view type);

/// Draws and writes; the file appears whole or not at all. Throws Error (size limits, file system). Returns what was
/// written.
PixelSize write_png(const std::filesystem::path& path, const Scene& scene, const OutputSize& size = {});

}  // namespace headscope
