#include "viz/export/animation.h"

#include <fmt/format.h>
#include <gif_lib.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "viz/export/png.h"

namespace headscope {

namespace {
constexpr int most_colors = 256;

using Rgb = std::array<std::uint8_t, 3>;

std::uint32_t key(const std::uint8_t* rgba) {
  return static_cast<std::uint32_t>(rgba[0]) << 16 | static_cast<std::uint32_t>(rgba[1]) << 8 | rgba[2];
}
Rgb rgb_of(std::uint32_t key) {
  return {static_cast<std::uint8_t>(key >> 16), static_cast<std::uint8_t>(key >> 8), static_cast<std::uint8_t>(key)};
}

/// Every frame as large as the largest, with the ground of the first one's corner around it.
std::vector<Image> of_one_size(std::vector<Image> frames) {
  if (frames.empty()) throw Error("animation", "at least one picture", "none");
  int width = 0, height = 0;
  for (const Image& frame : frames) width = std::max(width, frame.width), height = std::max(height, frame.height);
  const std::array<std::uint8_t, 4> ground{frames[0].rgba[0], frames[0].rgba[1], frames[0].rgba[2], 255};
  for (Image& frame : frames) {
    if (frame.width == width && frame.height == height) continue;
    Image larger{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width) * height * 4)};
    for (std::size_t i = 0; i < larger.rgba.size(); i += 4)
      std::ranges::copy(ground, larger.rgba.begin() + static_cast<std::ptrdiff_t>(i));
    for (int y = 0; y < frame.height; ++y)
      std::copy_n(frame.rgba.begin() + static_cast<std::ptrdiff_t>(y) * frame.width * 4, frame.width * 4,
                  larger.rgba.begin() + static_cast<std::ptrdiff_t>(y) * width * 4);
    frame = std::move(larger);
  }
  return frames;
}

/// A colour and how many pixels have it.
struct Counted {
  Rgb color;
  double pixels;
};

/// Boxes of colours, cut at the median of their longest side until there are 256.
std::vector<Rgb> median_cut(std::vector<Counted> colors) {
  struct Part {
    std::size_t begin, end;
  };
  const auto side = [&](const Part& part, int channel) {
    std::uint8_t low = 255, high = 0;
    for (std::size_t i = part.begin; i < part.end; ++i) {
      low = std::min(low, nth(colors[i].color, channel));
      high = std::max(high, nth(colors[i].color, channel));
    }
    return high - low;
  };
  std::vector<Part> parts{{0, colors.size()}};
  while (parts.size() < most_colors) {
    // The part that is widest, weighed by how much of the picture it is.
    double widest = 0;
    std::size_t chosen = 0;
    int along = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      double pixels = 0;
      for (std::size_t c = parts[i].begin; c < parts[i].end; ++c) pixels += colors[c].pixels;
      for (int channel = 0; channel < 3; ++channel)
        if (const double wide = side(parts[i], channel) * std::sqrt(pixels); wide > widest)
          widest = wide, chosen = i, along = channel;
    }
    if (widest == 0) break;
    Part& part = parts[chosen];
    const auto begin = colors.begin() + static_cast<std::ptrdiff_t>(part.begin),
               end = colors.begin() + static_cast<std::ptrdiff_t>(part.end);
    std::sort(begin, end,
              [&](const Counted& a, const Counted& b) { return nth(a.color, along) < nth(b.color, along); });
    double all = 0, below = 0;
    for (auto at = begin; at != end; ++at) all += at->pixels;
    std::size_t cut = part.begin + 1;
    for (std::size_t i = part.begin; i + 1 < part.end && below < all / 2; ++i) below += colors[i].pixels, cut = i + 1;
    const Part rest{cut, part.end};
    part.end = cut;
    parts.push_back(rest);
  }
  std::vector<Rgb> palette;
  for (const Part& part : parts) {
    std::array<double, 3> sum{};
    double pixels = 0;
    for (std::size_t i = part.begin; i < part.end; ++i) {
      for (int c = 0; c < 3; ++c) nth(sum, c) += nth(colors[i].color, c) * colors[i].pixels;
      pixels += colors[i].pixels;
    }
    Rgb mean;
    for (int c = 0; c < 3; ++c) nth(mean, c) = static_cast<std::uint8_t>(std::lround(nth(sum, c) / pixels));
    palette.push_back(mean);
  }
  return palette;
}

/// Colours of all frames, and which of them a pixel takes.
struct Palette {
  std::vector<Rgb> colors;
  std::unordered_map<std::uint32_t, std::uint8_t> index;

  explicit Palette(const std::vector<Image>& frames) {
    std::unordered_map<std::uint32_t, double> counts;
    for (const Image& frame : frames)
      for (std::size_t i = 0; i < frame.rgba.size(); i += 4) ++counts[key(&frame.rgba[i])];
    std::vector<Counted> all;
    for (const auto& [color, pixels] : counts) all.push_back({rgb_of(color), pixels});
    std::ranges::sort(all, {}, &Counted::color);  // the same file every time
    if (all.size() <= most_colors)
      for (const Counted& each : all) colors.push_back(each.color);
    else
      colors = median_cut(all);
    for (const auto& [color, pixels] : counts) index[color] = nearest(rgb_of(color));
  }

 private:
  std::uint8_t nearest(const Rgb& wanted) const {
    int best = 0, least = 1 << 30;
    for (int i = 0; i < static_cast<int>(colors.size()); ++i) {
      int distance = 0;
      for (int c = 0; c < 3; ++c) {
        const int d = nth(nth(colors, i), c) - nth(wanted, c);
        distance += d * d;
      }
      if (distance < least) least = distance, best = i;
    }
    return static_cast<std::uint8_t>(best);
  }
};

int append_bytes(GifFileType* gif, const GifByteType* bytes, int count) {
  try {
    static_cast<std::string*>(gif->UserData)
        ->append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
    return count;
  } catch (...) {  // no exception may cross giflib's C frames
    return 0;
  }
}

/// giflib's file, closed at the end whatever happened.
class GifWriter {
 public:
  explicit GifWriter(std::string& out) {
    int failure = 0;
    file_ = EGifOpen(&out, append_bytes, &failure);
    if (!file_) refuse(failure);
  }
  ~GifWriter() {
    int ignored = 0;
    if (file_) EGifCloseFile(file_, &ignored);
  }
  GifWriter(const GifWriter&) = delete;
  GifWriter& operator=(const GifWriter&) = delete;
  GifFileType* get() { return file_; }
  void check(int result) const {
    if (result == GIF_ERROR) refuse(file_->Error);
  }
  void close() {
    int failure = 0;
    const int result = EGifCloseFile(std::exchange(file_, nullptr), &failure);
    if (result == GIF_ERROR) refuse(failure);
  }

 private:
  [[noreturn]] static void refuse(int failure) {
    const char* const why = GifErrorString(failure);
    throw Error("GIF", "pictures that giflib can write", why ? why : "no memory");
  }
  GifFileType* file_ = nullptr;
};

void big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}
void chunk(std::string& out, const std::string& type, const std::string& data) {
  big_endian(out, static_cast<std::uint32_t>(data.size()));
  const std::string body = type + data;
  out += body;
  big_endian(out, static_cast<std::uint32_t>(
                      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))));
}

}  // namespace

std::string encode_gif(std::vector<Image> given, double seconds, const std::string& recipe) {
  const std::vector<Image> frames = of_one_size(std::move(given));
  const int width = frames[0].width, height = frames[0].height;
  if (std::max(width, height) > 65535)
    throw Error("GIF", "at most 65535 pixels a side", fmt::format("{} × {}", width, height), "a smaller --width");
  const Palette palette(frames);
  int bits = 1;
  while ((1 << bits) < static_cast<int>(palette.colors.size())) ++bits;
  const std::unique_ptr<ColorMapObject, void (*)(ColorMapObject*)> map(GifMakeMapObject(1 << bits, nullptr),
                                                                       GifFreeMapObject);
  if (!map) throw Error("GIF", "memory for its colours", "none");
  std::memset(map->Colors, 0, sizeof(GifColorType) << bits);
  for (std::size_t i = 0; i < palette.colors.size(); ++i)
    map->Colors[i] = {palette.colors[i][0], palette.colors[i][1], palette.colors[i][2]};

  std::string out;
  GifWriter gif(out);
  EGifSetGifVersion(gif.get(), true);
  gif.check(EGifPutScreenDesc(gif.get(), width, height, 8, 0, map.get()));
  const unsigned char for_ever[] = {1, 0, 0};
  gif.check(EGifPutExtensionLeader(gif.get(), APPLICATION_EXT_FUNC_CODE));
  gif.check(EGifPutExtensionBlock(gif.get(), 11, "NETSCAPE2.0"));
  gif.check(EGifPutExtensionBlock(gif.get(), sizeof for_ever, for_ever));
  gif.check(EGifPutExtensionTrailer(gif.get()));
  if (!recipe.empty()) {
    gif.check(EGifPutExtensionLeader(gif.get(), APPLICATION_EXT_FUNC_CODE));
    gif.check(EGifPutExtensionBlock(gif.get(), 11, gif_recipe_name));
    for (std::size_t at = 0; at < recipe.size(); at += 255) {
      const std::string part = recipe.substr(at, 255);
      gif.check(EGifPutExtensionBlock(gif.get(), static_cast<int>(part.size()), part.data()));
    }
    gif.check(EGifPutExtensionTrailer(gif.get()));
  }
  GraphicsControlBlock control{};
  control.DisposalMode = DISPOSE_DO_NOT;
  control.DelayTime = static_cast<int>(std::lround(100 * std::clamp(seconds, 0.02, 600.0)));
  control.TransparentColor = NO_TRANSPARENT_COLOR;
  std::vector<GifByteType> row(static_cast<std::size_t>(width));
  for (const Image& frame : frames) {
    GifByteType packed[4];
    const auto size = static_cast<int>(EGifGCBToExtension(&control, packed));
    gif.check(EGifPutExtension(gif.get(), GRAPHICS_EXT_FUNC_CODE, size, packed));
    gif.check(EGifPutImageDesc(gif.get(), 0, 0, width, height, false, nullptr));
    const std::uint8_t* pixel = frame.rgba.data();
    for (int y = 0; y < height; ++y) {
      for (GifByteType& index : row) index = palette.index.at(key(pixel)), pixel += 4;
      gif.check(EGifPutLine(gif.get(), row.data(), width));
    }
  }
  gif.close();
  return out;
}

std::string encode_apng(std::vector<Image> given, double seconds, const FileNote& note) {
  std::vector<Image> frames = of_one_size(std::move(given));
  std::string out;
  std::uint32_t number = 0;
  const auto milliseconds = static_cast<std::uint32_t>(std::lround(1000 * std::clamp(seconds, 0.001, 60.0)));
  for (Image& frame : frames) {
    for (std::size_t i = 3; i < frame.rgba.size(); i += 4) frame.rgba[i] = 255;  // all of one colour type
    const std::string png = encode_png(frame, 96, number == 0 ? note : FileNote{});
    if (number == 0) {
      out = png_head(png);
      std::string control;
      big_endian(control, static_cast<std::uint32_t>(frames.size()));
      big_endian(control, 0);  // for ever
      chunk(out, "acTL", control);
    }
    std::string control;
    big_endian(control, number++);
    big_endian(control, static_cast<std::uint32_t>(frame.width));
    big_endian(control, static_cast<std::uint32_t>(frame.height));
    big_endian(control, 0);
    big_endian(control, 0);
    control += static_cast<char>(milliseconds >> 8);
    control += static_cast<char>(milliseconds);
    control += static_cast<char>(1000 >> 8);
    control += static_cast<char>(1000 & 0xFF);
    control += std::string(2, '\0');  // leave what is there, put this over it
    chunk(out, "fcTL", control);
    const std::string data = png_chunks(png, "IDAT");
    if (number == 1) {
      chunk(out, "IDAT", data);
    } else {
      std::string numbered;
      big_endian(numbered, number++);
      chunk(out, "fdAT", numbered + data);
    }
  }
  chunk(out, "IEND", "");
  return out;
}

}  // namespace headscope
