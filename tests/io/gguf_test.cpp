// GGUF files against the gguf package (make_formats.py), and files that are broken byte by byte.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/gguf.h"
#include "tests/support/paths.h"

namespace headscope::gguf_test {

using testing::reference;
using testing::scratch_dir;

namespace {

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string text(const std::string& value) {
  return raw<std::uint64_t>(value.size()) + value;
}

/// A GGUF file of the given keys and tensors, each already in bytes.
struct Parts {
  std::uint32_t version = 3;
  std::uint64_t tensor_count = 1, key_count = 1;
  std::string keys = text("general.name") + raw<std::uint32_t>(8) + text("x");
  std::string name = "a";
  std::uint32_t axes = 1, type = 0;
  std::uint64_t extent = 4, offset = 0;
  std::string data = std::string(16, '\0');

  std::string bytes() const {
    std::string file = "GGUF" + raw(version) + raw(tensor_count) + raw(key_count) + keys;
    file += text(name) + raw(axes) + raw(extent) + raw(type) + raw(offset);
    file.resize((file.size() + 31) / 32 * 32);
    return file + data;
  }
};

std::string refusal(const std::string& bytes) {
  const auto path = scratch_dir("gguf") / "m.gguf";
  write_file_atomically(path, bytes);
  try {
    const GgufFile file = GgufFile::open(path);
    for (const auto& [name, entry] : file.tensors()) file.tensor(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const std::function<void(Parts&)>& change) {
  Parts parts;
  change(parts);
  return refusal(parts.bytes());
}

bool says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return true;
  MESSAGE("said: " << message);
  return false;
}

}  // namespace

TEST_CASE("every block type decodes to the bits that the gguf package gives") {
  const GgufFile file = GgufFile::open(reference("formats/blocks.gguf"));
  int compared = 0;
  for (const auto& [name, entry] : file.tensors()) {
    if (name.ends_with(".expected")) continue;
    CAPTURE(name);
    const Tensor found = file.tensor(name), expected = file.tensor(name + ".expected");
    REQUIRE(found.shape() == expected.shape());
    CHECK(found.shape() == Shape{2, 256});
    CHECK(std::memcmp(found.data(), expected.data(), found.bytes()) == 0);
    ++compared;
  }
  CHECK(compared == 25);
  CHECK(file.format() == "GGUF v3");
  CHECK(dtype_name(file.entry("q4_k").dtype) == "Q4_K");
  CHECK(file.entry("q6_k").size == 2 * 210);
}

TEST_CASE("every point of every grid is the gguf package's, with signs of all kinds") {
  const GgufFile file = GgufFile::open(reference("formats/grids.gguf"));
  int compared = 0;
  for (const auto& [name, entry] : file.tensors()) {
    if (name.ends_with(".expected")) continue;
    CAPTURE(name);
    const Tensor found = file.tensor(name).packed();
    const std::vector<std::int8_t> expected = file.entry(name + ".expected").items<std::int8_t>();
    REQUIRE(static_cast<std::size_t>(found.size()) == expected.size());
    CHECK(std::ranges::equal(found.values(), expected, [](float x, std::int8_t y) { return x == y; }));
    ++compared;
  }
  CHECK(compared == 6);
}

TEST_CASE("Q4_0 and Q4_K by hand") {
  // d = 0.5; the first byte holds 3 for item 0 and 12 for item 16.
  std::string block = raw<std::uint16_t>(0x3800) + std::string(1, '\xC3') + std::string(15, '\x88');
  const auto path = scratch_dir("gguf") / "m.gguf";
  Parts parts;
  parts.type = 2;
  parts.extent = 32;
  parts.data = block;
  write_file_atomically(path, parts.bytes());
  Tensor t = GgufFile::open(path).tensor("a");
  CHECK(t.at(0) == 0.5f * (3 - 8));
  CHECK(t.at(16) == 0.5f * (12 - 8));
  CHECK(t.at(1) == 0.0f);

  // d = 1, dmin = 2; group 5 has scale 0b10'0011 = 35 and least 0b01'0101 = 21, its quants are upper halves.
  block = raw<std::uint16_t>(0x3c00) + raw<std::uint16_t>(0x4000) + std::string(140, '\0');
  block[4 + 1] = static_cast<char>(0b10'000000);        // upper bits of group 5's scale
  block[4 + 5] = static_cast<char>(0b01'000000);        // and of its least value
  block[4 + 9] = static_cast<char>(0b0101'0011);        // their lower four bits
  block[16 + 64 + 7] = static_cast<char>(0b1001'0000);  // item 7 of group 5: 9
  parts.type = 12;
  parts.extent = 256;
  parts.data = block;
  write_file_atomically(path, parts.bytes());
  t = GgufFile::open(path).tensor("a");
  CHECK(t.at(5 * 32 + 7) == 35.0f * 9 - 2.0f * 21);
  CHECK(t.at(5 * 32 + 8) == -2.0f * 21);
  CHECK(t.at(0) == 0.0f);
}

TEST_CASE("IQ2_XXS, IQ1_M and NVFP4 by hand") {
  const auto opened = [](std::uint32_t type, std::uint64_t numbers, const std::string& block) {
    const auto path = scratch_dir("gguf") / "m.gguf";
    Parts parts;
    parts.type = type;
    parts.extent = numbers;
    parts.data = block;
    write_file_atomically(path, parts.bytes());
    return GgufFile::open(path).tensor("a");
  };
  // d = 2; group 3 names point 2 (5, 0, … of two bits each: 25 25 8 …), has the signs 0b0000010 of its second eight and
  // the scale 6: 2 · (0.5 + 6) ÷ 4. An odd number of signs sets the eighth.
  std::string block = raw<std::uint16_t>(0x4000) + std::string(64, '\0');
  block[2 + 3 * 8 + 1] = 2;
  block.replace(2 + 3 * 8 + 4, 4, raw<std::uint32_t>(6u << 28 | 0b0000010u << 7));
  Tensor t = opened(16, 256, block);
  const float by = 2.0f * 6.5f / 4;
  const float point[] = {25, -25, 8, 8, 8, 8, 8, -8};
  for (Index i = 0; i < 8; ++i) CHECK(t.at(3 * 32 + 8 + i) == by * point[i]);
  CHECK(t.at(3 * 32 + 16) == by * 8);
  CHECK(t.at(0) == 2.0f * 0.5f / 4 * 8);

  // d = 1 = 0x3c00, its digits above the scales; scale 5 of the third 16 numbers, whose eights name point 0 (−1 …) an
  // eighth less, and the last (1 …), 2047, an eighth more.
  block = std::string(56, '\0');
  block[32 + 2] = static_cast<char>(0x78);
  block[5] = static_cast<char>(0xff);
  block.replace(48, 8,
                raw<std::uint16_t>(0x0000 | 5u << 6) + raw<std::uint16_t>(0x0000) + raw<std::uint16_t>(0xc000) +
                    raw<std::uint16_t>(0x3000));
  t = opened(29, 256, block);
  CHECK(t.at(32) == 11 * -1.125f);
  CHECK(t.at(39) == 11 * -1.125f);
  CHECK(t.at(40) == 11 * 1.125f);
  CHECK(t.at(0) == -0.875f);

  // The scales 1.5 (exponent 7, mantissa 4), 3 ÷ 2⁹ without exponent, 0x7F, no number, which is 0, and 0xFF, 480; 3 and
  // −6.
  block = std::string("\x3c\x03\x7f\xff", 4) + std::string(32, '\xf5');
  t = opened(40, 64, block);
  for (const auto& [at, scale] : {std::pair<Index, float>{0, 1.5f}, {16, 3.0f / 512}, {32, 0.0f}, {48, 480.0f}}) {
    CHECK(t.at(at) == scale * 3);
    CHECK(t.at(at + 7) == scale * 3);
    CHECK(t.at(at + 8) == scale * -6);
    CHECK(t.at(at + 15) == scale * -6);
  }
}

TEST_CASE("keys of every type are read") {
  const GgufFile file = GgufFile::open(reference("formats/llama-gqa.gguf"));
  CHECK(*file.find<std::string>("general.architecture") == "llama");
  CHECK(*file.find<std::int64_t>("llama.block_count") == 2);
  CHECK(*file.find<double>("llama.rope.freq_base") == 10000.0);
  CHECK(*file.find<double>("llama.attention.layer_norm_rms_epsilon") == 1e-6);  // not the double of its float32
  CHECK(file.find<std::int64_t>("llama.none") == nullptr);
  CHECK_THROWS_WITH_AS(file.find<double>("general.architecture"), doctest::Contains("general.architecture"), Error);
  const GgufFile tokens = GgufFile::open(reference("formats/llama-tokenizer.gguf"));
  CHECK(tokens.find<std::vector<std::string>>("tokenizer.ggml.tokens")->size() ==
        tokens.find<std::vector<double>>("tokenizer.ggml.scores")->size());
  CHECK(tokens.find<std::vector<std::int64_t>>("tokenizer.ggml.token_type")->front() == 2);
}

TEST_CASE("lying and broken GGUF files are refused with file, tensor or key, and numbers") {
  CHECK(refusal(Parts().bytes()).empty());
  CHECK(says(refusal(std::string("GGUF")), "4 bytes"));
  CHECK(says(refusal(std::string(40, 'x')), "a GGUF file"));
  CHECK(says(refusal([](Parts& p) { p.version = 1; }), "found version 1"));
  CHECK(says(refusal([](Parts& p) { p.version = 0x03000000; }), "big-endian"));
  CHECK(says(refusal([](Parts& p) { p.version = 4; }), "found version 4"));
  CHECK(says(refusal([](Parts& p) { p.tensor_count = std::uint64_t{1} << 63; }), "found 9223372036854775808"));
  CHECK(says(refusal([](Parts& p) { p.key_count = std::uint64_t{1} << 40; }), "keys in the"));
  const auto key = [](const std::string& value) { return [value](Parts& p) { p.keys = text("k") + value; }; };
  const auto u32 = [](std::uint32_t x) { return raw(x); };
  const auto u64 = [](std::uint64_t x) { return raw(x); };
  CHECK(says(refusal(key(u32(8) + u64(UINT64_MAX))), "found 18446744073709551615"));
  CHECK(says(refusal(key(u32(8) + u64(1 << 20))), "bytes more at byte"));
  CHECK(says(refusal(key(u32(9) + u32(4) + u64(std::uint64_t{1} << 62))), "m.gguf: k: expected at most"));
  CHECK(says(refusal(key(u32(9) + u32(8) + u64(std::uint64_t{1} << 24))), "m.gguf: k: expected at most"));
  CHECK(says(refusal(key(u32(9) + u32(9) + u64(1))), "found type 9"));
  CHECK(says(refusal(key(u32(77))), "found 77"));
  CHECK(says(refusal([](Parts& p) {
               p.key_count = 2;
               p.keys += p.keys;
             }),
             "this one twice"));
  const auto aligned = [](std::uint32_t to) {
    return [to](Parts& p) { p.keys = text("general.alignment") + raw<std::uint32_t>(4) + raw(to); };
  };
  CHECK(says(refusal(aligned(0)), "general.alignment: expected a power of two up to 2^20, found 0"));
  CHECK(says(refusal(aligned(24)), "found 24"));
  CHECK(says(refusal([](Parts& p) { p.axes = 5; }), "tensor a: expected at most 4 axes, found 5"));
  CHECK(says(refusal([](Parts& p) { p.extent = std::uint64_t{1} << 63; }), "found 9223372036854775808"));
  CHECK(says(refusal([](Parts& p) { p.extent = std::uint64_t{1} << 62; }), "fewer than 2^63 bytes"));
  CHECK(says(refusal([](Parts& p) { p.extent = 5; }), "tensor a: expected data inside the file"));
  CHECK(says(refusal([](Parts& p) { p.offset = 32; }), "tensor a: expected data inside the file"));
  CHECK(says(refusal([](Parts& p) { p.offset = 8; }), "an offset that 32 divides, found 8"));
  CHECK(says(refusal([](Parts& p) { p.offset = UINT64_MAX - 31; }), "tensor a: expected data inside the file"));
  CHECK(says(refusal([](Parts& p) { p.type = 9; }), "found Q8_1"));
  CHECK(says(refusal([](Parts& p) { p.type = 41; }), "IQ1_S to IQ4_XS, MXFP4, NVFP4, TQ1_0 or TQ2_0, found Q1_0"));
  CHECK(says(refusal([](Parts& p) { p.type = 99; }), "found type 99"));
  CHECK(says(refusal([](Parts& p) { p.type = 12; }), "rows of whole blocks of 256"));
  // Types by number, their blocks: so many numbers in so many bytes.
  struct Block {
    std::uint32_t type;
    std::uint64_t numbers, bytes;
  };
  for (const Block block : {Block{16, 256, 66},
                            {17, 256, 74},
                            {18, 256, 98},
                            {19, 256, 50},
                            {21, 256, 110},
                            {22, 256, 82},
                            {29, 256, 56},
                            {40, 64, 36}}) {
    CAPTURE(block.type);
    const auto of = [&](std::uint64_t numbers, std::uint64_t bytes) {
      return [=](Parts& p) {
        p.type = block.type;
        p.extent = numbers;
        p.data = std::string(bytes, '\0');
      };
    };
    CHECK(refusal(of(2 * block.numbers, 2 * block.bytes)).empty());
    CHECK(says(refusal(of(2 * block.numbers, 2 * block.bytes - 1)), "tensor a: expected data inside the file"));
    CHECK(
        says(refusal(of(block.numbers / 2, block.bytes)), "rows of whole blocks of " + std::to_string(block.numbers)));
  }
  CHECK(says(refusal([](Parts& p) { p.type = 26; }), "tensor a: expected a floating-point dtype"));
  const auto two = [](const std::string& second, std::uint64_t offset) {
    return [=](Parts& p) {
      p.tensor_count = 2;
      p.keys += text(second) + raw<std::uint32_t>(1) + raw<std::uint64_t>(4) + raw<std::uint32_t>(0) + raw(offset);
    };
  };
  CHECK(says(refusal(two("b", 0)), "tensor b: expected data that does not overlap tensor a"));
  CHECK(says(refusal(two("a", 0)), "every name once"));
  const std::string whole = Parts().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(!refusal(whole.substr(0, size)).empty());
  }
}

}  // namespace headscope::gguf_test
