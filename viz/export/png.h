#pragma once
// PNG: encoding of images, and scenes straight to files. The file states its resolution (pHYs), its colour space
// (sRGB), its title and where its numbers come from (iTXt).

#include <filesystem>
#include <string>

#include "viz/export/raster.h"

namespace headscope {

struct PngNote {
  std::string title, description;  ///< "" = left out
};

/// Opaque images are written without alpha. Throws Error when libpng reports a failure.
std::string encode_png(const Image& image, double dpi = 96, const PngNote& note = {});

/// Draws and writes; the file appears whole or not at all. Throws Error (size limits, file system). Returns what was
/// written.
PixelSize write_png(const std::filesystem::path& path, const Scene& scene, const OutputSize& size = {});

}  // namespace headscope
