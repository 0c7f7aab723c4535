// Films: GIF as giflib's own reader sees it, APNG taken apart into the PNGs that its frames are.

#include "viz/export/animation.h"

#include <doctest/doctest.h>
#include <gif_lib.h>
#include <zlib.h>

#include <cstring>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/picture.h"

namespace headscope::animation_test {

namespace {
Image flat(int width, int height, std::array<std::uint8_t, 3> color) {
  Image image{width, height, {}};
  for (int i = 0; i < width * height; ++i) image.rgba.insert(image.rgba.end(), {color[0], color[1], color[2], 255});
  return image;
}

Image noise(int width, int height, std::uint64_t seed) {
  Random random(seed);
  Image image{width, height, {}};
  for (int i = 0; i < width * height * 4; ++i)
    image.rgba.push_back(i % 4 == 3 ? 255 : static_cast<std::uint8_t>(random.below(256)));
  return image;
}

std::vector<std::uint8_t> rgb(const Image& image) {
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < image.rgba.size(); ++i)
    if (i % 4 != 3) out.push_back(image.rgba[i]);
  return out;
}

struct Film {
  int width = 0, height = 0;
  std::vector<std::vector<std::uint8_t>> frames;  ///< RGB
  std::vector<int> delays;                        ///< hundredths of a second
  bool loops = false;
};

struct Bytes {
  const std::string& all;
  std::size_t at = 0;
};

Film read_gif(const std::string& bytes) {
  Bytes source{bytes};
  int failure = 0;
  GifFileType* const gif = DGifOpen(
      &source,
      [](GifFileType* file, GifByteType* out, int count) {
        auto* from = static_cast<Bytes*>(file->UserData);
        const std::size_t take = std::min(static_cast<std::size_t>(count), from->all.size() - from->at);
        std::memcpy(out, from->all.data() + from->at, take);
        from->at += take;
        return static_cast<int>(take);
      },
      &failure);
  REQUIRE(gif);
  REQUIRE(DGifSlurp(gif) == GIF_OK);
  Film film{gif->SWidth, gif->SHeight, {}, {}, false};
  for (int i = 0; i < gif->ImageCount; ++i) {
    const SavedImage& image = gif->SavedImages[i];
    std::vector<std::uint8_t>& frame = film.frames.emplace_back();
    for (int p = 0; p < image.ImageDesc.Width * image.ImageDesc.Height; ++p) {
      const GifColorType& color = gif->SColorMap->Colors[image.RasterBits[p]];
      frame.insert(frame.end(), {color.Red, color.Green, color.Blue});
    }
    GraphicsControlBlock control{};
    REQUIRE(DGifSavedExtensionToGCB(gif, i, &control) == GIF_OK);
    film.delays.push_back(control.DelayTime);
  }
  film.loops = bytes.find("NETSCAPE2.0") != std::string::npos;
  DGifCloseFile(gif, &failure);
  return film;
}

std::uint32_t number(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}
std::string number(std::uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
  return out;
}
std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  return number(static_cast<std::uint32_t>(data.size())) + body +
         number(static_cast<std::uint32_t>(
             crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))));
}

/// Each frame as the PNG that it would be alone; checks order, numbers and checksums.
std::vector<std::string> pngs_of(const std::string& apng, double seconds) {
  std::string header;
  std::vector<std::string> pngs;
  std::uint32_t next = 0, promised = 0;
  for (std::size_t at = 8; at < apng.size();) {
    const std::uint32_t length = number(apng, at);
    const std::string type = apng.substr(at + 4, 4), data = apng.substr(at + 8, length);
    CHECK(apng.substr(at, 12 + length) == chunk(type, data));
    at += 12 + length;
    if (type == "IHDR") header = apng.substr(0, 8) + chunk(type, data);
    if (type == "acTL") promised = number(data, 0);
    if (type == "fcTL") {
      CHECK(number(data, 0) == next++);
      CHECK(data.substr(4, 8) == header.substr(16, 8));  // as large as the picture
      const double delay = static_cast<double>(number(data, 20) >> 16) / (number(data, 20) & 0xFFFF);
      CHECK(delay == doctest::Approx(seconds));
    }
    if (type == "IDAT") pngs.push_back(header + chunk("IDAT", data) + chunk("IEND", ""));
    if (type == "fdAT") {
      CHECK(number(data, 0) == next++);
      pngs.push_back(header + chunk("IDAT", data.substr(4)) + chunk("IEND", ""));
    }
  }
  CHECK(pngs.size() == promised);
  return pngs;
}
}  // namespace

TEST_CASE("frames of few colours come back to the pixel, from GIF and from APNG, with their time") {
  std::vector<Image> frames;
  for (int i = 0; i < 5; ++i) frames.push_back(flat(7, 4, {static_cast<std::uint8_t>(40 * i), 100, 3}));
  frames[3].rgba[4 * 9] = 1;
  const Film film = read_gif(encode_gif(frames, 0.25));
  CHECK(film.width == 7);
  CHECK(film.height == 4);
  CHECK(film.loops);
  REQUIRE(film.frames.size() == 5);
  CHECK(film.delays == std::vector<int>(5, 25));
  const std::vector<std::string> pngs = pngs_of(encode_apng(frames, 0.25), 0.25);
  REQUIRE(pngs.size() == 5);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    CHECK(film.frames[i] == rgb(frames[i]));
    CHECK(decode_picture(pngs[i], "frame").rgb == rgb(frames[i]));
  }
}

TEST_CASE("256 colours are kept, of thousands 256 near ones are taken; APNG keeps them all") {
  Image ramp{16, 16, {}};
  for (int i = 0; i < 256; ++i) {
    const auto value = static_cast<std::uint8_t>(i);
    ramp.rgba.insert(ramp.rgba.end(), {value, static_cast<std::uint8_t>(255 - i), 7, 255});
  }
  CHECK(read_gif(encode_gif({ramp}, 0.1)).frames[0] == rgb(ramp));

  const std::vector<Image> many{noise(64, 64, 1), noise(64, 64, 2)};
  const Film film = read_gif(encode_gif(many, 0.1));
  double sum = 0;
  for (std::size_t f = 0; f < 2; ++f) {
    const auto wanted = rgb(many[f]);
    REQUIRE(film.frames[f].size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) sum += std::abs(film.frames[f][i] - wanted[i]);
  }
  // A cube of 256 colours has a side of 256/6.35 a colour, a quarter of which is the mean distance.
  CHECK(sum / (2 * 64 * 64 * 3) < 13);
  CHECK(decode_picture(pngs_of(encode_apng(many, 0.1), 0.1)[1], "frame").rgb == rgb(many[1]));

  // Shades of one colour, more than there is room for: nothing is off by more than a step or two.
  Image shades{32, 16, {}};
  for (int i = 0; i < 512; ++i)
    shades.rgba.insert(shades.rgba.end(),
                       {static_cast<std::uint8_t>(i / 2), static_cast<std::uint8_t>((i + 1) / 2), 0, 255});
  const Film near = read_gif(encode_gif({shades}, 0.1));
  const auto wanted = rgb(shades);
  int worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) worst = std::max(worst, std::abs(near.frames[0][i] - wanted[i]));
  CHECK(worst <= 2);
}

TEST_CASE("frames of different sizes stand at the upper left of the largest, on the first one's ground") {
  const std::vector<Image> frames{flat(3, 5, {9, 8, 7}), flat(6, 2, {200, 0, 0})};
  const Film film = read_gif(encode_gif(frames, 0.1));
  CHECK(film.width == 6);
  CHECK(film.height == 5);
  const auto at = [&](std::size_t frame, int x, int y) {
    return film.frames[frame][static_cast<std::size_t>((y * 6 + x) * 3)];
  };
  CHECK(at(1, 5, 1) == 200);
  CHECK(at(1, 5, 2) == 9);
  CHECK(at(0, 2, 4) == 9);
  CHECK(pngs_of(encode_apng(frames, 0.1), 0.1).size() == 2);
}

TEST_CASE("nothing to show is an error, and a time below what browsers keep becomes that") {
  CHECK_THROWS_AS(encode_gif({}, 0.1), Error);
  CHECK_THROWS_AS(encode_apng({}, 0.1), Error);
  CHECK(read_gif(encode_gif({flat(1, 1, {0, 0, 0})}, 0.001)).delays == std::vector<int>{2});
}

}  // namespace headscope::animation_test
