// Pictures from files and of other sizes, beside what Pillow makes of them (tests/reference/make_vision.py).

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/exif.h"
#include "core/io/picture.h"
#include "core/io/safetensors.h"
#include "tests/support/paths.h"

namespace headscope::picture_test {

using namespace testing;

namespace {

const SafetensorsFile& known() {
  static const SafetensorsFile file = SafetensorsFile::open(reference("vision") / "pictures.safetensors");
  return file;
}

/// Largest difference of a level; 256 where the sizes are others.
int farthest(const Picture& found, const std::string& name) {
  const TensorEntry& entry = known().entry(name);
  const std::vector<std::uint8_t> truth = entry.items<std::uint8_t>();
  if (entry.shape != std::vector<std::int64_t>{found.height, found.width, 3}) return 256;
  int most = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) most = std::max(most, std::abs(int{truth[i]} - int{found.rgb[i]}));
  return most;
}

/// Of a PNG's chunk, its kind included.
std::string checksum(const std::string& chunk) {
  std::uint32_t sum = 0xFFFFFFFFU;
  for (const char each : chunk) {
    sum ^= static_cast<unsigned char>(each);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320U : 0);
  }
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(~sum >> shift);
  return out;
}

}  // namespace

TEST_CASE("PNG of every kind and JPEG are what Pillow reads, what is transparent over white") {
  for (const char* name : {"picture.png", "grey.png", "palette.png", "alpha.png", "grey16.png", "bits.png",
                           "interlaced.png", "picture.jpg", "halved.jpg", "progressive.jpg", "grey.jpg", "inks.jpg"}) {
    CAPTURE(name);
    CHECK(farthest(read_picture(reference("vision") / name), name) <= (std::string(name) == "alpha.png" ? 1 : 0));
  }
}

TEST_CASE("a picture in another size is Pillow's, level by level") {
  const Picture picture = read_picture(reference("vision") / "picture.png");
  int sizes = 0;
  for (const auto& [name, entry] : known().tensors()) {
    if (name.find(".png") != std::string::npos || name.find(".jpg") != std::string::npos) continue;
    CAPTURE(name);
    const auto how = value_in(resample_names, name.substr(0, name.find('.')));
    REQUIRE(how);
    CHECK(farthest(resized(picture, entry.shape[0], entry.shape[1], *how), name) == 0);
    ++sizes;
  }
  CHECK(sizes == 19);
}

TEST_CASE("a part is cut out of a picture") {
  const Picture picture{2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19}};
  CHECK(cropped(picture, 1, 1, 1, 2) == Picture{1, 2, {14, 15, 16, 17, 18, 19}});
  CHECK(resized(picture, 2, 3, Resample::bicubic) == picture);
}

TEST_CASE("what is no picture, is broken or is huge gets one clear error") {
  CHECK_THROWS_WITH_AS(decode_picture("no picture at all", "x.png"), doctest::Contains("PNG or JPEG"), Error);
  CHECK_THROWS_WITH_AS(decode_picture("", "x.png"), doctest::Contains("x.png"), Error);
  const std::string good = read_file(reference("vision") / "picture.png"),
                    jpeg = read_file(reference("vision") / "picture.jpg");
  for (const std::string& whole : {good, jpeg})
    for (std::size_t cut = 0; cut + 1 < whole.size(); cut += 97) try {
        (void)decode_picture(whole.substr(0, cut), "cut");
      } catch (const Error&) {  // an error or what could be read, nothing else
      }
  for (std::uint32_t seed = 1; seed < 2000; ++seed) {
    std::string changed = seed % 2 ? good : jpeg;
    std::uint32_t state = seed * 2654435761U;
    for (int i = 0; i < 3; ++i) {
      state = state * 1664525U + 1013904223U;
      changed[state % changed.size()] = static_cast<char>(state >> 24);
    }
    try {
      (void)decode_picture(changed, "mutant");
    } catch (const Error&) {
    }
  }
  // A Huffman table of more codes than there are.
  const std::size_t table = jpeg.find("\xFF\xC4");
  REQUIRE(table != std::string::npos);
  std::string many = jpeg;
  for (std::size_t i = 0; i < 16; ++i) many[table + 5 + i] = '\xFF';
  CHECK_THROWS_WITH_AS(decode_picture(many, "many.jpg"), doctest::Contains("Huffman"), Error);
  // Half a file is no picture with a grey half.
  for (const std::string& whole : {good, jpeg})
    CHECK_THROWS_WITH_AS(decode_picture(whole.substr(0, whole.size() / 2), "half"),
                         doctest::Contains("it ends too early"), Error);
  // A small file of many scans over a large picture would take for ever.
  const std::string progressive = read_file(reference("vision") / "progressive.jpg");
  const std::size_t scan = progressive.rfind("\xFF\xDA"), end = progressive.rfind("\xFF\xD9");
  std::string again = progressive.substr(0, end);
  for (int i = 0; i < 500; ++i) again += progressive.substr(scan, end - scan);
  CHECK_THROWS_WITH_AS(decode_picture(again + progressive.substr(end), "again.jpg"),
                       doctest::Contains("more than 500 scans"), Error);
  // A PNG that says it is 60,000 × 60,000 pixels: its size is refused before memory is asked for.
  std::string huge = good;
  for (const std::size_t at : {16U, 20U}) huge.replace(at, 4, std::string("\x00\x00\xEA\x60", 4));
  huge.replace(29, 4, checksum(huge.substr(12, 17)));
  CHECK_THROWS_WITH_AS(decode_picture(huge, "huge.png"), doctest::Contains("pixels"), Error);
  CHECK_THROWS_AS(read_picture("/nowhere.png"), Error);
}

TEST_CASE("the built-in picture is always the same") {
  const Picture waves = read_picture(built_in_picture);
  CHECK(waves.height == 120);
  CHECK(waves.width == 160);
  CHECK(waves == read_picture(built_in_picture));
  CHECK(may_be_picture("a/B.JPeG"));
  CHECK_FALSE(may_be_picture("a.gguf"));
}

namespace {
/// An EXIF segment of one entry in front of what follows SOI.
std::string with_exif(const std::string& jpeg, const std::string& tiff) {
  const std::size_t length = 2 + 6 + tiff.size();
  return jpeg.substr(0, 2) + "\xFF\xE1" + static_cast<char>(length >> 8) + static_cast<char>(length & 255) +
         std::string("Exif\0\0", 6) + tiff + jpeg.substr(2);
}
std::string number(std::uint32_t value, int size, bool little) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * (little ? i : size - 1 - i)) & 255);
  return out;
}
/// A directory with another entry, 0x010F, before the orientation.
std::string tiff(std::uint32_t orientation, bool little, std::uint32_t type = 3, std::uint32_t count = 1) {
  const auto n = [&](std::uint32_t value, int size) { return number(value, size, little); };
  return (little ? "II" : "MM") + n(42, 2) + n(8, 4) + n(2, 2) + n(0x010F, 2) + n(2, 2) + n(4, 4) + n(0x41424300, 4) +
         n(0x0112, 2) + n(type, 2) + n(count, 4) + n(orientation, 2) + n(0, 2) + n(0, 4);
}
}  // namespace

TEST_CASE("a JPEG is turned as its camera noted: all eight ways, both orders of bytes") {
  // Pixels 1 2 3 over 4 5 6, as Pillow's ImageOps.exif_transpose turns them.
  struct Way {
    Index height, width;
    std::vector<int> pixels;
  };
  const Way ways[] = {{2, 3, {1, 2, 3, 4, 5, 6}}, {2, 3, {3, 2, 1, 6, 5, 4}}, {2, 3, {6, 5, 4, 3, 2, 1}},
                      {2, 3, {4, 5, 6, 1, 2, 3}}, {3, 2, {1, 4, 2, 5, 3, 6}}, {3, 2, {4, 1, 5, 2, 6, 3}},
                      {3, 2, {6, 3, 5, 2, 4, 1}}, {3, 2, {3, 6, 2, 5, 1, 4}}};
  const auto grey = [](const Way& way) {
    Picture out{way.height, way.width, {}};
    for (const int level : way.pixels) out.rgb.insert(out.rgb.end(), 3, static_cast<std::uint8_t>(level));
    return out;
  };
  const std::string jpeg = read_file(reference("vision") / "picture.jpg");
  const Picture stored = decode_picture(jpeg, "x.jpg");
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    CHECK(oriented(grey(ways[0]), orientation) == grey(ways[orientation - 1]));
    for (const bool little : {true, false}) {
      const std::string noted = with_exif(jpeg, tiff(static_cast<std::uint32_t>(orientation), little));
      CHECK(exif_orientation(noted) == orientation);
      CHECK(decode_picture(noted, "x.jpg") == oriented(stored, orientation));
    }
  }
}

TEST_CASE("a broken or strange EXIF segment leaves a JPEG as it is stored") {
  const std::string jpeg = read_file(reference("vision") / "picture.jpg");
  const Picture stored = decode_picture(jpeg, "x.jpg");
  const std::string sound = tiff(6, false);
  REQUIRE(exif_orientation(with_exif(jpeg, sound)) == 6);
  CHECK(exif_orientation(jpeg) == 1);
  CHECK(exif_orientation("") == 1);
  CHECK(exif_orientation("\xFF\xD8") == 1);
  for (const std::uint32_t value : {0u, 9u, 0xFFFFu}) CHECK(exif_orientation(with_exif(jpeg, tiff(value, true))) == 1);
  CHECK(exif_orientation(with_exif(jpeg, tiff(6, true, 4))) == 1);     // of another type
  CHECK(exif_orientation(with_exif(jpeg, tiff(6, true, 3, 2))) == 1);  // two of them
  // Cut anywhere: within the segment, so that the picture behind it is whole.
  for (std::size_t cut = 0; cut < sound.size(); ++cut) {
    const std::string noted = with_exif(jpeg, sound.substr(0, cut));
    const int found = exif_orientation(noted);
    CHECK((found == 1 || found == 6));
    CHECK(decode_picture(noted, "x.jpg") == oriented(stored, found));
  }
  // A directory far outside, more entries than there are, a segment longer than the file, one shorter than its length.
  std::string far = sound;
  far.replace(4, 4, "\xFF\xFF\xFF\xF0");
  CHECK(exif_orientation(with_exif(jpeg, far)) == 1);
  std::string many = sound.substr(0, 10) + sound.substr(10, 12);
  many.replace(8, 2, "\xFF\xFF");
  CHECK(exif_orientation(with_exif(jpeg, many)) == 1);
  CHECK(exif_orientation(with_exif(jpeg, sound).substr(0, 30)) == 1);
  CHECK(exif_orientation(std::string("\xFF\xD8\xFF\xE1\x00\x01", 6)) == 1);
  // Every byte changed: some orientation, never anything else.
  for (std::size_t at = 0; at < sound.size() + 10; ++at)
    for (const int by : {1, 0x55, 0xFF}) {
      std::string changed = with_exif(jpeg, sound);
      changed[at] = static_cast<char>(changed[at] ^ by);
      const int found = exif_orientation(changed);
      CHECK((found >= 1 && found <= 8));
    }
}

}  // namespace headscope::picture_test
