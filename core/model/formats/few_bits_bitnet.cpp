// BitNet b1.58: every number of a matrix is −s, 0 or s. "offline": X.weight U8 (out ÷ 4, in), in whose byte (r, i) lie
// the numbers of rows r, r + out ÷ 4, … of column i, two bits each from the lowest on, 0 for −s, and X.weight_scale
// (1), which is s, or of "bitlinear" 1 ÷ s. X.weight (out, in) of an "autobitlinear" folder is s times what lies there.
// "online": X.weight (out, in) of any numbers, of which s is the mean size; they are rounded to whole ones of it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/formats/few_bits.h"

namespace headscope {

namespace {

constexpr std::string_view weight = ".weight", scale = ".weight_scale";

class BitNet final : public FewBits {
 public:
  BitNet(bool online, bool divides) : online_(online), divides_(divides) {}

  std::span<const std::string_view> parts() const override {
    static constexpr std::array<std::string_view, 2> all{scale, weight};
    return all;
  }
  bool holds(const TensorFile& file, const std::string& module) const override {
    const std::string name = module + std::string(weight);
    if (!file.contains(name)) return false;
    if (!online_) return file.contains(module + std::string(scale)) || file.entry(name).dtype == DType::u8;
    return module.find("layers.") != std::string::npos && file.entry(name).shape.size() == 2;  // all linear, no norm
  }
  Tensor matrix(const TensorFile& file, const std::string& module, Index out, Index in) const override {
    const std::string name = module + std::string(weight), of_scale = module + std::string(scale);
    if (online_) return rounded(floats_of(file, name, out, in));
    if (!file.contains(of_scale))
      throw Error(file.path().string() + ": tensor " + name, of_scale + " beside it", "none");
    const float stored = floats_of(file, of_scale, 1, 1).at(0, 0);
    if (!(stored > 0) || !std::isfinite(stored))
      throw Error(file.path().string() + ": tensor " + of_scale, "a number above 0", fmt::format("{}", stored));
    const float size = divides_ ? 1 / stored : stored;
    Tensor numbers = Tensor::uninitialized({out, in});
    if (file.entry(name).dtype != DType::u8) {
      std::ranges::transform(floats_of(file, name, out, in).packed().values(), numbers.mutable_data(),
                             [&](float number) { return number * size; });
      return numbers;
    }
    if (out % 4 != 0)
      throw Error(file.path().string() + ": tensor " + name, "rows that are packed four by four",
                  fmt::format("{} of them", out));
    const Index rows = out / 4;
    const std::vector<std::uint8_t> packed = whole_numbers<std::uint8_t>(file, name, DType::u8, {rows, in});
    for (Index row = 0; row < out; ++row)
      for (Index i = 0; i < in; ++i) {
        const int code = nth(packed, row % rows * in + i) >> (2 * (row / rows)) & 3;
        if (code == 3)
          throw Error(file.path().string() + ": tensor " + name, "codes 0, 1 and 2",
                      fmt::format("3 in row {}, column {}", row, i));
        numbers.ref(row, i) = size * static_cast<float>(code - 1);
      }
    return numbers;
  }
  std::string dtype(const TensorFile&, const std::string&) const override { return "ternary"; }

 private:
  static Tensor rounded(const Tensor& given) {
    Tensor numbers = given.packed().copy();
    double sum = 0;
    for (const float number : numbers.values()) sum += std::abs(static_cast<double>(number));
    const double size = std::max(sum / static_cast<double>(numbers.size()), 1e-5);
    for (float& number : numbers.mutable_values())
      number = static_cast<float>(std::clamp(std::nearbyint(static_cast<double>(number) / size), -1.0, 1.0) * size);
    return numbers;
  }

  bool online_, divides_;
};

}  // namespace

std::unique_ptr<FewBits> bitnet_layout(const ConfigReader& how) {
  const bool automatic = how.choice<bool>("linear_class", how.text("linear_class", "bitlinear"),
                                          {{"bitlinear", false}, {"autobitlinear", true}}),
             online = how.choice<bool>("quantization_mode", how.text("quantization_mode", "offline"),
                                       {{"offline", false}, {"online", true}});
  if (how.flag("use_rms_norm", false))
    throw how.error("use_rms_norm", "false", "true", "a norm before each matrix is not read");
  if (const auto apart = how.texts("modules_to_not_convert"))
    if (*apart != std::vector<std::string>{"lm_head"})
      throw how.error("modules_to_not_convert", "\"lm_head\" alone, or no such key",
                      fmt::format("{}", fmt::join(*apart, ", ")),
                      "what all matrices of blocks read is rounded, and what the last one reads is not");
  return std::make_unique<BitNet>(automatic && online, !automatic);
}

int bits_of_inputs(const ConfigReader& config) {
  const std::optional<ConfigReader> how = config.object("quantization_config");
  return how && how->text("quant_method", "") == "bitnet" ? 8 : 0;
}

}  // namespace headscope
