// GPTQ: X.qweight I32 (words of in, out) holds each output's numbers down its column; X.scales (group, out); X.qzeros
// I32 (group, words of out) along its rows; X.g_idx I32 (in) says to which group an input belongs, where they are not
// in order. AWQ: X.qweight I32 (in, out ÷ 8) and X.qzeros I32 (group, out ÷ 8) hold eight outputs in a word, the even
// ones before the odd ones.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nth.h"
#include "core/model/formats/few_bits.h"
#include "core/model/formats/few_bits_numbers.h"
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
    Tensor numbers = Tensor::uninitialized({in, out});
    for (Index k = 0; k < in; ++k)
      few_bits::unpack_across(packed.data(), bits, k, out, numbers.mutable_data() + k * out);
    return tensor_of({numbers.transpose(0, 1),
                      0,
                      (1 << bits) - 1,
                      scales.transpose(0, 1),
                      zeros.transpose(0, 1),
                      {},
                      groups_of(file, module, in, groups)});
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

  /// Of each input; empty where equal groups follow one another.
  std::vector<std::int32_t> groups_of(const TensorFile& file, const std::string& module, Index in, Index groups) const {
    const std::string name = module + ".g_idx";
    std::vector<std::int32_t> group;
    if (file.contains(name)) {
      group = whole_numbers<std::int32_t>(file, name, DType::i32, {in});
      for (const std::int32_t each : group)
        if (each < 0 || each >= groups)
          throw Error(place(file, name), fmt::format("groups 0 to {}", groups - 1), std::to_string(each));
    } else {
      const Index each = group_size_ > 0 ? group_size_ : in;
      if ((in + each - 1) / each != groups)
        throw Error(place(file, module + ".scales"), fmt::format("a row for every {} of {} inputs", each, in),
                    fmt::format("{} rows", groups));
      for (Index k = 0; k < in; ++k) group.push_back(static_cast<std::int32_t>(k / each));
    }
    Index k = 0;
    const bool even = in % groups == 0 && std::ranges::all_of(group, [&](std::int32_t each) {
                        return each == static_cast<std::int32_t>(k++ / (in / groups));
                      });
    return even ? std::vector<std::int32_t>{} : group;
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
    group_length(file, module + ".scales", in, groups);
    const Tensor scales = floats_of(file, module + ".scales", groups, out),
                 zeros = unpacked(file, module + ".qzeros", groups, out),
                 numbers = unpacked(file, module + ".qweight", in, out);
    return tensor_of({numbers.transpose(0, 1), 0, 15, scales.transpose(0, 1), zeros.transpose(0, 1), {}});
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
