// X.weight U32 (out, words of in) holds whole numbers from 0 on; X.scales and X.biases (out, group). Without biases
// (mode mxfp4): E2M1, X.scales U8, exponents.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/formats/few_bits.h"
#include "core/model/formats/few_bits_numbers.h"
#include "core/tensor/few_bits.h"

namespace headscope {

namespace {

class Mlx final : public FewBits {
 public:
  explicit Mlx(int group_size) : group_size_(group_size) {}

  std::span<const std::string_view> parts() const override {
    static constexpr std::array<std::string_view, 3> all{".weight", ".scales", ".biases"};
    return all;
  }
  bool holds(const TensorFile& file, const std::string& module) const override {
    const auto found = file.tensors().find(module + ".weight");
    return found != file.tensors().end() && found->second.dtype == DType::u32 && file.contains(module + ".scales");
  }

  Tensor matrix(const TensorFile& file, const std::string& module, Index out, Index in) const override {
    const std::string weight = module + ".weight", scale = module + ".scales", bias = module + ".biases";
    const int bits = bits_of(file, module, in);
    const Index words = few_bits::words_of(bits, in), groups = last_extent(file, scale);
    group_length(file, scale, in, groups);
    const std::vector<std::uint32_t> stream = whole_numbers<std::uint32_t>(file, weight, DType::u32, {out, words});
    if (!file.contains(bias)) return pairs(file, module, stream, bits, out, in);
    Tensor numbers = Tensor::uninitialized({out, in});
    for (Index i = 0; i < out; ++i)
      few_bits::unpack(stream.data() + i * words, bits, in, numbers.mutable_data() + i * in);
    return tensor_of(
        {numbers, 0, (1 << bits) - 1, floats_of(file, scale, out, groups), {}, floats_of(file, bias, out, groups)});
  }

  std::string dtype(const TensorFile& file, const std::string& module) const override {
    if (!file.contains(module + ".biases")) return "MXFP4";
    const Index words = last_extent(file, module + ".weight"), in = last_extent(file, module + ".scales") * group_size_;
    return in > 0 && words * 32 % in == 0 ? fmt::format("MLX {} bits", words * 32 / in) : "MLX";
  }

 private:
  static int bits_of(const TensorFile& file, const std::string& module, Index in) {
    const TensorEntry& entry = file.entry(module + ".weight");
    for (int bits = 8; bits > 1; --bits)
      if (entry.shape.size() == 2 && entry.shape[1] == few_bits::words_of(bits, in)) return bits;
    throw Error(file.path().string() + ": tensor " + entry.name, fmt::format("rows of {} numbers of 2 to 8 bits", in),
                fmt::format("shape [{}]", fmt::join(entry.shape, ", ")),
                "config.json and the weights disagree: do they belong together?");
  }

  /// Words hold the bytes of pairs, lowest first.
  static Tensor pairs(const TensorFile& file, const std::string& module, std::span<const std::uint32_t> stream,
                      int bits, Index out, Index in) {
    constexpr Index group = 32;
    if (bits != 4 || in % group != 0)
      throw Error(file.path().string() + ": tensor " + module + ".scales",
                  "biases beside it, or numbers of 4 bits in groups of 32 (mxfp4)",
                  fmt::format("{} numbers of {} bits without biases", in, bits));
    std::vector<std::uint8_t> bytes;
    bytes.reserve(4 * stream.size());
    for (const std::uint32_t word : stream)
      for (int i = 0; i < 32; i += 8) bytes.push_back(static_cast<std::uint8_t>(word >> i));
    return mxfp4(file, module + ".scales", {out, in / group}, bytes, {out, in});
  }

  int group_size_;  // of most matrices
};

}  // namespace

std::unique_ptr<FewBits> mlx_layout(const ConfigReader& how) {
  const std::string mode = how.text("mode", "affine");
  how.choice<bool>("mode", mode, {{"affine", true}, {"mxfp4", true}});
  return std::make_unique<Mlx>(how.integer("group_size", 1, config_limits::d_mlp, 64));
}

}  // namespace headscope
