#pragma once
// Pictures from files, and of another size: PNG and JPEG as 8-bit RGB.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/named_values.h"
#include "core/tensor/tensor.h"

namespace headscope {

struct Picture {
  Index height = 0, width = 0;
  std::vector<std::uint8_t> rgb;  ///< row-major, 3 bytes a pixel
  bool operator==(const Picture&) const = default;
};

/// How pixels of another size are made of those there are.
enum class Resample { nearest, bilinear, bicubic };
inline constexpr NamedValue<Resample> resample_names[] = {
    {"nearest", Resample::nearest}, {"bilinear", Resample::bilinear}, {"bicubic", Resample::bicubic}};

/// Not a file: a picture of waves, an edge and a disc, made by a formula, for when any will do.
inline constexpr const char* built_in_picture = "builtin:waves";

/// Grey, palette and 16 bits become 8-bit RGB; what is transparent stands on white; a JPEG is turned as its camera
/// noted (exif.h). Throws Error on files that are no PNG or JPEG, are broken, or have more than 64 million pixels.
Picture read_picture(const std::filesystem::path& path);
/// The same of a file's bytes; `where` names them in Errors.
Picture decode_picture(const std::string& bytes, const std::string& where);
/// Whether a path ends as files do that read_picture() reads.
bool may_be_picture(const std::filesystem::path& path);

/// Antialiased where it becomes smaller, level by level what Pillow's Image.resize gives: first across, then down, both
/// rounded to 8 bits.
Picture resized(const Picture& picture, Index height, Index width, Resample how);
/// Turned and mirrored as EXIF's orientation 1 … 8 says: which side of what is stored is up and which left.
Picture oriented(const Picture& picture, int orientation);
/// Rows [top, top + height) of columns [left, left + width). REQUIRES them inside the picture.
Picture cropped(const Picture& picture, Index top, Index left, Index height, Index width);

}  // namespace headscope
