// Files that are cut short, lie, or are not safetensors: one clear Error each, never a crash.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/safetensors.h"
#include "tests/support/paths.h"

namespace headscope::safetensors_broken_test {

namespace fs = std::filesystem;

namespace {

void put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string with_header(const std::string& header, std::size_t data_bytes, std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\1');
}

/// What opening a file of this header and so much data says.
std::string refusal(const std::string& header, std::size_t data_bytes) {
  const fs::path path = testing::scratch_dir("broken") / "x.safetensors";
  put(path, with_header(header, data_bytes, header.size()));
  try {
    SafetensorsFile::open(path);
  } catch (const Error& e) {
    return e.what();
  }
  return "opened";
}

bool says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos && message.find("x.safetensors") != std::string::npos) return true;
  MESSAGE("said: " << message);
  return false;
}

/// Opens and reads everything; true when that worked, false on Error. Anything else escapes.
bool opens(const fs::path& path) {
  try {
    const SafetensorsFile file = SafetensorsFile::open(path);
    double sum = 0;
    for (const auto& [name, entry] : file.tensors()) {
      for (const std::byte b : entry.items<std::byte>()) sum += static_cast<double>(b);
      if (entry.dtype == DType::f32 && entry.shape.size() <= 4)
        for (const float x : file.tensor(name).values()) sum += x;
    }
    return sum == sum || sum != sum;
  } catch (const Error&) {
    return false;
  }
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

}  // namespace

TEST_CASE("the smallest valid files open") {
  CHECK(refusal("{}", 0) == "opened");
  CHECK(refusal("{}      ", 0) == "opened");
  CHECK(refusal(one("\"F32\"", "[2]", "[0,8]"), 8) == "opened");
  CHECK(refusal(one("\"F32\"", "[]", "[0,4]"), 4) == "opened");
  CHECK(refusal(one("\"F32\"", "[3,0]", "[0,0]"), 0) == "opened");
}

TEST_CASE("a header length that lies is refused before anything is allocated") {
  const fs::path path = testing::scratch_dir("length") / "x.safetensors";
  const auto length_error = [&](std::uint64_t length) {
    put(path, with_header("{}", 0, length));
    try {
      SafetensorsFile::open(path);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("opened");
  };
  CHECK(says(length_error(3), "a header inside the file of 10 bytes, found a stated length of 3"));
  CHECK(says(length_error(100'000'001), "a header of at most 100000000 bytes"));
  CHECK(says(length_error(UINT64_MAX), "18446744073709551615"));
  CHECK(says(length_error(UINT64_MAX - 7), "stated length"));
  CHECK(says(length_error(0), "begins with '{'"));
  put(path, "");
  CHECK_THROWS_WITH_AS(SafetensorsFile::open(path), doctest::Contains("found 0 bytes"), Error);
}

TEST_CASE("headers that are not what the format says are refused with the tensor and the numbers") {
  CHECK(says(refusal("[1]", 0), "begins with '{'"));
  CHECK(says(refusal("{\"t\":", 0), "valid JSON"));
  CHECK(says(refusal("{\"\xff\":1}", 0), "valid JSON"));
  CHECK(says(refusal("{} x", 0), "valid JSON"));
  CHECK(says(refusal("{\"t\":3}", 0), "tensor t: expected an object"));
  CHECK(says(refusal("{\"t\":{}}", 0), "expected \"dtype\", found none"));
  CHECK(says(refusal(one("\"F33\"", "[2]", "[0,8]"), 8), "found \"F33\""));
  CHECK(says(refusal(one("7", "[2]", "[0,8]"), 8), "found 7"));
  CHECK(says(refusal(one("\"F32\"", "2", "[0,8]"), 8), "shape as an array, found 2"));
  CHECK(says(refusal(one("\"F32\"", "[-2]", "[0,8]"), 8), "found -2"));
  CHECK(says(refusal(one("\"F32\"", "[2.0]", "[0,8]"), 8), "found 2.0"));
  CHECK(says(refusal(one("\"F32\"", "[\"2\"]", "[0,8]"), 8), "found \"2\""));
  CHECK(says(refusal(one("\"F32\"", "[9223372036854775808]", "[0,8]"), 8), "found 9223372036854775808"));
  CHECK(says(refusal(one("\"F32\"", "[2]", "[0]"), 8), "data_offsets [begin, end]"));
  CHECK(says(refusal(one("\"F32\"", "[2]", "[8,0]"), 8), "found [8, 0]"));
  CHECK(says(refusal(one("\"F32\"", "[2]", "[0,-8]"), 8), "found -8"));
  CHECK(says(refusal(one("\"F32\"", "[3]", "[0,8]"), 8), "12 bytes for shape [3] of F32, found 8"));
  CHECK(says(refusal(one("\"F32\"", "[4294967296,4294967296,4]", "[0,0]"), 0), "fits 63 bits"));
  CHECK(says(refusal(one("\"F32\"", "[0,4294967296,4294967296]", "[0,0]"), 0), "fits 63 bits"));
  CHECK(says(refusal(one("\"F32\"", "[4]", "[0,16]"), 8), "inside the 8 bytes of data, found [0, 16]"));
  CHECK(says(refusal(one("\"F32\"", "[2]", "[0,8]"), 9),
             "expected 8 bytes of data, where the last tensor ends, found 9"));
  CHECK(says(refusal(one("\"F32\"", "[2]", "[4,12]"), 12), "a hole of 4 bytes"));
  CHECK(says(refusal(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":1}})", 8), "found \"extra\""));
  CHECK(says(
      refusal(
          R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          8),
      "found \"t\" twice"));
  CHECK(says(refusal(R"({"t":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
             "found \"dtype\" twice"));
  CHECK(says(
      refusal(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          8),
      "tensor b: expected data that does not overlap tensor a"));
  CHECK(says(refusal(R"({"__metadata__":[]})", 0), "__metadata__"));
  CHECK(says(refusal(R"({"__metadata__":{"n":1}})", 0), "found \"n\" = 1"));
  CHECK(
      says(refusal("{\"t\":" + std::string(100000, '[') + std::string(100000, ']') + "}", 0), "nested at most 3 deep"));
}

TEST_CASE("an index that lies is refused") {
  const fs::path folder = testing::scratch_dir("index");
  const fs::path path = folder / "x.safetensors.index.json";
  put(folder / "part.safetensors", with_header("{}", 0, 2));
  const auto index_error = [&](const std::string& text) {
    put(path, text);
    try {
      SafetensorsFile::open(path);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("opened");
  };
  CHECK(says(index_error("{}"), "weight_map"));
  CHECK(says(index_error("[]"), "weight_map"));
  CHECK(says(index_error(R"({"weight_map":{}})"), "weight_map"));
  CHECK(says(index_error(R"({"weight_map":{"a":1}})"),
             "weight_map: a: expected the name of a file beside the index, found 1"));
  CHECK(says(index_error(R"({"weight_map":{"a":"../part.safetensors"}})"), "beside the index"));
  CHECK(says(index_error(R"({"weight_map":{"a":"/etc/passwd"}})"), "beside the index"));
  CHECK(says(index_error(R"({"weight_map":{"a":"part.safetensors"}})"),
             "tensor a in part.safetensors, found no such tensor there"));
  CHECK(index_error(R"({"weight_map":{"a":"absent.safetensors"}})").find("absent.safetensors") != std::string::npos);
  CHECK(says(index_error(R"({"weight_map":{"a":"part.safetensors","a":"part.safetensors"}})"), "found \"a\" twice"));
}

TEST_CASE("a valid file cut at any length is refused, and with any damage to its header opens or is refused") {
  const std::string whole = read_file(testing::reference("safetensors/mixed.safetensors"));
  const fs::path path = testing::scratch_dir("fuzz") / "x.safetensors";
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  int opened = 0;
  for (std::size_t length = 0; length < whole.size(); length += length < header + 16 ? 1 : 61) {
    put(path, whole.substr(0, length));
    opened += opens(path);
  }
  CHECK(opened == 0);
  put(path, whole);
  CHECK(opens(path));

  Random random(7);
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = whole;
    const auto flips = 1 + random.below(3);
    for (std::uint64_t flip = 0; flip < flips; ++flip)
      damaged[random.below(header + 8)] =
          round % 2 ? static_cast<char>(random.below(256)) : "0123456789[]{}\",:-"[random.below(18)];
    put(path, damaged);
    opened += opens(path);
  }
  CHECK(opened < 4000);  // most damage is noticed; what opens (a changed name, say) was read without fault
  MESSAGE(opened << " of 4000 damaged headers still describe a valid file");
}

}  // namespace headscope::safetensors_broken_test
