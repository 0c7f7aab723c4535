// GPTQ: X.qweight I32 (words of in, out) holds each output's numbers down its column; X.scales (group, out); X.qzeros
// I32 (group, words of out) along its rows; X.g_idx I32 (in) says to which group an input belongs, where they are not
// in order. AWQ: X.qweight I32 (in, out ÷ 8) and X.qzeros I32 (group, out ÷ 8) hold eight outputs in a word, the even
// ones before the odd ones.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nth.h"
#include "core/model/formats/few_bits.h"
#include "core/tensor/few_bits.h"

namespace headscope {

namespace {

std::string place(const TensorFile& file, const std::string& name) {
  return file.path().string() + ": tensor " + name;
}

Index rows_of(const TensorFile& file, const std::string& name) {
  const TensorEntry& entry = file.entry(name);
  if (entry.shape.size() != 2)
    throw Error(place(file, name), "a matrix", fmt::format("shape [{}]", fmt::join(entry.shape, ", ")));
  return entry.shape[0];
}

/// Row k of a matrix whose inputs' groups are known: scale · (number − zero).
void scale_row(const float* scale, const float* zero, Index columns, float* numbers) {
  for (Index j = 0; j < columns; ++j) numbers[j] = scale[j] * (numbers[j] - zero[j]);
}

class Gptq final : public FewBits {
 public:
  /// `less`: 1 was taken from zeros when they were packed.
  Gptq(int group_size, bool less) : group_size_(group_size), less_(less) {}

  std::span<const std::string_view> parts() const override {
    static constexpr std::array<std::string_view, 4> all{".qweight", ".qzeros", ".scales", ".g_idx"};
    return all;
  }
  bool holds(const TensorFile& file, const std::string& module) const override {
    return file.contains(module + ".qweight");
  }

  Tensor matrix(const TensorFile& file, const std::string& module, Index out, Index in) const override {
    const std::string weight = module + ".qweight";
    const Index words = rows_of(file, weight);
    const int bits = bits_of(in, words);
    if (bits == 0)
      throw Error(place(file, weight), fmt::format("2, 3, 4 or 8 bits of {} inputs", in), fmt::format("{} rows", words),
                  "config.json and the weights disagree: do they belong together?");
    const Index groups = rows_of(file, module + ".scales");
    const std::vector<std::uint32_t> packed = whole_numbers<std::uint32_t>(file, weight, DType::i32, {words, out});
    const Tensor scales = floats_of(file, module + ".scales", groups, out),
                 zeros = zeros_of(file, module, bits, groups, out);
    const std::vector<std::int32_t> group = groups_of(file, module, in, groups);
    Tensor numbers = Tensor::uninitialized({in, out});
    for (Index k = 0; k < in; ++k) {
      float* const row = numbers.mutable_data() + k * out;
      few_bits::unpack_across(packed.data(), bits, k, out, row);
      const Index from = nth(group, k) * out;
      scale_row(scales.data() + from, zeros.data() + from, out, row);
    }
    return numbers.transpose(0, 1);
  }

  std::string dtype(const TensorFile& file, const std::string& module) const override {
    // One zero for each output and group, packed as the numbers are.
    const Index out = last_extent(file, module + ".qweight"), words = last_extent(file, module + ".qzeros");
    return fmt::format("GPTQ {} bits", bits_of(out, words));
  }

 private:
  static int bits_of(Index count, Index words) {
    for (const int bits : {2, 3, 4, 8})
      if (few_bits::words_of(bits, count) == words) return bits;
    return 0;
  }

  Tensor zeros_of(const TensorFile& file, const std::string& module, int bits, Index groups, Index out) const {
    const Index words = few_bits::words_of(bits, out);
    const std::vector<std::uint32_t> packed =
        whole_numbers<std::uint32_t>(file, module + ".qzeros", DType::i32, {groups, words});
    Tensor zeros = Tensor::uninitialized({groups, out});
    for (Index g = 0; g < groups; ++g)
      few_bits::unpack(packed.data() + g * words, bits, out, zeros.mutable_data() + g * out);
    if (less_)  // 0 less 1 was packed as the largest number
      for (float& zero : zeros.mutable_values())
        zero = static_cast<float>((static_cast<unsigned>(zero) + 1) & ((1u << bits) - 1));
    return zeros;
  }

  std::vector<std::int32_t> groups_of(const TensorFile& file, const std::string& module, Index in, Index groups) const {
    const std::string name = module + ".g_idx";
    if (file.contains(name)) {
      std::vector<std::int32_t> found = whole_numbers<std::int32_t>(file, name, DType::i32, {in});
      for (const std::int32_t group : found)
        if (group < 0 || group >= groups)
          throw Error(place(file, name), fmt::format("groups 0 to {}", groups - 1), std::to_string(group));
      return found;
    }
    const Index each = group_size_ > 0 ? group_size_ : in;
    if ((in + each - 1) / each != groups)
      throw Error(place(file, module + ".scales"), fmt::format("a row for every {} of {} inputs", each, in),
                  fmt::format("{} rows", groups));
    std::vector<std::int32_t> even(static_cast<std::size_t>(in));
    for (Index k = 0; k < in; ++k) nth(even, k) = static_cast<std::int32_t>(k / each);
    return even;
  }

  int group_size_;
  bool less_;
};

class Awq final : public FewBits {
 public:
  std::span<const std::string_view> parts() const override {
    static constexpr std::array<std::string_view, 3> all{".qweight", ".qzeros", ".scales"};
    return all;
  }
  bool holds(const TensorFile& file, const std::string& module) const override {
    return file.contains(module + ".qweight");
  }

  Tensor matrix(const TensorFile& file, const std::string& module, Index out, Index in) const override {
    const Index groups = rows_of(file, module + ".scales");
    const Index each = group_length(file, module + ".scales", in, groups);
    const Tensor scales = floats_of(file, module + ".scales", groups, out),
                 zeros = unpacked(file, module + ".qzeros", groups, out);
    Tensor numbers = unpacked(file, module + ".qweight", in, out);
    for (Index k = 0; k < in; ++k) {
      const Index from = k / each * out;
      scale_row(scales.data() + from, zeros.data() + from, out, numbers.mutable_data() + k * out);
    }
    return numbers.transpose(0, 1);
  }
  std::string dtype(const TensorFile&, const std::string&) const override { return "AWQ 4 bits"; }

 private:
  static Tensor unpacked(const TensorFile& file, const std::string& name, Index rows, Index columns) {
    constexpr Index together = 8;
    constexpr std::array<Index, together> order{0, 2, 4, 6, 1, 3, 5, 7};
    if (columns % together != 0)
      throw Error(place(file, name), fmt::format("{} outputs in words of {}", columns, together), "a remainder");
    const std::vector<std::uint32_t> packed =
        whole_numbers<std::uint32_t>(file, name, DType::i32, {rows, columns / together});
    Tensor numbers = Tensor::uninitialized({rows, columns});
    float* to = numbers.mutable_data();
    for (const std::uint32_t word : packed) {
      for (Index i = 0; i < together; ++i)
        to[nth(order, i)] = static_cast<float>(static_cast<int>((word >> (4 * i)) & 15));
      to += together;
    }
    return numbers;
  }
};

}  // namespace

std::unique_ptr<FewBits> gptq_layout(const ConfigReader& how) {
  const char* const key = how.has("checkpoint_format") ? "checkpoint_format" : "format";
  const std::string format = how.text(key, "gptq");
  const bool less = how.choice<bool>(key, format, {{"gptq", true}, {"gptq_v2", false}});
  return std::make_unique<Gptq>(how.integer("group_size", -1, config_limits::d_mlp, -1), less);
}

std::unique_ptr<FewBits> awq_layout(const ConfigReader& how) {
  std::string version = how.text("version", "gemm");
  for (char& letter : version) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (version != "gemm") throw how.error("version", "gemm", excerpt(version, 60), "other orders of AWQ are not read");
  if (const int bits = how.integer("bits", 1, 16, 4); bits != 4)
    throw how.error("bits", "4", std::to_string(bits), "AWQ is read with 4 bits");
  return std::make_unique<Awq>();
}

}  // namespace headscope
