#pragma once
// Pixels of PNG and JPEG files as their libraries read them, 8 bits each, what is stored alone: no colour profile, no
// gamma and no orientation is applied, which is what Pillow does, by whose pixels models of pictures were trained.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

struct DecodedPicture {
  std::int64_t height = 0, width = 0;
  int channels = 3;                   ///< RGB, or 4: and alpha
  std::vector<std::uint8_t> samples;  ///< row-major, `channels` a pixel
};

/// Told how large a picture is before memory is asked for; throws where that is too much.
using CheckExtent = std::function<void(std::int64_t width, std::int64_t height)>;

bool is_png(std::string_view bytes);
bool is_jpeg(std::string_view bytes);
/// Grey and palette become RGB, of 16 bits the upper 8 stay. `where` names the file in Errors, of what is broken or
/// ends too early.
DecodedPicture decode_png(std::string_view bytes, const std::string& where, const CheckExtent& check);
/// Grey becomes RGB, of CMYK and YCCK inverted as Adobe's programs write them; a progressive one has at most 500 scans.
DecodedPicture decode_jpeg(std::string_view bytes, const std::string& where, const CheckExtent& check);

}  // namespace headscope
