#include "core/io/npz.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/support/paths.h"

namespace headscope::npz_test {

namespace fs = std::filesystem;

namespace {

float ramp(Index i) {
  return static_cast<float>((37 * i) % 101 - 50) / 8.0f;
}

void check_ramp(const Tensor& tensor, const Shape& shape) {
  REQUIRE(tensor.shape() == shape);
  for (Index i = 0; i < shape.size(); ++i) CHECK(tensor.values()[static_cast<std::size_t>(i)] == ramp(i));
}

NpzFile deflated() {
  return NpzFile::open(testing::reference("npz/deflated.npz"));
}

using Ints = std::vector<std::int64_t>;

void put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string npy(const std::string& header, std::size_t data_bytes) {
  std::string bytes("\x93NUMPY\1\0", 8);
  bytes += static_cast<char>(header.size() % 256);
  bytes += static_cast<char>(header.size() / 256);
  return bytes + header + std::string(data_bytes, '\0');
}

/// What opening a .npy of this header and so much data says.
std::string refusal(const std::string& bytes) {
  const fs::path path = testing::scratch_dir("npy") / "x.npy";
  put(path, bytes);
  try {
    NpzFile::open(path).array("x");
  } catch (const Error& e) {
    return e.what();
  }
  return "opened";
}

bool says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos && message.find("x.npy") != std::string::npos) return true;
  MESSAGE("said: " << message);
  return false;
}

/// Opens and reads every array every way; the number of arrays that could be parsed.
int arrays_read(const fs::path& path) {
  int count = 0;
  try {
    const NpzFile file = NpzFile::open(path);
    for (const std::string& name : file.names()) {
      try {
        const NpyArray array = file.array(name, std::size_t{1} << 26);
        ++count;
        for (const auto& read : {+[](const NpyArray& a) { static_cast<void>(a.tensor()); },
                                 +[](const NpyArray& a) { static_cast<void>(a.integers()); },
                                 +[](const NpyArray& a) { static_cast<void>(a.strings()); }}) {
          try {
            read(array);
          } catch (const Error&) {
          }
        }
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
  return count;
}

}  // namespace

TEST_CASE("floats of every size and order read as the same numbers") {
  const NpzFile file = deflated();
  CHECK(file.names().size() == 26);
  CHECK(file.names().front() == "ramp_f2");
  check_ramp(file.tensor("ramp_f2"), {3, 5});
  check_ramp(file.tensor("ramp_f4"), {3, 5});
  check_ramp(file.tensor("ramp_f8"), {2, 3, 4});
  check_ramp(file.tensor("ramp_fortran2"), {3, 5});
  check_ramp(file.tensor("ramp_fortran4"), {2, 3, 4, 5});
  check_ramp(file.tensor("ramp_vector"), {7});
  CHECK(file.tensor("scalar").rank() == 0);
  CHECK(file.tensor("scalar").data()[0] == 2.5f);
  CHECK(file.tensor("empty").shape() == Shape{0, 4});
}

TEST_CASE("integers and booleans of every size keep their extremes") {
  const NpzFile file = deflated();
  CHECK(file.integers("ints_i1") == Ints{-128, 127});
  CHECK(file.integers("ints_i2") == Ints{-32768, 32767});
  CHECK(file.array("ints_i2").shape == Ints{2, 1});
  CHECK(file.integers("ints_i4") == Ints{INT32_MIN, INT32_MAX});
  CHECK(file.integers("ints_i8") == Ints{INT64_MIN, INT64_MAX});
  CHECK(file.integers("ints_fortran") == Ints{0, 1, 2, 3, 4, 5});
  CHECK(file.integers("ints_u1") == Ints{0, 255});
  CHECK(file.integers("ints_u2") == Ints{0, 65535});
  CHECK(file.integers("ints_u4") == Ints{0, 4294967295});
  CHECK(file.integers("ints_u8") == Ints{0, INT64_MAX});
  CHECK(file.integers("flags") == Ints{1, 0, 1});
  CHECK_THROWS_WITH_AS(file.integers("too_large_u8"), doctest::Contains("below 2^63, found 9223372036854775808"),
                       Error);
}

TEST_CASE("text arrays become UTF-8") {
  const NpzFile file = deflated();
  CHECK(file.strings("tokens") == std::vector<std::string>{"The", " qüick", "狐", "🦊", "", "e\u0301"});
  CHECK(file.strings("bytes") == std::vector<std::string>{"ab", "c", ""});
}

TEST_CASE("stored archives, single .npy files and format version 2 read like the rest") {
  const NpzFile file = NpzFile::open(testing::reference("npz/stored.npz"));
  check_ramp(file.tensor("ramp_f4"), {3, 5});
  check_ramp(file.tensor("ramp_fortran4"), {2, 3, 4, 5});
  CHECK(file.strings("tokens")[3] == "🦊");
  check_ramp(NpzFile::open(testing::reference("npz/alone.npy")).tensor("alone"), {3, 5});
  check_ramp(NpzFile::open(testing::reference("npz/version2.npy")).tensor("version2"), {3, 5});
}

TEST_CASE("the wrong kind of array is an error that names file, array and dtype") {
  const NpzFile file = deflated();
  CHECK_THROWS_WITH_AS(
      file.tensor("ints_i4"),
      doctest::Contains("deflated.npz: array ints_i4: expected floating-point numbers (f2, f4, f8), found dtype '<i4'"),
      Error);
  CHECK_THROWS_WITH_AS(file.integers("ramp_f4"), doctest::Contains("expected integers or booleans, found dtype '<f4'"),
                       Error);
  CHECK_THROWS_WITH_AS(file.strings("ramp_f4"), doctest::Contains("expected text"), Error);
  CHECK_THROWS_WITH_AS(file.tensor("five_axes"), doctest::Contains("at most 4 axes, found shape [1, 2, 1, 2, 1]"),
                       Error);
  CHECK_THROWS_WITH_AS(file.array("big_endian"), doctest::Contains("big-endian"), Error);
  CHECK_THROWS_WITH_AS(file.array("complex"), doctest::Contains("'<c16'"), Error);
  CHECK_THROWS_WITH_AS(file.array("record"), doctest::Contains("a record dtype"), Error);
  CHECK_THROWS_WITH_AS(file.array("object"), doctest::Contains("pickle"), Error);
  CHECK_THROWS_WITH_AS(file.array("token"),
                       doctest::Contains("26 arrays, none of that name\n  hint: nearest names: tokens"), Error);
  CHECK_THROWS_WITH_AS(file.array("ramp_f8", 200), doctest::Contains("at most 200 bytes"), Error);
}

TEST_CASE("npy headers that lie or are not what the format says are refused") {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  CHECK(refusal(npy(good, 24)) == "opened");
  CHECK(refusal(npy("{\"shape\":(6L,),\"fortran_order\":True,\"descr\":\"<f4\"}\n", 24)) == "opened");
  CHECK(says(refusal(npy(good, 23)), "24 bytes for shape [2, 3] of '<f4', found 23"));
  CHECK(says(refusal(npy(good, 25)), "found 25"));
  CHECK(says(refusal(npy(good, 24).substr(0, 20)), "stated length of 59"));
  CHECK(says(refusal(npy(good + "x", 24)), "nothing after the header's '}'"));
  CHECK(says(refusal(npy("", 24)), "expected '{', found the end"));
  CHECK(says(refusal(npy("{'descr': '<f4', 'fortran_order': False}", 24)), "found fewer"));
  CHECK(says(refusal(npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}", 4)), "True or False, found Maybe"));
  CHECK(says(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4)), "extents of at least 0"));
  CHECK(says(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4)), "extents"));
  CHECK(says(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0)),
             "fits 63 bits"));
  CHECK(says(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}", 0)),
             "fits 63 bits"));
  CHECK(says(refusal(npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}", 0)), "empty texts"));
  CHECK(says(refusal(npy("{'descr': '<f3', 'fortran_order': False, 'shape': (2,)}", 6)), "'<f3'"));
  CHECK(says(refusal(npy("{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}", 8)), "'f4'"));
  CHECK(says(refusal(npy("{'descr': '<f4x', 'fortran_order': False, 'shape': (2,)}", 8)), "'<f4x'"));
  CHECK(says(refusal(npy("{'descr': '<f4', 'shape': (2,), 'extra': 1}", 8)), "found extra"));
  CHECK(says(refusal(npy("{'descr': '<f4", 0)), "a closing quote"));
  CHECK(says(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::string(3 * 40, ',') + ")}", 0)),
             "extents"));
  std::string version = npy(good, 24);
  version[6] = 9;
  CHECK(says(refusal(version), "version 1, 2 or 3, found 9"));
}

TEST_CASE("files that are not NumPy's are refused") {
  const fs::path folder = testing::scratch_dir("not-npz");
  put(folder / "a.npz", "");
  CHECK_THROWS_WITH_AS(NpzFile::open(folder / "a.npz"), doctest::Contains("a .npz or .npy file"), Error);
  put(folder / "a.npz", "PK\3\4 and then nonsense");
  CHECK_THROWS_WITH_AS(NpzFile::open(folder / "a.npz"), doctest::Contains("a zip archive"), Error);
  CHECK_THROWS_AS(NpzFile::open(folder / "absent.npz"), Error);
}

TEST_CASE("a size that no deflate stream can reach is refused before anything is allocated") {
  // The member's stated size stands in the central directory, 24 bytes after its signature PK\1\2, and in zip64 fields
  // when that is 0xFFFFFFFF; stored.npz is small enough to have none there.
  std::string bytes = read_file(testing::reference("npz/deflated.npz"));
  const auto central = bytes.find("PK\1\2");
  REQUIRE(central != std::string::npos);
  const std::uint32_t lie = 3'000'000'000;
  std::memcpy(bytes.data() + central + 24, &lie, 4);
  const auto local_size =
      bytes.find("PK\3\4") + 22;  // the local header must tell the same lie to pass the consistency check
  std::memcpy(bytes.data() + local_size, &lie, 4);
  const fs::path path = testing::scratch_dir("bomb") / "x.npz";
  put(path, bytes);
  CHECK_THROWS_WITH_AS(NpzFile::open(path).array("ramp_f2"),
                       doctest::Contains("compressed bytes can give, found 3000000000 bytes"), Error);
}

TEST_CASE("an archive cut at any length is refused, and one with damaged bytes gives arrays or errors") {
  const fs::path path = testing::scratch_dir("npz-fuzz") / "x.npz";
  const std::string whole = read_file(testing::reference("npz/stored.npz"));
  int read = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(path, whole.substr(0, length));
    read += arrays_read(path);
  }
  CHECK(read == 0);
  put(path, whole);
  CHECK(arrays_read(path) == 5);
  for (const char* name : {"npz/stored.npz", "npz/deflated.npz", "npz/alone.npy"}) {
    const std::string valid = read_file(testing::reference(name));
    put(path, valid);
    const int all = arrays_read(path);
    Random random(11);
    int best = 0;
    for (int round = 0; round < 1500; ++round) {
      std::string damaged = valid;
      const auto flips = 1 + random.below(3);
      for (std::uint64_t flip = 0; flip < flips; ++flip)
        damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
      put(path, damaged);
      best = std::max(best, arrays_read(path));
    }
    CHECK(best <= all);
  }
}

TEST_CASE("reference captures read as NumPy reads them") {
  HEADSCOPE_NEEDS_SHARED(folder, "captures");
  HEADSCOPE_NEEDS_SHARED(real, "captures-real");
  // Sums and items printed by NumPy in float64 from the same files.
  const auto sum = [](const Tensor& tensor) {
    double total = 0;
    for (const float x : tensor.values()) total += static_cast<double>(x);
    return total;
  };
  const auto total = [](const Ints& values) {
    std::int64_t out = 0;
    for (const std::int64_t x : values) out += x;
    return out;
  };
  const NpzFile capital = NpzFile::open(*folder / "gpt2-byte-d96" / "capital.npz");
  CHECK(total(capital.integers("ids")) == 2267);
  CHECK(total(capital.integers("attn_argmax")) == 5038);
  CHECK(total(capital.integers("greedy")) == 2650);
  CHECK(capital.tensor("attn").shape() == Shape{4, 6, 24, 24});
  CHECK(capital.tensor("attn").values().back() == 0.19794202f);
  CHECK(sum(capital.tensor("attn")) == doctest::Approx(575.9999998206956).epsilon(1e-12));
  CHECK(sum(capital.tensor("entropy")) == doctest::Approx(32.295614577541215).epsilon(1e-7));
  CHECK(sum(capital.tensor("resid")) == doctest::Approx(359.6080264626653).epsilon(1e-12));
  const NpzFile story = NpzFile::open(*folder / "stories260k" / "long.npz");
  CHECK(story.integers("attn_sel_heads") == Ints{0, 0, 1, 3});
  CHECK(sum(story.tensor("attn_sel")) == doctest::Approx(1024.0000004859871).epsilon(1e-12));
  const NpzFile gpt2 = NpzFile::open(*real / "te_gpt2_0.npz");
  CHECK(gpt2.integers("ids") == Ints{6601, 32704, 795, 30132, 2985, 284});
  CHECK(sum(gpt2.tensor("logits_last")) == doctest::Approx(-7761402.565063477).epsilon(1e-12));
  CHECK(sum(gpt2.tensor("raw_scores")) == doctest::Approx(-38543.17432048917).epsilon(1e-12));
  const NpzFile bert = NpzFile::open(*real / "bertviz_bert-base-uncased_b4291bbd_T11.npz");
  CHECK(bert.strings("tokens")[9] == "crawled");
  CHECK(sum(bert.tensor("attn")) == doctest::Approx(1584.000001616701).epsilon(1e-12));

  int arrays = 0, files = 0;
  for (const fs::path& root : {*folder, *real})
    for (const auto& item : fs::recursive_directory_iterator(root)) {
      if (item.path().extension() != ".npz") continue;
      const int read = arrays_read(item.path());
      CHECK(read == static_cast<int>(NpzFile::open(item.path()).names().size()));
      arrays += read;
      ++files;
    }
  MESSAGE(arrays << " arrays in " << files << " files");
  CHECK(files > 30);
}

TEST_CASE("an archive or array that is cut short after it was opened is an Error") {
  const fs::path folder = testing::scratch_dir("npz-cut");
  for (const std::string name : {"deflated.npz", "alone.npy"}) {
    CAPTURE(name);
    fs::copy_file(testing::reference("npz/" + name), folder / name);
    const NpzFile file = NpzFile::open(folder / name);
    const std::string first = file.names().front();
    CHECK(file.array(first).elements() > 0);
    fs::resize_file(folder / name, fs::file_size(folder / name) / 2);
    CHECK_THROWS_WITH_AS(file.array(first), doctest::Contains(name.c_str()), Error);
    fs::resize_file(folder / name, 0);
    CHECK_THROWS_WITH_AS(file.array(first), doctest::Contains(name.c_str()), Error);
  }
}

}  // namespace headscope::npz_test
