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

}  // namespace

TEST_CASE("PNG of every kind and JPEG are what Pillow reads, what is transparent over white") {
  for (const char* name : {"picture.png", "grey.png", "palette.png", "alpha.png", "grey16.png"}) {
    CAPTURE(name);
    CHECK(farthest(read_picture(reference("vision") / name), name) <= (std::string(name) == "alpha.png" ? 1 : 0));
  }
  // Two decoders of JPEG round otherwise.
  CHECK(farthest(read_picture(reference("vision") / "picture.jpg"), "picture.jpg") <= 3);
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
  // A PNG that says it is 60,000 × 60,000 pixels: its size is refused before memory is asked for.
  std::string huge = good;
  for (const std::size_t at : {16U, 20U}) huge.replace(at, 4, std::string("\x00\x00\xEA\x60", 4));
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

}  // namespace headscope::picture_test
