// 4 bits: X.weight U8 (out · in ÷ 2, 1) holds two places in the table X.weight.quant_map, the first in the high half;
// X.weight.absmax is the factor of each block, or, rounded once more, a place in X.weight.nested_quant_map times
// X.weight.nested_absmax of a block of them, plus an offset. X.weight.quant_state.bitsandbytes__nf4 is JSON. 8 bits:
// X.weight I8 (out, in), X.SCB (out).

#include <fmt/format.h>

#include <array>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/formats/few_bits.h"

namespace headscope {

namespace {

constexpr std::array<std::string_view, 2> states{".weight.quant_state.bitsandbytes__nf4",
                                                 ".weight.quant_state.bitsandbytes__fp4"};
constexpr Index most_json = 1 << 16;

class BitsAndBytes final : public FewBits {
 public:
  std::span<const std::string_view> parts() const override {
    static constexpr std::array<std::string_view, 9> all{states[0],
                                                         states[1],
                                                         ".weight.absmax",
                                                         ".weight.quant_map",
                                                         ".weight.nested_absmax",
                                                         ".weight.nested_quant_map",
                                                         ".weight_format",
                                                         ".SCB",
                                                         ".weight"};
    return all;
  }
  bool holds(const TensorFile& file, const std::string& module) const override {
    return file.contains(module + ".weight.absmax") || file.contains(module + ".SCB");
  }
  Tensor matrix(const TensorFile& file, const std::string& module, Index out, Index in) const override {
    return file.contains(module + ".SCB") ? whole(file, module, out, in) : places(file, module, out, in);
  }
  std::string dtype(const TensorFile& file, const std::string& module) const override {
    if (file.contains(module + ".SCB")) return "INT8";
    return file.contains(module + std::string(states[0])) ? "NF4" : "FP4";
  }

 private:
  static Tensor whole(const TensorFile& file, const std::string& module, Index out, Index in) {
    const std::vector<std::int8_t> packed = whole_numbers<std::int8_t>(file, module + ".weight", DType::i8, {out, in});
    const Tensor largest = floats_of(file, module + ".SCB", out, 1);
    Tensor numbers = Tensor::uninitialized({out, in});
    float* to = numbers.mutable_data();
    const std::int8_t* from = packed.data();
    for (Index i = 0; i < out; ++i) {
      const float scale = largest.at(i, 0) / 127.0f;
      for (Index k = 0; k < in; ++k) *to++ = static_cast<float>(*from++) * scale;
    }
    return numbers;
  }

  static ConfigReader state(const TensorFile& file, const std::string& module) {
    for (const std::string_view ending : states)
      if (const std::string name = module + std::string(ending); file.contains(name)) {
        const std::int64_t size = file.entry(name).elements();
        if (size > most_json)
          throw Error(file.path().string() + ": tensor " + name, "a description in JSON",
                      fmt::format("{} bytes", size));
        const std::vector<std::uint8_t> text = whole_numbers<std::uint8_t>(file, name, DType::u8, {size});
        return ConfigReader::parse(std::string(text.begin(), text.end()), file.path().string() + ": tensor " + name);
      }
    throw Error(file.path().string(), module + std::string(states[0]) + " or " + std::string(states[1]), "neither",
                "without it nobody knows how the numbers of few bits were packed");
  }

  /// The factor of each block.
  static Tensor factors(const TensorFile& file, const std::string& module, const ConfigReader& how, Index blocks) {
    const std::string name = module + ".weight.absmax";
    if (!file.contains(module + ".weight.nested_absmax")) return floats_of(file, name, 1, blocks);
    const Index each = how.integer("nested_blocksize", 1, 1 << 20);
    const auto offset = static_cast<float>(how.number("nested_offset", -1e30, 1e30));
    const Tensor largest = floats_of(file, module + ".weight.nested_absmax", 1, (blocks + each - 1) / each),
                 table = floats_of(file, module + ".weight.nested_quant_map", 1, 256);
    const std::vector<std::uint8_t> place = whole_numbers<std::uint8_t>(file, name, DType::u8, {blocks});
    Tensor factors = Tensor::uninitialized({1, blocks});
    for (Index i = 0; i < blocks; ++i) {
      const float factor = table.at(0, nth(place, i)) * largest.at(0, i / each);
      factors.ref(0, i) = factor + offset;
    }
    return factors;
  }

  static Tensor places(const TensorFile& file, const std::string& module, Index out, Index in) {
    const ConfigReader how = state(file, module);
    const std::optional<std::vector<int>> shape = how.integers("shape", 1, config_limits::vocab);
    if (!shape || *shape != std::vector<int>{static_cast<int>(out), static_cast<int>(in)})
      throw how.error("shape", Shape{out, in}.str(), shape ? fmt::format("{}", fmt::join(*shape, " × ")) : "none",
                      "config.json and the weights disagree: do they belong together?");
    const Index each = how.integer("blocksize", 1, 1 << 20), count = out * in, bytes = (count + 1) / 2;
    const Tensor table = floats_of(file, module + ".weight.quant_map", 1, 16),
                 factor = factors(file, module, how, (count + each - 1) / each);
    const std::vector<std::uint8_t> packed =
        whole_numbers<std::uint8_t>(file, module + ".weight", DType::u8, {bytes, 1});
    Tensor numbers = Tensor::uninitialized({out, in});
    const float *const value = table.data(), *const block = factor.data();
    float* const to = numbers.mutable_data();
    for (Index begin = 0, b = 0; begin < count; begin += each, ++b)
      for (Index i = begin; i < std::min(begin + each, count); ++i) {
        const unsigned both = nth(packed, i / 2);
        to[i] = value[i % 2 == 0 ? both >> 4 : both & 15] * block[b];
      }
    return numbers;
  }
};

}  // namespace

std::unique_ptr<FewBits> bitsandbytes_layout(const ConfigReader&) {
  return std::make_unique<BitsAndBytes>();
}

}  // namespace headscope
