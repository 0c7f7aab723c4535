// Files of torch.save against what PyTorch wrote (make_formats.py), and pickles and archives broken by hand.

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/model_location.h"
#include "core/io/pytorch_file.h"
#include "tests/support/paths.h"

namespace headscope::pytorch_file_test {

using testing::reference;
using testing::scratch_dir;

namespace {

float ramp(Index i) {
  return static_cast<float>((37 * i) % 101 - 50) / 8;
}

std::string refusal(const std::string& bytes) {
  const auto path = scratch_dir("pytorch") / "m.pt";
  write_file_atomically(path, bytes);
  try {
    const TensorFile file = open_pytorch(path);
    for (const auto& [name, entry] : file.tensors())
      if (dtype_info(entry.dtype).decode) file.tensor(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return true;
  MESSAGE("said: " << message);
  return false;
}

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// An archive of stored members, as torch.save lays it out, without Zip64.
struct Zip {
  std::string bytes, directory;
  int count = 0;
  Zip& add(const std::string& name, const std::string& data, std::uint16_t method = 0, std::uint16_t flags = 0) {
    const auto offset = static_cast<std::uint32_t>(bytes.size()), size = static_cast<std::uint32_t>(data.size());
    const auto length = static_cast<std::uint16_t>(name.size());
    const std::string common = raw<std::uint16_t>(20) + raw(flags) + raw(method) + raw<std::uint32_t>(0) +
                               raw<std::uint32_t>(0) + raw(size) + raw(size) + raw(length) + raw<std::uint16_t>(0);
    bytes += "PK\3\4" + common + name + data;
    directory += "PK\1\2" + raw<std::uint16_t>(20) + common + std::string(10, '\0') + raw(offset) + name;
    ++count;
    return *this;
  }
  std::string done() const {
    const auto n = static_cast<std::uint16_t>(count);
    return bytes + directory + "PK\5\6" + std::string(4, '\0') + raw(n) + raw(n) +
           raw(static_cast<std::uint32_t>(directory.size())) + raw(static_cast<std::uint32_t>(bytes.size())) +
           std::string(2, '\0');
  }
};

// Pieces of a pickle: {"w": tensor of a FloatStorage "0" of `items` items, from item `offset` on}.
std::string word(const std::string& text) {
  return "\x8c" + std::string(1, static_cast<char>(text.size())) + text;
}
std::string integer(std::int64_t value) {
  return "\x8a\x08" + raw(value);
}
std::string tensor(std::int64_t items, std::int64_t offset, const std::string& shape, const std::string& strides) {
  const std::string storage = "(" + word("storage") + "ctorch\nFloatStorage\n" + word("0") + word("cpu");
  return "\x80\x02}" + word("w") + "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + integer(items) + "tQ" +
         integer(offset) + shape + strides + "\x89)tRs.";
}
std::string tuple(std::initializer_list<std::int64_t> numbers) {
  std::string made = "(";
  for (const std::int64_t each : numbers) made += integer(each);
  return made + "t";
}
std::string with_pickle(const std::string& pickle) {
  return Zip().add("a/data.pkl", pickle).add("a/data/0", std::string(16, '\0')).done();
}

}  // namespace

TEST_CASE("tensors of every dtype, and views of shared storages, are what PyTorch wrote") {
  for (const char* name : {"state.pt", "old.pt"}) {
    CAPTURE(name);
    const TensorFile file = open_pytorch(reference("formats") / name);
    for (const char* type : {"f32", "f16", "bf16"}) {
      const Tensor t = file.tensor(type);
      REQUIRE(t.shape() == Shape{3, 5});
      for (Index i = 0; i < 15; ++i) CHECK(t.data()[i] == ramp(i));
    }
    const Tensor wide = file.tensor("f64");
    REQUIRE(wide.shape() == Shape{2, 3, 4});
    for (Index i = 0; i < 24; ++i) CHECK(wide.data()[i] == ramp(i));
    CHECK(file.entry("i64").items<std::int64_t>() == std::vector<std::int64_t>{INT64_MIN, -1, INT64_MAX});
    CHECK(file.entry("u8").items<std::uint8_t>() == std::vector<std::uint8_t>{0, 255, 3});
    CHECK(dtype_name(file.entry("flags").dtype) == "BOOL");
    CHECK(file.tensor("scalar").data()[0] == 2.5f);
    CHECK(file.tensor("empty").shape() == Shape{0, 4});
    const Tensor whole = file.tensor("whole"), rows = file.tensor("rows"), turned = file.tensor("transposed"),
                 column = file.tensor("column"), parameter = file.tensor("parameter"), heads = file.tensor("heads");
    REQUIRE(turned.shape() == Shape{4, 6});
    REQUIRE(heads.shape() == Shape{4, 3, 2});
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 4; ++j) {
        CHECK(whole.at(i, j) == ramp(4 * i + j));
        CHECK(turned.at(j, i) == ramp(4 * i + j));
        CHECK(heads.at(j, i / 2, i % 2) == ramp(4 * i + j));
      }
    for (Index i = 0; i < 3; ++i) CHECK(rows.at(i, 1) == ramp(4 * (i + 2) + 1));
    for (Index i = 0; i < 6; ++i) CHECK(column.at(i) == ramp(4 * i + 1));
    for (Index j = 0; j < 4; ++j) CHECK(parameter.at(j) == ramp(4 + j));
    CHECK(!file.contains("epoch"));
  }
}

TEST_CASE("a file whose unpickling would run code is refused by the name of what it calls") {
  for (const char* name : {"code.pt", "code-old.pt"})
    CHECK_THROWS_WITH_AS(open_pytorch(reference("formats") / name),
                         doctest::Contains("this file runs code: posix.system"), Error);
  CHECK(says(refusal(with_pickle("\x80\x04" + word("builtins") + word("eval") + "\x93.")),
             "this file runs code: builtins.eval"));
  CHECK(says(refusal(with_pickle("(ios\nsystem\n.")), "this file runs code: os.system"));
  CHECK(says(refusal(with_pickle("ctorch.storage\n_load_from_bytes\n.")), "torch.storage._load_from_bytes"));
  CHECK(says(refusal(with_pickle("ctorch\nFloatStorage\n)R.")), "a call of torch.FloatStorage"));
}

TEST_CASE("tensors that reach beyond their storage, or stand for more items than it has, are refused") {
  CHECK(refusal(with_pickle(tensor(4, 0, tuple({2, 2}), tuple({2, 1})))).empty());
  const auto lies = [](std::int64_t items, std::int64_t offset, const std::string& shape, const std::string& strides) {
    return refusal(with_pickle(tensor(items, offset, shape, strides)));
  };
  CHECK(says(lies(5, 0, tuple({2, 2}), tuple({2, 1})), "tensor w: expected a storage of 5 × 4 bytes, found 16 bytes"));
  CHECK(says(lies(-1, 0, tuple({2, 2}), tuple({2, 1})), "a storage of -1 × 4 bytes"));
  CHECK(says(lies(4, 1, tuple({2, 2}), tuple({2, 1})), "from item 1 on"));
  CHECK(says(lies(4, -1, tuple({2, 2}), tuple({2, 1})), "from item -1 on"));
  CHECK(says(lies(4, INT64_MAX, tuple({1}), tuple({1})), "from item 9223372036854775807 on"));
  CHECK(says(lies(4, 0, tuple({2, 2}), tuple({4, 1})), "strides [4, 1]"));
  CHECK(says(lies(4, 0, tuple({1000, 1000}), tuple({0, 0})), "a view of its storage of 4 items"));
  CHECK(says(lies(4, 0, tuple({INT64_MAX, 2}), tuple({0, 0})), "a view of its storage"));
  CHECK(says(lies(4, 0, tuple({2, 2}), tuple({-1, 1})), "strides [-1, 1]"));
  CHECK(says(lies(4, 0, tuple({2, 2}), tuple({INT64_MAX, INT64_MAX})), "a view of its storage"));
  CHECK(says(lies(4, 0, tuple({-2, 2}), tuple({2, 1})), "shape [-2, 2]"));
  CHECK(says(lies(4, 0, tuple({2, 2}), tuple({1})), "strides [1]"));
}

TEST_CASE("pickles that are cut short, malformed, circular or endless are refused") {
  const std::string whole = tensor(4, 0, tuple({2, 2}), tuple({2, 1}));
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK(!refusal(with_pickle(whole.substr(0, size))).empty());
  CHECK(says(refusal(with_pickle(".")), "a value on the stack"));
  CHECK(says(refusal(with_pickle("t.")), "a mark on the stack"));
  CHECK(says(refusal(with_pickle("h\5.")), "a value remembered as 5"));
  CHECK(says(refusal(with_pickle("\x80\x09N.")), "protocol 9"));
  CHECK(says(refusal(with_pickle("]q\1h\1a.")), "a dict of tensors"));  // a list that holds itself
  CHECK(says(refusal(with_pickle("}q\1h\1h\1s.")), "a dict of tensors"));
  CHECK(says(refusal(with_pickle("X\xff\xff\xff\x7f.")), "2147483647 bytes more"));
  CHECK(says(refusal(with_pickle("\x8d" + raw<std::uint64_t>(UINT64_MAX) + ".")), "18446744073709551615 bytes more"));
  CHECK(says(refusal(with_pickle("\x8b" + raw<std::uint32_t>(9) + std::string(9, 'x') + ".")), "at most 8 bytes"));
  CHECK(says(refusal(with_pickle("\x82\x01.")), "opcode 0x82"));
  CHECK(says(refusal(with_pickle(std::string(3'000'000, '}') + ".")), "at most 2097152 values"));
  CHECK(says(refusal(with_pickle("N" + std::string(5'000'000, '2') + ".")), "at most 4194304 values"));
  // Lists of lists, each twice as long: short here, and endless for whoever writes it out.
  std::string laughs = "]q";
  laughs += '\0';
  for (char i = 0; i < 100; ++i) laughs += std::string("](h") + i + 'h' + i + "eq" + static_cast<char>(i + 1);
  CHECK(says(refusal(with_pickle(laughs + ".")), "a dict of tensors"));
}

TEST_CASE("archives that lie are refused with file, member and numbers") {
  const std::string good = tensor(4, 0, tuple({2, 2}), tuple({2, 1})), data(16, '\0');
  const std::string whole = with_pickle(good);
  for (std::size_t size = 0; size < whole.size(); size += 3) CHECK(!refusal(whole.substr(0, size)).empty());
  CHECK(says(refusal(Zip().add("a/data.pkl", good).done()), "tensor w: expected its storage 0"));
  CHECK(says(refusal(Zip().add("a/data/0", data).done()), "data.pkl in the archive"));
  CHECK(says(refusal(Zip().add("a/data.pkl", good, 8).done()), "member a/data.pkl"));
  CHECK(says(refusal(Zip().add("a/data.pkl", good, 0, 1).done()), "an encrypted one"));
  CHECK(says(refusal(Zip().add("a/data.pkl", good).add("a/data.pkl", good).done()), "this one twice"));
  CHECK(says(refusal(Zip().add("a/data.pkl", good).add("a/byteorder", "big").done()), "byteorder: expected little"));
  // Sizes and places in the directory.
  const auto changed = [&](std::size_t from_directory, std::uint32_t value) {
    Zip zip;
    zip.add("a/data.pkl", good).add("a/data/0", data);
    std::memcpy(zip.directory.data() + 46 + 10 + from_directory, &value, sizeof value);
    return refusal(zip.done());
  };
  CHECK(says(changed(24, 17), "expected 17 bytes, as a stored member has, found 16"));
  CHECK(says(changed(42, 1u << 31), "its place at 2147483648"));
  CHECK(says(changed(42, 0), "member"));  // over the first one
  CHECK(says(changed(20, 0xffffffff), "sizes of 64 bits"));
  CHECK(says(changed(0, 0), "an entry of the directory"));
}

TEST_CASE("the older form, cut short anywhere or with a lying storage, is refused") {
  const std::string old = read_file(reference("formats/old.pt"));
  for (std::size_t size = 0; size < old.size(); size += 7) CHECK(!refusal(old.substr(0, size)).empty());
}

}  // namespace headscope::pytorch_file_test
