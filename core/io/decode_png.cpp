#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <memory>

#include "core/base/error.h"
#include "core/io/picture_decoders.h"

namespace headscope {

namespace {

struct PngSource {
  std::string_view rest;
  char failure[128] = "";  // no memory is asked for between C's frames
};

void png_take(png_structp png, png_bytep to, png_size_t size) {
  auto* const source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (size > source->rest.size()) png_error(png, "it ends too early");
  std::memcpy(to, source->rest.data(), size);
  source->rest.remove_prefix(size);
}
[[noreturn]] void png_failed(png_structp png, png_const_charp message) {
  auto* const source = static_cast<PngSource*>(png_get_error_ptr(png));
  std::strncpy(source->failure, message, sizeof source->failure - 1);
  png_longjmp(png, 1);
}
void png_warned(png_structp, png_const_charp) {}

// Only plain C between setjmp and the last libpng call: a longjmp must not skip a destructor.

bool read_png_header(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  png_set_expand(png);    // palette and few bits, and what is transparent by its colour
  png_set_strip_16(png);  // the upper byte, unrounded
  png_set_gray_to_rgb(png);
  png_read_update_info(png, info);
  return true;
}

bool read_png_rows(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_image(png, rows);
  return true;
}

/// What libpng made, and takes back.
struct PngReader {
  explicit PngReader(PngSource& source)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, png_failed, png_warned)),
        info(png ? png_create_info_struct(png) : nullptr) {}
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  png_structp png;
  png_infop info;
};

}  // namespace

bool is_png(std::string_view bytes) {
  return bytes.starts_with("\x89PNG");
}

DecodedPicture decode_png(std::string_view bytes, const std::string& where, const CheckExtent& check) {
  PngSource source{bytes};
  const PngReader reader(source);
  const auto broken = [&] {
    return Error(where, "a whole PNG", std::string("a broken one: ") + source.failure, "the file is damaged");
  };
  if (!reader.info) throw broken();
  png_set_read_fn(reader.png, &source, png_take);
  png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // `check` decides
  if (!read_png_header(reader.png, reader.info)) throw broken();
  DecodedPicture out;
  out.height = png_get_image_height(reader.png, reader.info);
  out.width = png_get_image_width(reader.png, reader.info);
  check(out.width, out.height);
  out.channels = png_get_channels(reader.png, reader.info);
  const auto stride = static_cast<std::size_t>(out.width * out.channels);
  if ((out.channels != 3 && out.channels != 4) || png_get_rowbytes(reader.png, reader.info) != stride) throw broken();
  out.samples.resize(stride * static_cast<std::size_t>(out.height));
  std::vector<png_bytep> rows(static_cast<std::size_t>(out.height));
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = out.samples.data() + y * stride;
  if (!read_png_rows(reader.png, rows.data())) throw broken();
  return out;
}

}  // namespace headscope
