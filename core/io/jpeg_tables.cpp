#include "core/io/jpeg_tables.h"

#include <algorithm>
#include <cstddef>

namespace headscope {

namespace {
constexpr int start_of_image = 0xD8, end_of_image = 0xD9, huffman_tables = 0xC4;

/// RST and TEM stand alone, as SOI does: no length follows.
bool stands_alone(int marker) {
  return (marker >= 0xD0 && marker <= start_of_image) || marker == 0x01;
}
}  // namespace

int most_huffman_codes(std::string_view file) {
  const auto byte = [&](std::size_t at) { return at < file.size() ? static_cast<unsigned char>(file[at]) : 0; };
  if (byte(0) != 0xFF || byte(1) != start_of_image) return 0;
  int most = 0;
  std::size_t at = 2;
  while (at + 1 < file.size()) {
    const int marker = byte(at + 1);
    if (byte(at) != 0xFF || marker == 0x00 || marker == 0xFF || stands_alone(marker)) {  // data, or filling
      ++at;
      continue;
    }
    if (marker == end_of_image) return most;
    const auto length = static_cast<std::size_t>(byte(at + 2) * 256 + byte(at + 3));  // of itself, too
    const std::size_t end = at + 2 + std::max<std::size_t>(length, 2);
    if (marker == huffman_tables)
      for (std::size_t table = at + 4; table < end && table < file.size();) {
        int codes = 0;
        for (std::size_t i = 1; i <= 16; ++i) codes += byte(table + i);
        most = std::max(most, codes);
        table += 17 + static_cast<std::size_t>(codes);
      }
    at = end;
  }
  return most;
}

}  // namespace headscope
