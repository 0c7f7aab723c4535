#include "core/io/gguf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/utf8.h"
#include "core/io/data_spans.h"

namespace headscope {

namespace {

constexpr std::string_view gguf_magic = "GGUF";
constexpr std::uint64_t default_alignment = 32, longest_name = 65535;
// A vocabulary of a quarter of a million tokens with its merges takes some ten megabytes.
constexpr std::uint64_t most_items = std::uint64_t{1} << 24, most_held = std::uint64_t{1} << 29;

struct BlockType {
  std::uint32_t number;
  DType type;
};
constexpr std::array read_types{
    BlockType{0, DType::f32},      BlockType{1, DType::f16},     BlockType{2, DType::q4_0},
    BlockType{3, DType::q4_1},     BlockType{6, DType::q5_0},    BlockType{7, DType::q5_1},
    BlockType{8, DType::q8_0},     BlockType{10, DType::q2_k},   BlockType{11, DType::q3_k},
    BlockType{12, DType::q4_k},    BlockType{13, DType::q5_k},   BlockType{14, DType::q6_k},
    BlockType{16, DType::iq2_xxs}, BlockType{17, DType::iq2_xs}, BlockType{18, DType::iq3_xxs},
    BlockType{19, DType::iq1_s},   BlockType{20, DType::iq4_nl}, BlockType{21, DType::iq3_s},
    BlockType{22, DType::iq2_s},   BlockType{23, DType::iq4_xs}, BlockType{24, DType::i8},
    BlockType{25, DType::i16},     BlockType{26, DType::i32},    BlockType{27, DType::i64},
    BlockType{28, DType::f64},     BlockType{29, DType::iq1_m},  BlockType{30, DType::bf16},
    BlockType{34, DType::tq1_0},   BlockType{35, DType::tq2_0},  BlockType{39, DType::mxfp4},
    BlockType{40, DType::nvfp4},
};
/// Those that are not read, by the names that llama.cpp gives them.
std::string name_of_other(std::uint32_t number) {
  static const std::map<std::uint32_t, const char*> names = {{9, "Q8_1"}, {15, "Q8_K"}, {41, "Q1_0"}};
  const auto found = names.find(number);
  return found == names.end() ? fmt::format("type {}", number) : found->second;
}

/// The bytes of a file in order, a window at a time; every length is compared with what is left of the file first.
class Stream {
 public:
  explicit Stream(const InputFile& file) : file_(file), where_(file.path().string()) {}

  std::uint64_t place() const { return base_ + at_; }
  std::uint64_t left() const { return file_.size() - place(); }

  std::string text(std::uint64_t size) {
    need(size);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    copy(bytes.data(), bytes.size());
    return bytes;
  }
  template <class T>
  T number() {
    need(sizeof(T));
    T value;
    copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  void need(std::uint64_t size) const {
    if (size > left())
      throw Error(where_, fmt::format("{} bytes more at byte {}", size, place()), fmt::format("{} to the end", left()),
                  "the file may be cut short or damaged; fetch it again");
  }

 private:
  void copy(char* to, std::size_t size) {
    while (size > 0) {
      if (at_ == window_.size()) {
        base_ += at_;
        at_ = 0;
        window_ = file_.text(base_, static_cast<std::size_t>(std::min<std::uint64_t>(file_.size() - base_, 1 << 16)));
      }
      const std::size_t part = std::min(size, window_.size() - at_);
      std::memcpy(to, window_.data() + at_, part);
      at_ += part;
      to += part;
      size -= part;
    }
  }

  const InputFile& file_;
  std::string where_, window_;
  std::uint64_t base_ = 0;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::shared_ptr<const InputFile> file)
      : file_(std::move(file)), where_(file_->path().string()), in_(*file_) {}

  GgufFile::Keys keys;
  TensorFile::Tensors tensors;
  std::uint32_t version = 0;

  void read() {
    if (file_->size() < 24 || in_.text(gguf_magic.size()) != gguf_magic)
      throw Error(where_, "a GGUF file", fmt::format("{} bytes of something else", file_->size()));
    version = in_.number<std::uint32_t>();
    if (version == 1 || (version & 0xffff) == 0)
      throw Error(where_, "GGUF of version 2 or 3, little-endian", version == 1 ? "version 1" : "a big-endian file",
                  "convert it with llama.cpp's gguf tools");
    if (version > 3) throw Error(where_, "GGUF of version 2 or 3", fmt::format("version {}", version));
    const auto tensor_count = in_.number<std::uint64_t>(), key_count = in_.number<std::uint64_t>();
    // Each takes at least so many bytes.
    expect(key_count, 13, "keys");
    expect(tensor_count, 24, "tensors");
    for (std::uint64_t i = 0; i < key_count; ++i) read_key(i);
    read_tensors(tensor_count);
  }

 private:
  void expect(std::uint64_t count, std::uint64_t least, const char* what) const {
    if (count > in_.left() / least)
      throw Error(where_,
                  fmt::format("at most {} {} in the {} bytes that are left", in_.left() / least, what, in_.left()),
                  fmt::format("{}", count), "the file may be cut short or damaged; fetch it again");
  }

  std::string string(const std::string& who, std::uint64_t most = most_held) {
    const auto size = in_.number<std::uint64_t>();
    if (size > most) throw Error(who, fmt::format("a string of at most {} bytes", most), fmt::format("{}", size));
    hold(size, who);
    std::string value = in_.text(size);
    if (const auto bad = first_invalid_utf8(value))
      throw Error(who, "valid UTF-8",
                  fmt::format("byte 0x{:02X} at offset {}", static_cast<unsigned char>(value[*bad]), *bad));
    return value;
  }

  /// Counts what is kept in memory of the keys.
  void hold(std::uint64_t bytes, const std::string& who) {
    held_ += bytes;
    if (held_ > most_held) throw Error(who, fmt::format("keys of at most {} bytes", most_held), "more");
  }

  void read_key(std::uint64_t i) {
    std::string name = string(fmt::format("{}: key {}", where_, i), longest_name);
    const std::string who = where_ + ": " + excerpt(name, 80);
    const auto type = in_.number<std::uint32_t>();
    GgufValue value = type == array_type ? read_array(who) : read_value(type, who);
    if (!keys.emplace(std::move(name), std::move(value)).second) throw Error(who, "every key once", "this one twice");
  }

  static constexpr std::uint32_t bool_type = 7, string_type = 8, array_type = 9;

  GgufValue read_value(std::uint32_t type, const std::string& who) {
    switch (type) {
      case bool_type:
        return in_.number<std::uint8_t>() != 0;
      case string_type:
        return string(who);
      case 6:
      case 12:
        return as_written(real(type), type);
      default:
        return whole(type, who);
    }
  }

  double real(std::uint32_t type) {
    return type == 6 ? static_cast<double>(in_.number<float>()) : in_.number<double>();
  }

  /// 1e-05 was written by a person; as a float32 it is 9.99999975e-06. The shortest number that gives the same float32
  /// is what was meant.
  static double as_written(double value, std::uint32_t type) {
    if (type != 6 || !std::isfinite(value)) return value;
    std::array<char, 64> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(value));
    std::from_chars(digits.data(), written.ptr, value);
    return value;
  }

  std::int64_t whole(std::uint32_t type, const std::string& who) {
    switch (type) {
      case 0:
        return in_.number<std::uint8_t>();
      case 1:
        return in_.number<std::int8_t>();
      case 2:
        return in_.number<std::uint16_t>();
      case 3:
        return in_.number<std::int16_t>();
      case 4:
        return in_.number<std::uint32_t>();
      case 5:
        return in_.number<std::int32_t>();
      case 10:
        return static_cast<std::int64_t>(std::min<std::uint64_t>(in_.number<std::uint64_t>(), INT64_MAX));
      case 11:
        return in_.number<std::int64_t>();
      default:
        throw Error(who, "a type of value from 0 to 12", fmt::format("{}", type));
    }
  }

  GgufValue read_array(const std::string& who) {
    const auto type = in_.number<std::uint32_t>();
    const auto count = in_.number<std::uint64_t>();
    static constexpr std::array<std::uint64_t, 13> least{1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    if (type >= least.size() || type == array_type)
      throw Error(who, "an array of numbers, truth values or strings", fmt::format("type {}", type));
    if (count > most_items || count > in_.left() / least[type])
      throw Error(who, fmt::format("at most {} items", std::min(most_items, in_.left() / least[type])),
                  fmt::format("{}", count), "the file may be cut short or damaged; fetch it again");
    const auto all = [&]<class T>(std::vector<T> items, const auto& next) -> GgufValue {
      hold(count * (std::is_same_v<T, bool> ? 1 : sizeof(T)), who);
      items.reserve(static_cast<std::size_t>(count));
      for (std::uint64_t i = 0; i < count; ++i) items.push_back(next());
      return items;
    };
    if (type == bool_type) return all(std::vector<bool>(), [&] { return in_.number<std::uint8_t>() != 0; });
    if (type == string_type) return all(std::vector<std::string>(), [&] { return string(who); });
    if (type == 6 || type == 12) return all(std::vector<double>(), [&] { return real(type); });
    return all(std::vector<std::int64_t>(), [&] { return whole(type, who); });
  }

  void read_tensors(std::uint64_t count) {
    std::uint64_t alignment = default_alignment;
    if (const auto told = keys.find("general.alignment"); told != keys.end()) {
      const std::int64_t* const value = std::get_if<std::int64_t>(&told->second);
      if (!value || *value <= 0 || *value > (1 << 20) || !std::has_single_bit(static_cast<std::uint64_t>(*value)))
        throw Error(where_ + ": general.alignment", "a power of two up to 2^20",
                    value ? fmt::format("{}", *value) : "no whole number");
      alignment = static_cast<std::uint64_t>(*value);
    }
    for (std::uint64_t i = 0; i < count; ++i) read_tensor(i, alignment);

    const std::uint64_t start = (in_.place() + alignment - 1) / alignment * alignment;
    std::vector<DataSpan> spans;
    for (auto& [name, entry] : tensors) {
      if (start > file_->size() || entry.offset > file_->size() - start ||
          entry.size > file_->size() - start - entry.offset)
        throw Error(where_ + ": tensor " + excerpt(name),
                    fmt::format("data inside the file of {} bytes", file_->size()),
                    fmt::format("{} bytes at {} + {}", entry.size, start, entry.offset),
                    "the file may be cut short or damaged; fetch it again");
      entry.offset += start;
      spans.push_back({entry.offset, entry.offset + entry.size, &name});
    }
    sort_apart(spans, where_);
  }

  void read_tensor(std::uint64_t i, std::uint64_t alignment) {
    TensorEntry entry;
    entry.name = string(fmt::format("{}: tensor {}", where_, i), longest_name);
    entry.file = file_;
    const std::string who = where_ + ": tensor " + excerpt(entry.name);
    const auto axes = in_.number<std::uint32_t>();
    if (axes > Shape::max_rank)
      throw Error(who, fmt::format("at most {} axes", Shape::max_rank), fmt::format("{}", axes));
    for (std::uint32_t axis = 0; axis < axes; ++axis) {
      const auto extent = in_.number<std::uint64_t>();
      if (extent > static_cast<std::uint64_t>(INT64_MAX))
        throw Error(who, "extents below 2^63", fmt::format("{}", extent));
      entry.shape.insert(entry.shape.begin(), static_cast<std::int64_t>(extent));
    }
    const auto number = in_.number<std::uint32_t>();
    const auto type = std::ranges::find(read_types, number, &BlockType::number);
    if (type == read_types.end())
      throw Error(who,
                  "F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, IQ1_S to IQ4_XS, MXFP4, NVFP4, "
                  "TQ1_0 or TQ2_0",
                  name_of_other(number), "take the model in one of these quantisations");
    entry.dtype = type->type;
    const auto bytes = stored_bytes(entry.shape, entry.dtype);
    if (!bytes)
      throw Error(who,
                  fmt::format("rows of whole blocks of {}, in fewer than 2^63 bytes", dtype_info(entry.dtype).items),
                  fmt::format("shape {} of {}", entry.shape, dtype_name(entry.dtype)));
    entry.size = *bytes;
    entry.offset = in_.number<std::uint64_t>();
    if (entry.offset % alignment != 0)
      throw Error(who, fmt::format("an offset that {} divides", alignment), fmt::format("{}", entry.offset));
    std::string name = entry.name;
    if (!tensors.emplace(std::move(name), std::move(entry)).second)
      throw Error(who, "every name once", "this one twice");
  }

  std::shared_ptr<const InputFile> file_;
  std::string where_;
  Stream in_;
  std::uint64_t held_ = 0;
};

/// A short value, for a person.
std::string shown(const GgufValue& value) {
  return std::visit(
      []<class T>(const T& it) -> std::string {
        if constexpr (std::is_same_v<T, bool>)
          return it ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::string>)
          return excerpt(it);
        else if constexpr (std::is_arithmetic_v<T>)
          return fmt::format("{}", it);
        else
          return fmt::format("{} items", it.size());
      },
      value);
}

}  // namespace

bool looks_like_gguf(const InputFile& file) {
  return file.size() >= gguf_magic.size() && file.text(0, gguf_magic.size()) == gguf_magic;
}

void GgufFile::wrong_type(const std::string& key) const {
  throw Error(path().string() + ": " + excerpt(key, 80), "a value of another type", shown(keys_.at(key)));
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  Reader reader(InputFile::open(path));
  reader.read();
  Metadata metadata;
  for (const auto& [key, value] : reader.keys) metadata[key] = shown(value);
  return {TensorFile(path, fmt::format("GGUF v{}", reader.version), std::move(reader.tensors), std::move(metadata)),
          std::move(reader.keys)};
}

}  // namespace headscope
