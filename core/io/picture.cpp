#include "core/io/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/nth.h"
#include "core/io/exif.h"
#include "core/io/picture_decoders.h"
#include "core/io/shapes.h"

namespace headscope {

namespace {
constexpr std::size_t most_picture_bytes = std::size_t{256} << 20;
constexpr std::int64_t most_picture_pixels = std::int64_t{1} << 26;
constexpr int channels = 3;
}  // namespace

Picture decode_picture(const std::string& bytes, const std::string& where) {
  const auto check = [&](std::int64_t width, std::int64_t height) {
    if (width * height > most_picture_pixels)
      throw Error(where, fmt::format("at most {} pixels", most_picture_pixels), fmt::format("{} × {}", width, height),
                  "make it smaller: a vision model reads a few hundred pixels each way");
  };
  if (!is_png(bytes) && !is_jpeg(bytes))
    throw Error(where, "a picture: PNG or JPEG", bytes.empty() ? "an empty file" : "another file");
  DecodedPicture decoded = is_png(bytes) ? decode_png(bytes, where, check) : decode_jpeg(bytes, where, check);
  Picture out{decoded.height, decoded.width, {}};
  if (decoded.channels == channels) {
    out.rgb = std::move(decoded.samples);
  } else {
    out.rgb.reserve(decoded.samples.size() / 4 * channels);
    for (std::size_t i = 0; i < decoded.samples.size(); i += 4)
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const int level = decoded.samples[i + channel], alpha = decoded.samples[i + 3];
        out.rgb.push_back(static_cast<std::uint8_t>((level * alpha + 255 * (255 - alpha) + 127) / 255));
      }
  }
  const int orientation = exif_orientation(bytes);
  return orientation == 1 ? out : oriented(out, orientation);
}

namespace {
Picture waves() {
  constexpr Index height = 120, width = 160;
  Picture out{height, width, {}};
  for (Index y = 0; y < height; ++y)
    for (Index x = 0; x < width; ++x) {
      const auto i = static_cast<double>(x), j = static_cast<double>(y);
      const bool disc = std::hypot(i - 110, j - 45)<28, beyond = i + 2 * j> 230;
      const double levels[] = {disc ? 220 : 120 + 70 * std::sin(i / 9), beyond ? 40 : 130 + 60 * std::cos((i + j) / 14),
                               disc ? 60 : 2 * j};
      for (const double level : levels)
        out.rgb.push_back(static_cast<std::uint8_t>(std::clamp(std::lround(level), 0L, 255L)));
    }
  return out;
}
}  // namespace

Picture read_picture(const std::filesystem::path& path) {
  if (path == built_in_picture) return waves();
  if (auto shapes = shapes_named(path.string())) return std::move(shapes->picture);
  return decode_picture(read_file(path, most_picture_bytes), path.string());
}

bool may_be_picture(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

namespace {

/// Keys' cubic with a = −1/2, and the triangle: what Pillow calls bicubic and bilinear.
double filter(Resample how, double x) {
  x = std::abs(x);
  if (how == Resample::bilinear) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

constexpr int fraction_bits = 22;  // of Pillow's fixed-point weights

/// What one pixel of the result takes of which pixels along one axis.
struct Taps {
  Index first = 0;
  std::vector<std::int32_t> weights;
};

std::vector<Taps> taps(Index from, Index to, Resample how) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), stretch = std::max(scale, 1.0);
  const double support = (how == Resample::bilinear ? 1 : 2) * stretch;
  std::vector<Taps> all;
  for (Index i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const Index first = std::max<Index>(0, static_cast<Index>(center - support + 0.5)),
                end = std::min(from, static_cast<Index>(center + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (Index j = first; j < end; ++j) {
      weights.push_back(filter(how, (static_cast<double>(j) - center + 0.5) / stretch));
      sum += weights.back();
    }
    Taps& made = all.emplace_back(Taps{first, {}});
    for (const double weight : weights)
      made.weights.push_back(static_cast<std::int32_t>(std::lround(weight / sum * (1 << fraction_bits))));
  }
  return all;
}

/// Every line along an axis: pixel k of line i lies at i · line_step + k · step, in pixels.
struct Along {
  Index line_step, step;
  Index at(Index line, Index k) const { return line * line_step + k * step; }
};

void resample(const std::vector<std::uint8_t>& from, Along in, std::vector<std::uint8_t>& to, Along out, Index lines,
              const std::vector<Taps>& axis) {
  for (Index line = 0; line < lines; ++line)
    for (Index k = 0; k < static_cast<Index>(axis.size()); ++k)
      for (Index channel = 0; channel < channels; ++channel) {
        const Taps& at = nth(axis, k);
        std::int64_t sum = std::int64_t{1} << (fraction_bits - 1);
        for (std::size_t j = 0; j < at.weights.size(); ++j)
          sum += std::int64_t{at.weights[j]} *
                 nth(from, channels * in.at(line, at.first + static_cast<Index>(j)) + channel);
        nth(to, channels * out.at(line, k) + channel) =
            static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> fraction_bits, 0, 255));
      }
}

Picture empty_picture(Index height, Index width) {
  return {height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(channels * height * width))};
}

Picture nearest(const Picture& picture, Index height, Index width) {
  Picture out = empty_picture(height, width);
  const auto at = [](Index i, Index from, Index to) {
    return std::min(from - 1, static_cast<Index>((static_cast<double>(i) + 0.5) * static_cast<double>(from) /
                                                 static_cast<double>(to)));
  };
  for (Index y = 0; y < height; ++y)
    for (Index x = 0; x < width; ++x)
      std::copy_n(
          &nth(picture.rgb, channels * (at(y, picture.height, height) * picture.width + at(x, picture.width, width))),
          channels, &nth(out.rgb, channels * (y * width + x)));
  return out;
}

}  // namespace

Picture resized(const Picture& picture, Index height, Index width, Resample how) {
  if (how == Resample::nearest) return nearest(picture, height, width);
  Picture across = picture;
  if (width != picture.width) {
    across = empty_picture(picture.height, width);
    resample(picture.rgb, {picture.width, 1}, across.rgb, {width, 1}, picture.height, taps(picture.width, width, how));
  }
  if (height == picture.height) return across;
  Picture out = empty_picture(height, width);
  resample(across.rgb, {1, width}, out.rgb, {1, width}, width, taps(picture.height, height, how));
  return out;
}

Picture oriented(const Picture& picture, int orientation) {
  if (orientation <= 1) return picture;
  // 5 … 8 exchange rows and columns: row y of the result is a column of what is stored.
  const bool exchanged = orientation >= 5;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Picture out = exchanged ? empty_picture(picture.width, picture.height) : empty_picture(picture.height, picture.width);
  for (Index y = 0; y < out.height; ++y)
    for (Index x = 0; x < out.width; ++x) {
      const Index row = exchanged ? x : y, column = exchanged ? y : x;
      const Index from = (from_below ? picture.height - 1 - row : row) * picture.width +
                         (from_right ? picture.width - 1 - column : column);
      std::copy_n(&nth(picture.rgb, channels * from), channels, &nth(out.rgb, channels * (y * out.width + x)));
    }
  return out;
}

Picture cropped(const Picture& picture, Index top, Index left, Index height, Index width) {
  Picture out = empty_picture(height, width);
  for (Index y = 0; y < height; ++y)
    std::copy_n(&nth(picture.rgb, channels * ((top + y) * picture.width + left)), channels * width,
                &nth(out.rgb, channels * y * width));
  return out;
}

}  // namespace headscope
