#include "core/io/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/io/safetensors.h"

namespace headscope {

namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};
constexpr std::size_t most_axes = 32;  // NumPy's own limit for long
constexpr std::size_t npy_header_cap = 65536;

/// Reads the Python dict literal of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  void read(NpyArray& array, bool& fortran) {
    expect('{');
    int seen = 0;
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        if (next() == '[') fail("a plain dtype", "a record dtype", "save each field as an array of its own");
        array.descr = quoted();
        seen |= 1;
      } else if (key == "fortran_order") {
        fortran = boolean();
        seen |= 2;
      } else if (key == "shape") {
        array.shape = tuple();
        seen |= 4;
      } else {
        fail("the keys descr, fortran_order and shape", key);
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (seen != 7) fail("the keys descr, fortran_order and shape", "fewer");
    if (next() != '\0') fail("nothing after the header's '}'", std::string(1, next()));
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& found, const std::string& hint = "") const {
    throw Error(where_ + ": npy header", expected, found, hint);
  }
  char next() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c), at_ < text_.size() ? fmt::format("'{}'", text_[at_]) : "the end");
  }
  std::string quoted() {
    const char quote = next();
    if (quote != '\'' && quote != '"')
      fail("a quoted name", at_ < text_.size() ? fmt::format("'{}'", quote) : "the end");
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a closing quote", "the end");
    const std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  bool boolean() {
    next();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False", std::string(text_.substr(at_, 8)));
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> out;
    expect('(');
    while (!accept(')')) {
      next();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc{} || value < 0) fail("extents of at least 0", std::string(text_.substr(at_, 24)));
      at_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // Python 2 wrote long integers so
      if (out.size() == most_axes) fail(fmt::format("at most {} axes", most_axes), "more");
      out.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

/// Sets kind and item size from descr: byte order, kind letter, size.
void read_descr(NpyArray& array) {
  const std::string& descr = array.descr;
  const auto refuse = [&](const std::string& hint) {
    throw Error(array.where, "a dtype of f2, f4, f8, V2 (bfloat16), i1 to i8, u1 to u8, b1, S or U", "'" + descr + "'",
                hint);
  };
  if (descr.size() >= 2 && descr[1] == 'O') refuse("an object array is a pickle; save it again with a plain dtype");
  if (descr.size() < 3) refuse("");
  const char order = descr[0], letter = descr[1];
  std::size_t size = 0;
  const char* const end = descr.data() + descr.size();
  const auto [stop, error] = std::from_chars(descr.data() + 2, end, size);
  if (error != std::errc{} || stop != end || size > (1u << 24)) refuse("");
  const auto fits = [&](std::initializer_list<std::size_t> sizes) {
    return std::ranges::find(sizes, size) != sizes.end();
  };
  using Kind = NpyArray::Kind;
  switch (letter) {
    case 'f':
      array.kind = Kind::floating;
      break;
    case 'V':  // what ml_dtypes' bfloat16 (JAX) is called in a file
      array.kind = Kind::bfloat16;
      break;
    case 'i':
      array.kind = Kind::signed_integer;
      break;
    case 'u':
      array.kind = Kind::unsigned_integer;
      break;
    case 'b':
      array.kind = Kind::boolean;
      break;
    case 'S':
      array.kind = Kind::bytes;
      break;
    case 'U':
      array.kind = Kind::text;
      break;
    default:
      refuse("");
  }
  if (letter == 'f' && !fits({2, 4, 8})) refuse("");
  if (letter == 'V' && size != 2) refuse("V2 is read as bfloat16; save other dtypes as float32");
  if ((letter == 'i' || letter == 'u') && !fits({1, 2, 4, 8})) refuse("");
  if (letter == 'b' && size != 1) refuse("");
  array.item = letter == 'U' ? 4 * size : size;
  const bool single_bytes = letter == 'S' || letter == 'b' || size == 1;
  if (order == '>' && !(single_bytes && letter != 'U'))
    refuse("big-endian; convert with array.astype(array.dtype.newbyteorder('<'))");
  if (std::string_view("<|=>").find(order) == std::string_view::npos) refuse("");
}

/// The number of items; Error when their bytes do not fit 63 bits. Extents of 0 count as 1 for that check.
std::int64_t checked_elements(const NpyArray& array) {
  std::int64_t bytes = static_cast<std::int64_t>(std::max<std::size_t>(array.item, 1));
  std::int64_t count = 1;
  for (const std::int64_t extent : array.shape) {
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes))
      throw Error(array.where, "a size that fits 63 bits", fmt::format("shape {} of {}", array.shape, array.descr));
    count *= extent;
  }
  return count;
}

/// Fortran order runs through the first axis first; C order through the last.
std::vector<std::byte> to_c_order(const std::byte* in, const NpyArray& array, std::int64_t count) {
  std::vector<std::byte> out(static_cast<std::size_t>(count) * array.item);
  const std::size_t rank = array.shape.size();
  std::vector<std::int64_t> index(rank, 0), stride(rank, 1);
  for (std::size_t axis = 1; axis < rank; ++axis) stride[axis] = stride[axis - 1] * array.shape[axis - 1];
  std::int64_t from = 0;
  for (std::int64_t to = 0; to < count; ++to) {
    std::memcpy(out.data() + static_cast<std::size_t>(to) * array.item,
                in + static_cast<std::size_t>(from) * array.item, array.item);
    for (std::size_t axis = rank; axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < array.shape[axis]) break;
      from -= stride[axis] * array.shape[axis];
      index[axis] = 0;
    }
  }
  return out;
}

/// Calls f(item) for every item read as T.
template <class T, class F>
void each(const NpyArray& array, F f) {
  const std::int64_t count = array.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    T item;
    std::memcpy(&item, array.data.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    f(item);
  }
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  const char32_t lead = more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0;
  out += static_cast<char>(lead | c >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

}  // namespace

std::int64_t NpyArray::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

Tensor NpyArray::tensor() const {
  if (kind != Kind::floating && kind != Kind::bfloat16)
    throw Error(where, "floating-point numbers (f2, f4, f8)", "dtype '" + descr + "'");
  if (shape.size() > Shape::max_rank)
    throw Error(where, fmt::format("at most {} axes", Shape::max_rank), fmt::format("shape {}", shape));
  Tensor out = Tensor::uninitialized(Shape(std::span<const Index>(shape)));
  float* to = out.mutable_data();
  if (kind == Kind::bfloat16)
    each<std::uint16_t>(*this, [&](std::uint16_t x) { *to++ = std::bit_cast<float>(std::uint32_t{x} << 16); });
  else if (item == 2)
    each<std::uint16_t>(*this, [&](std::uint16_t x) { *to++ = half_to_float(x); });
  if (item == 4) each<float>(*this, [&](float x) { *to++ = x; });
  if (item == 8) each<double>(*this, [&](double x) { *to++ = static_cast<float>(x); });
  return out;
}

std::vector<std::int64_t> NpyArray::integers() const {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(elements()));
  const auto keep = [&](auto x) { out.push_back(static_cast<std::int64_t>(x)); };
  if (kind == Kind::signed_integer) {
    if (item == 1) each<std::int8_t>(*this, keep);
    if (item == 2) each<std::int16_t>(*this, keep);
    if (item == 4) each<std::int32_t>(*this, keep);
    if (item == 8) each<std::int64_t>(*this, keep);
  } else if (kind == Kind::unsigned_integer) {
    if (item == 1) each<std::uint8_t>(*this, keep);
    if (item == 2) each<std::uint16_t>(*this, keep);
    if (item == 4) each<std::uint32_t>(*this, keep);
    if (item == 8)
      each<std::uint64_t>(*this, [&](std::uint64_t x) {
        if (x > static_cast<std::uint64_t>(INT64_MAX)) throw Error(where, "integers below 2^63", fmt::format("{}", x));
        keep(x);
      });
  } else if (kind == Kind::boolean) {
    each<std::uint8_t>(*this, [&](std::uint8_t x) { keep(x != 0); });
  } else {
    throw Error(where, "integers or booleans", "dtype '" + descr + "'");
  }
  return out;
}

std::vector<std::string> NpyArray::strings() const {
  if (kind != Kind::text && kind != Kind::bytes) throw Error(where, "text (U or S)", "dtype '" + descr + "'");
  std::vector<std::string> out(static_cast<std::size_t>(elements()));
  const std::byte* at = data.data();
  for (std::string& text : out) {
    if (kind == Kind::bytes) {
      text.assign(reinterpret_cast<const char*>(at), item);
      text.resize(text.find_last_not_of('\0') + 1);
      at += item;
      continue;
    }
    std::size_t length = 0;  // bytes up to the last character that is not padding
    for (std::size_t i = 0; i < item; i += 4, at += 4) {
      char32_t c;
      std::memcpy(&c, at, 4);
      if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        throw Error(where, "Unicode characters", fmt::format("the number {:#x}", std::uint32_t{c}));
      append_utf8(text, c);
      if (c) length = text.size();
    }
    text.resize(length);
  }
  return out;
}

NpyArray parse_npy(std::vector<std::byte> bytes, const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < 10 || text.substr(0, magic.size()) != magic)
    throw Error(where, "a NumPy array (\\x93NUMPY …)", fmt::format("{} bytes of something else", text.size()));
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) throw Error(where, "npy format version 1, 2 or 3", fmt::format("{}", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4, start = 8 + length_bytes;
  std::uint32_t length = 0;
  if (text.size() < start)
    throw Error(where, fmt::format("{} bytes before the header", start), fmt::format("{}", text.size()));
  std::memcpy(&length, text.data() + 8, length_bytes);
  if (length > npy_header_cap || length > text.size() - start)
    throw Error(where, fmt::format("a header of at most {} bytes", std::min(npy_header_cap, text.size() - start)),
                fmt::format("a stated length of {}", length));

  NpyArray array;
  array.where = where;
  bool fortran = false;
  HeaderReader(text.substr(start, length), where).read(array, fortran);
  read_descr(array);
  const std::int64_t count = checked_elements(array);
  const std::size_t before = start + length, data = bytes.size() - before;
  if (data != static_cast<std::size_t>(count) * array.item)
    throw Error(where,
                fmt::format("{} bytes for shape {} of '{}'", static_cast<std::size_t>(count) * array.item, array.shape,
                            array.descr),
                fmt::format("{}", data), "the file is cut short or damaged");
  if (array.item == 0 && count > (1 << 24))  // items of no bytes could claim any number
    throw Error(where, "at most 16777216 empty texts", fmt::format("{}", count));
  if (fortran && array.shape.size() > 1) {
    array.data = to_c_order(bytes.data() + before, array, count);
  } else {
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(before));
    array.data = std::move(bytes);
  }
  return array;
}

}  // namespace headscope
