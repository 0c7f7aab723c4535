#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <ostream>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/io/safetensors.h"
#include "tests/support/paths.h"

namespace headscope::safetensors_writer_test {

namespace fs = std::filesystem;

namespace {

template <class T>
SafetensorsWriter::Produce raw(std::vector<T> values) {
  return [values](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  };
}

SafetensorsWriter sample() {
  SafetensorsWriter writer;
  writer.add("odd", DType::u8, {3}, raw<std::uint8_t>({1, 2, 3}));
  writer.add("matrix", Tensor::from({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  writer.add("turned", Tensor::from({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}).transpose(0, 1));
  writer.add("half", DType::f16, {2}, raw<std::uint16_t>({float_to_half(0.5f), float_to_half(-3.0f)}));
  writer.add("wide", DType::i64, {1}, raw<std::int64_t>({-5}));
  writer.add("scalar", Tensor::full({}, 7.0f));
  writer.add("nothing", Tensor::zeros({0, 2}));
  writer.metadata("note", "quotes \" and ünïcode");
  return writer;
}

}  // namespace

TEST_CASE("what is written reads back, and every tensor is aligned to its item size") {
  const fs::path path = testing::scratch_dir("writer") / "out.safetensors";
  std::vector<std::pair<std::size_t, std::size_t>> steps;
  sample().write(path, [&](std::size_t done, std::size_t total) { steps.emplace_back(done, total); });
  CHECK(steps.front() == std::pair<std::size_t, std::size_t>{0, 67});
  CHECK(steps.back() == std::pair<std::size_t, std::size_t>{67, 67});

  const SafetensorsFile file = SafetensorsFile::open(path);
  CHECK(file.metadata().at("note") == "quotes \" and ünïcode");
  CHECK(file.tensors().size() == 7);
  CHECK(file.tensor("matrix").at(1, 2) == 6);
  CHECK(file.tensor("turned").shape() == Shape{3, 2});
  CHECK(file.tensor("turned").at(2, 1) == 6);
  CHECK(file.tensor("turned").at(0, 1) == 4);
  CHECK(file.tensor("half").at(1) == -3.0f);
  CHECK(file.tensor("scalar").data()[0] == 7.0f);
  CHECK(file.tensor("nothing").shape() == Shape{0, 2});
  for (const auto& [name, entry] : file.tensors()) CHECK(entry.offset % dtype_size(entry.dtype) == 0);
  std::uint64_t header = 0;
  std::memcpy(&header, read_file(path).data(), 8);
  CHECK(header % 8 == 0);
}

TEST_CASE("a file without tensors or metadata is valid") {
  const fs::path path = testing::scratch_dir("writer-empty") / "out.safetensors";
  SafetensorsWriter{}.write(path);
  CHECK(SafetensorsFile::open(path).tensors().empty());
  SafetensorsWriter only_metadata;
  only_metadata.metadata("a", "b");
  only_metadata.write(path);
  CHECK(SafetensorsFile::open(path).metadata().at("a") == "b");
}

TEST_CASE("a producer that writes too little or too much leaves no file") {
  const fs::path folder = testing::scratch_dir("writer-lies");
  for (const std::size_t count : {2u, 4u}) {
    SafetensorsWriter writer;
    writer.add("t", DType::f32, {3}, raw(std::vector<float>(count)));
    CHECK_THROWS_WITH_AS(writer.write(folder / "out.safetensors"),
                         doctest::Contains("tensor t: expected 12 bytes for shape [3]"), Error);
  }
  CHECK(fs::is_empty(folder));
}

TEST_CASE("names that JSON or the format cannot hold are refused") {
  const fs::path path = testing::scratch_dir("writer-names") / "out.safetensors";
  SafetensorsWriter twice;
  twice.add("t", Tensor::zeros({1}));
  twice.add("t", Tensor::zeros({1}));
  CHECK_THROWS_WITH_AS(twice.write(path), doctest::Contains("every tensor name once"), Error);
  SafetensorsWriter reserved;
  reserved.add("__metadata__", Tensor::zeros({1}));
  CHECK_THROWS_AS(reserved.write(path), Error);
  SafetensorsWriter bytes;
  bytes.metadata("k", "\xff");
  CHECK_THROWS_WITH_AS(bytes.write(path), doctest::Contains("UTF-8"), Error);
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("Python's safetensors opens what we write and sees the same numbers") {
  const fs::path path = testing::scratch_dir("writer-python") / "out.safetensors";
  sample().write(path);
  const std::string command =
      "python3 '" + testing::reference("check_safetensors.py").string() + "' '" + path.string() + "' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string output;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, got);
  const int status = pclose(pipe);
  if (WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 127) {
    MESSAGE("skipped: Python with numpy and safetensors is not installed");
    return;
  }
  CAPTURE(output);
  REQUIRE(status == 0);
  const auto seen = nlohmann::json::parse(output);
  CHECK(seen["metadata"]["note"] == "quotes \" and ünïcode");
  CHECK(seen["tensors"].size() == 7);
  CHECK(seen["tensors"]["odd"] == nlohmann::json::parse(R"({"dtype":"uint8","shape":[3],"values":[1,2,3]})"));
  CHECK(seen["tensors"]["turned"] ==
        nlohmann::json::parse(R"({"dtype":"float32","shape":[3,2],"values":[1,4,2,5,3,6]})"));
  CHECK(seen["tensors"]["half"] == nlohmann::json::parse(R"({"dtype":"float16","shape":[2],"values":[0.5,-3]})"));
  CHECK(seen["tensors"]["wide"] == nlohmann::json::parse(R"({"dtype":"int64","shape":[1],"values":[-5]})"));
  CHECK(seen["tensors"]["scalar"] == nlohmann::json::parse(R"({"dtype":"float32","shape":[],"values":[7]})"));
  CHECK(seen["tensors"]["nothing"]["shape"] == nlohmann::json::parse("[0,2]"));
}

}  // namespace headscope::safetensors_writer_test
