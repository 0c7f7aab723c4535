#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>  // which jpeglib.h does not include, and needs
#include <cstring>

#include <jerror.h>
#include <jpeglib.h>

#include "core/base/error.h"
#include "core/io/picture_decoders.h"

namespace headscope {

namespace {

constexpr int most_scans = 500;  // a small file may have thousands, over a whole picture each

struct JpegReader {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  char failure[JMSG_LENGTH_MAX] = "";
  bool too_short = false;

  JpegReader() {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = this;
    errors.error_exit = [](j_common_ptr common) {
      auto* const self = static_cast<JpegReader*>(common->client_data);
      self->errors.format_message(common, self->failure);
      std::longjmp(self->jump, 1);
    };
    // What a decoder can go on from is let pass, as Pillow does, but for a file that ends too early.
    errors.emit_message = [](j_common_ptr common, int) {
      if (common->err->msg_code == JWRN_JPEG_EOF) static_cast<JpegReader*>(common->client_data)->too_short = true;
    };
    errors.output_message = [](j_common_ptr) {};
    progress.progress_monitor = [](j_common_ptr common) {
      auto* const self = static_cast<JpegReader*>(common->client_data);
      if (self->jpeg.input_scan_number <= most_scans) return;
      std::snprintf(self->failure, sizeof self->failure, "more than %d scans", most_scans);
      std::longjmp(self->jump, 1);
    };
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Only plain C between setjmp and the last call of the library: a longjmp must not skip a destructor.

  bool read_header(const unsigned char* bytes, std::size_t size) {
    if (setjmp(jump)) return false;
    jpeg_create_decompress(&jpeg);
    jpeg.progress = &progress;
    jpeg_mem_src(&jpeg, bytes, static_cast<unsigned long>(size));
    jpeg_read_header(&jpeg, TRUE);
    const bool inks = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
    jpeg.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    return true;
  }

  bool read_rows(unsigned char* to, std::size_t stride) {
    if (setjmp(jump)) return false;
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row = to + stride * jpeg.output_scanline;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    return true;
  }
};

/// Light of an inverted ink and of black, as Pillow rounds.
std::uint8_t light(int ink, int black) {
  const int both = (255 - ink) * black + 128, darker = ((both >> 8) + both) >> 8;
  return static_cast<std::uint8_t>(std::clamp(black - darker, 0, 255));
}

}  // namespace

bool is_jpeg(std::string_view bytes) {
  return bytes.starts_with("\xFF\xD8");
}

DecodedPicture decode_jpeg(std::string_view bytes, const std::string& where, const CheckExtent& check) {
  JpegReader reader;
  const auto broken = [&] {
    const bool cut = reader.too_short || !*reader.failure;
    return Error(where, "a whole JPEG", std::string("a broken one: ") + (cut ? "it ends too early" : reader.failure),
                 "the file is damaged");
  };
  if (!reader.read_header(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size())) throw broken();
  DecodedPicture out;
  out.height = reader.jpeg.image_height;
  out.width = reader.jpeg.image_width;
  check(out.width, out.height);
  const bool inks = reader.jpeg.out_color_space == JCS_CMYK;
  const auto stride = static_cast<std::size_t>(out.width * (inks ? 4 : 3));
  std::vector<std::uint8_t> read(stride * static_cast<std::size_t>(out.height));
  if (!reader.read_rows(read.data(), stride) || reader.too_short) throw broken();
  if (!inks) {
    out.samples = std::move(read);
    return out;
  }
  out.samples.reserve(read.size() / 4 * 3);
  for (std::size_t i = 0; i < read.size(); i += 4)
    for (std::size_t ink = 0; ink < 3; ++ink) out.samples.push_back(light(read[i + ink], read[i + 3]));
  return out;
}

}  // namespace headscope
