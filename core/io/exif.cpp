#include "core/io/exif.h"

#include <cstdint>
#include <optional>

namespace headscope {

namespace {

/// Bytes in the order that their header names.
class Bytes {
 public:
  Bytes(std::string_view all, bool little) : all_(all), little_(little) {}
  /// Nothing where they would go past the end.
  std::optional<std::uint32_t> number(std::size_t at, std::size_t size) const {
    if (at > all_.size() || size > all_.size() - at) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(all_[at + (little_ ? size - 1 - i : i)]);
    return value;
  }

 private:
  std::string_view all_;
  bool little_;
};

constexpr std::string_view exif_header("Exif\0\0", 6);

/// Of a TIFF header and what it leads to.
int orientation_of(std::string_view tiff) {
  if (!tiff.starts_with("II") && !tiff.starts_with("MM")) return 1;
  const Bytes bytes(tiff, tiff.starts_with("II"));
  if (bytes.number(2, 2) != 42u) return 1;
  const std::size_t directory = bytes.number(4, 4).value_or(0);
  const std::uint32_t entries = bytes.number(directory, 2).value_or(0);
  constexpr std::size_t entry_size = 12;
  constexpr std::uint32_t orientation_tag = 0x0112, short_type = 3;
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * entry_size;
    const auto tag = bytes.number(at, 2);
    if (!tag) return 1;
    if (*tag != orientation_tag) continue;
    const std::uint32_t value = bytes.number(at + 8, 2).value_or(0);
    const bool sound = bytes.number(at + 2, 2) == short_type && bytes.number(at + 4, 4) == 1u;
    return sound && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace

int exif_orientation(std::string_view jpeg) {
  if (!jpeg.starts_with("\xFF\xD8")) return 1;
  const Bytes bytes(jpeg, false);
  constexpr std::uint32_t first_scan = 0xFFDA, end_of_image = 0xFFD9, app1 = 0xFFE1;
  for (std::size_t at = 2;;) {
    const std::uint32_t marker = bytes.number(at, 2).value_or(0);
    if (marker == 0xFFFF) {  // fill before a marker
      ++at;
      continue;
    }
    if (marker < 0xFF00 || marker == first_scan || marker == end_of_image) return 1;
    const std::uint32_t length = bytes.number(at + 2, 2).value_or(0);  // its own two bytes included
    if (length < 2 || at + 2 + length > jpeg.size()) return 1;
    const std::string_view segment = jpeg.substr(at + 4, length - 2);
    if (marker == app1 && segment.starts_with(exif_header)) return orientation_of(segment.substr(exif_header.size()));
    at += 2 + length;
  }
}

}  // namespace headscope
