#include "core/io/safetensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/error.h"
#include "tests/support/paths.h"

namespace headscope::safetensors_test {

namespace fs = std::filesystem;

namespace {

/// The ramp of tests/reference/make_safetensors.py.
float ramp(Index i) {
  return static_cast<float>((37 * i) % 101 - 50) / 8.0f;
}

SafetensorsFile mixed() {
  return SafetensorsFile::open(testing::reference("safetensors/mixed.safetensors"));
}

void check_ramp(const Tensor& tensor, const Shape& shape) {
  REQUIRE(tensor.shape() == shape);
  for (Index i = 0; i < shape.size(); ++i) CHECK(tensor.values()[static_cast<std::size_t>(i)] == ramp(i));
}

}  // namespace

TEST_CASE("a file of the Python library opens with all names, shapes, dtypes and metadata") {
  const SafetensorsFile file = mixed();
  CHECK(file.tensors().size() == 18);
  CHECK(file.metadata().at("format") == "np");
  CHECK(file.metadata().at("note") == "ünïcode ✓ \"quoted\"\nsecond line");
  CHECK(file.contains("ramp_bf16"));
  CHECK_FALSE(file.contains("ramp"));
  CHECK(file.entry("ramp_f64").shape == std::vector<std::int64_t>{2, 3, 4});
  CHECK(file.entry("ramp_f64").elements() == 24);
  CHECK(dtype_name(file.entry("ramp_bf16").dtype) == "BF16");
  CHECK(file.entry("empty").elements() == 0);
  CHECK(file.entry("scalar").shape.empty());
}

TEST_CASE("F32, F16, BF16 and F64 read as the same numbers") {
  const SafetensorsFile file = mixed();
  check_ramp(file.tensor("ramp_f32"), {3, 5});
  check_ramp(file.tensor("ramp_f16"), {3, 5});
  check_ramp(file.tensor("ramp_bf16"), {3, 5});
  check_ramp(file.tensor("ramp_f64"), {2, 3, 4});
  const Tensor thirds = file.tensor("third_f64");
  CHECK(thirds.at(0) == 1.0f / 3.0f);
  CHECK(thirds.at(1) == -2.0f / 3.0f);
  CHECK(thirds.at(2) == 0.0f);  // 1e-50 is below float32
  CHECK(file.tensor("scalar").rank() == 0);
  CHECK(file.tensor("scalar").data()[0] == 2.5f);
  CHECK(file.tensor("empty").shape() == Shape{0, 4});
}

TEST_CASE("a tensor outlives the SafetensorsFile, and what becomes of the file") {
  const fs::path path = testing::scratch_dir("outlives") / "copy.safetensors";
  fs::copy_file(testing::reference("safetensors/mixed.safetensors"), path);
  Tensor kept;
  {
    const SafetensorsFile file = SafetensorsFile::open(path);
    kept = file.tensor("ramp_f32");
  }
  fs::resize_file(path, 0);
  check_ramp(kept, {3, 5});
}

TEST_CASE("a file that is cut short after it was opened is an Error for every tensor behind the cut, of any dtype") {
  const fs::path path = testing::scratch_dir("cut") / "copy.safetensors";
  const char* const names[] = {"ramp_f32", "ramp_f16", "ramp_bf16", "ramp_f64"};
  const auto read = [&](const SafetensorsFile& file) {
    int refused = 0;
    for (const char* name : names) {
      try {
        file.tensor(name);
      } catch (const Error& error) {
        CHECK(std::string(error.what()).find("copy.safetensors: expected the file of") != std::string::npos);
        CHECK(error.hint.find("cut it short") != std::string::npos);
        ++refused;
      }
    }
    return refused;
  };
  fs::copy_file(testing::reference("safetensors/mixed.safetensors"), path);
  const SafetensorsFile file = SafetensorsFile::open(path);
  CHECK(read(file) == 0);
  // One byte before the end of a tensor is enough.
  const TensorEntry& middle = file.entry("ramp_f16");
  fs::resize_file(path, middle.offset + middle.size - 1);
  int behind = 0;
  for (const char* name : names) behind += file.entry(name).offset >= middle.offset ? 1 : 0;
  CHECK(behind >= 1);
  CHECK(read(file) == behind);
  fs::resize_file(path, 8);
  CHECK(read(file) == 4);
}

TEST_CASE("integer tensors give their items and refuse to be float") {
  const SafetensorsFile file = mixed();
  CHECK(file.entry("ints_i64").items<std::int64_t>() == std::vector<std::int64_t>{INT64_MIN, -1, 0, INT64_MAX});
  CHECK(file.entry("ints_i32").items<std::int32_t>() == std::vector<std::int32_t>{INT32_MIN, 7, INT32_MAX});
  CHECK(file.entry("ints_i16").items<std::int16_t>() == std::vector<std::int16_t>{INT16_MIN, INT16_MAX});
  CHECK(file.entry("ints_i8").items<std::int8_t>() == std::vector<std::int8_t>{-128, 127});
  CHECK(file.entry("ints_u8").items<std::uint8_t>() == std::vector<std::uint8_t>{0, 255, 3});
  CHECK(file.entry("flags").items<std::uint8_t>() == std::vector<std::uint8_t>{1, 0, 1});
  CHECK_THROWS_WITH_AS(file.tensor("ints_i32"), doctest::Contains("tensor ints_i32: expected a floating-point dtype"),
                       Error);
  CHECK_THROWS_WITH_AS(file.tensor("five_axes"), doctest::Contains("at most 4 axes, found shape [1, 2, 1, 2, 1]"),
                       Error);
}

TEST_CASE("an absent tensor names the file and the nearest names") {
  const SafetensorsFile file = mixed();
  try {
    file.entry("ramp_f31");
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.where.find("mixed.safetensors") != std::string::npos);
    CHECK(e.expected == "tensor ramp_f31");
    CHECK(e.found == "18 tensors, none of that name");
    CHECK(e.hint == "nearest names: ramp_f32, ramp_f16, ramp_f64");
  }
}

TEST_CASE("half to float and back agrees with NumPy, subnormals, ties and infinities included") {
  const SafetensorsFile file = mixed();
  const auto bits = file.entry("half_bits").items<std::uint16_t>();
  const Tensor floats = file.tensor("half_as_float");
  REQUIRE(bits.size() > 600);
  for (std::size_t i = 0; i < bits.size(); ++i)
    CHECK(std::bit_cast<std::uint32_t>(half_to_float(bits[i])) == std::bit_cast<std::uint32_t>(floats.values()[i]));
  const auto halves = file.entry("floats_as_half").items<std::uint16_t>();
  const Tensor source = file.tensor("floats");
  REQUIRE(halves.size() > 500);
  for (std::size_t i = 0; i < halves.size(); ++i) CHECK(float_to_half(source.values()[i]) == halves[i]);
}

TEST_CASE("every half survives the way to float and back; NaN stays NaN") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value))
      wrong += !std::isnan(half_to_float(float_to_half(value)));
    else
      wrong += float_to_half(value) != half;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a sharded model opens through its index, by folder and by index file") {
  const fs::path folder = testing::reference("safetensors/sharded");
  for (const fs::path& path : {folder, folder / "model.safetensors.index.json"}) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    CHECK(file.tensors().size() == 3);
    check_ramp(file.tensor("a"), {2, 2});
    check_ramp(file.tensor("b"), {3});
    check_ramp(file.tensor("c"), {4});
    CHECK(file.metadata().at("total_size") == "30");
    CHECK(file.metadata().at("format") == "pt");
    CHECK(file.entry("c").file->path().filename() == "model-00002-of-00002.safetensors");
  }
}

TEST_CASE("a folder opens its only safetensors file and refuses none or several") {
  const fs::path folder = testing::scratch_dir("folder");
  CHECK_THROWS_WITH_AS(SafetensorsFile::open(folder), doctest::Contains("found none"), Error);
  SafetensorsWriter writer;
  writer.add("x", Tensor::full({2}, 1.5f));
  writer.write(folder / "weights.safetensors");
  CHECK(SafetensorsFile::open(folder).tensor("x").at(1) == 1.5f);
  writer.write(folder / "more.safetensors");
  CHECK_THROWS_WITH_AS(SafetensorsFile::open(folder), doctest::Contains("2 files *.safetensors"), Error);
  writer.write(folder / "model.safetensors");
  CHECK(SafetensorsFile::open(folder).path().filename() == "model.safetensors");
}

TEST_CASE("every tensor of the real models is finite and has the bits of the file") {
  for (const std::string name : {"gpt2-byte-d96", "gpt-nano-sort", "stories260k", "gpt2-bpe-d64"}) {
    const auto folder = testing::shared_reference("models/" + name);
    if (!folder) {
      MESSAGE("skipped: no reference set beside the project for models/" << name);
      return;
    }
    const SafetensorsFile file = SafetensorsFile::open(*folder);
    CHECK(file.tensors().size() > 20);
    for (const auto& [key, entry] : file.tensors()) {
      const Tensor tensor = file.tensor(key);
      CHECK(std::ranges::equal(tensor.values(), entry.items<float>()));
      CHECK(std::ranges::all_of(tensor.values(), [](float x) { return std::isfinite(x); }));
    }
  }
}

}  // namespace headscope::safetensors_test
