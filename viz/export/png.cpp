#include "viz/export/png.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"

namespace headscope {

namespace {

struct Sink {
  std::string bytes, failure;
};

void append(png_structp png, png_bytep data, png_size_t size) {
  auto* sink = static_cast<Sink*>(png_get_io_ptr(png));
  try {
    sink->bytes.append(reinterpret_cast<const char*>(data), size);
    return;
  } catch (...) {  // no exception may cross libpng's C frames
  }
  png_error(png, "out of memory");
}
void flush(png_structp) {}
[[noreturn]] void fail(png_structp png, png_const_charp message) {
  try {
    static_cast<Sink*>(png_get_error_ptr(png))->failure = message;
  } catch (...) {
  }
  png_longjmp(png, 1);
}
void warn(png_structp, png_const_charp) {}

/// Only plain C between setjmp and the last libpng call: a longjmp must not skip a destructor.
bool encode(png_structp png, png_infop info, int width, int height, bool alpha, png_uint_32 per_meter, png_textp notes,
            int note_count, const png_const_bytep* rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8,
               alpha ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
  png_set_pHYs(png, info, per_meter, per_meter, PNG_RESOLUTION_METER);
  if (note_count > 0) png_set_text(png, info, notes, note_count);
  png_set_filter(png, 0, PNG_FILTER_NONE | PNG_FILTER_UP);  // flat cells repeat from row to row
  png_write_info(png, info);
  if (!alpha) png_set_filler(png, 0, PNG_FILLER_AFTER);
  for (int y = 0; y < height; ++y) png_write_row(png, rows[y]);
  png_write_end(png, info);
  return true;
}

}  // namespace

std::string encode_png(const Image& image, double dpi, const FileNote& note) {
  Sink sink;
  std::string keys[] = {"Title", "Description", "Software", png_recipe_key},
              texts[] = {note.title, note.description, "Headscope", note.recipe};
  std::vector<png_text> notes;
  for (int i = 0; i < 4; ++i) {
    if (texts[i].empty()) continue;
    png_text text{};
    text.compression = i < 3 ? PNG_ITXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_zTXt;
    text.key = keys[i].data();
    text.text = texts[i].data();
    text.itxt_length = texts[i].size();
    notes.push_back(text);
  }
  bool alpha = false;
  for (std::size_t i = 3; i < image.rgba.size() && !alpha; i += 4) alpha = image.rgba[i] != 255;
  const std::size_t stride = static_cast<std::size_t>(image.width) * 4;
  std::vector<png_const_bytep> rows;
  for (int y = 0; y < image.height; ++y) rows.push_back(image.rgba.data() + static_cast<std::size_t>(y) * stride);
  const auto per_meter = static_cast<png_uint_32>(std::lround(std::clamp(dpi, 1e-3, 1e6) / 0.0254));

  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink, fail, warn);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (info) png_set_write_fn(png, &sink, append, flush);
  const bool done = info && encode(png, info, image.width, image.height, alpha, per_meter, notes.data(),
                                   static_cast<int>(notes.size()), rows.data());
  png_destroy_write_struct(&png, &info);
  if (!done) throw Error("PNG", "an image that libpng can write", sink.failure.empty() ? "no memory" : sink.failure);
  return std::move(sink.bytes);
}

namespace {
/// Calls `each` with the place, type and content of the chunks, until it returns false.
template <class Each>
void for_chunks(std::string_view png, const Each& each) {
  for (std::size_t at = 8; at + 12 <= png.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(png[at + i]);
    if (length > png.size() - at - 12 || !each(at, png.substr(at + 4, 4), png.substr(at + 8, length))) return;
    at += 12 + length;
  }
}
}  // namespace

std::string_view png_head(std::string_view png) {
  std::size_t end = 0;
  for_chunks(png, [&](std::size_t at, std::string_view type, std::string_view) {
    end = at;
    return type != "IDAT";
  });
  return png.substr(0, end);
}

std::string png_chunks(std::string_view png, std::string_view type) {
  std::string out;
  for_chunks(png, [&](std::size_t, std::string_view found, std::string_view content) {
    if (found == type) out += content;
    return true;
  });
  return out;
}

PixelSize write_png(const std::filesystem::path& path, const Scene& scene, const OutputSize& size) {
  const PixelSize pixels = pixel_size(scene, size);
  const std::string bytes =
      encode_png(rasterize(scene, pixels.scale), pixels.dpi, {scene.title, scene.description, scene.recipe});
  write_file_atomically(path, bytes);
  return pixels;
}

}  // namespace headscope
