// compressed-tensors: X.weight_packed I32 (out, words of in) holds whole numbers from −2^(bits − 1) on, or X.weight I8
// (out, in) whole ones; X.weight_scale (out, group), X.weight_zero_point packed down its columns, X.weight_g_idx as in
// GPTQ. X.weight_packed U8 (out, in ÷ 2): pairs of E2M1, the first in the low half, whose scales are exponents (MXFP4,
// U8), or F8 and divided by X.weight_global_scale (NVFP4). modelopt's NVFP4: X.weight U8, X.weight_scale F8, and
// X.weight_scale_2 that multiplies.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/model/formats/few_bits.h"
#include "core/model/formats/few_bits_numbers.h"
#include "core/tensor/few_bits.h"

namespace headscope {

namespace {

/// (out, group) of a tensor that has a scale for each, for each output, or one for all.
Tensor by_output(const Tensor& given, const TensorFile& file, const std::string& name, Index out, Index in) {
  const Index down = given.rank() == 0 ? 1 : given.dim(0), across = down > 0 ? given.size() / down : 0;
  const Tensor scales = given.packed().reshape({down, across});
  const Index tall = group_length(file, name, out, down);
  group_length(file, name, in, across);
  if (tall == 1) return scales;
  Tensor spread = Tensor::uninitialized({out, across});
  for (Index i = 0; i < out; ++i)
    for (Index g = 0; g < across; ++g) spread.ref(i, g) = scales.at(i / tall, g);
  return spread;
}

/// (out, in ÷ 2) bytes, each the numbers 2k and 2k + 1, times scale(i, k).
template <class Scale>
Tensor pairs(const TensorFile& file, const std::string& name, Index out, Index in, Index group, const Scale& scale) {
  const std::vector<std::uint8_t> packed = whole_numbers<std::uint8_t>(file, name, DType::u8, {out, in / 2});
  Tensor numbers = Tensor::uninitialized({out, in});
  float* to = numbers.mutable_data();
  const std::uint8_t* from = packed.data();
  for (Index i = 0; i < out; ++i)
    for (Index k = 0; k < in; k += group) {
      const float factor = scale(i, k / group);
      for (Index j = 0; j < group; j += 2, ++from) {
        *to++ = e2m1(*from) * factor;
        *to++ = e2m1(*from >> 4) * factor;
      }
    }
  return numbers;
}

/// Inputs that share a scale of (out, group) ones: an even number.
Index group_of_pairs(const TensorFile& file, const std::string& name, Index out, Index in) {
  const TensorEntry& entry = file.entry(name);
  const Index group = group_length(file, name, in, out > 0 ? entry.elements() / out : 0);
  if (group % 2 != 0)
    throw Error(file.path().string() + ": tensor " + name, "scales of whole pairs", fmt::format("one for {}", group));
  return group;
}

class Compressed final : public FewBits {
 public:
  std::span<const std::string_view> parts() const override {
    static constexpr std::array<std::string_view, 7> all{".weight_packed",      ".weight_scale", ".weight_zero_point",
                                                         ".weight_shape",       ".weight_g_idx", ".weight",
                                                         ".weight_global_scale"};
    return all;
  }
  bool holds(const TensorFile& file, const std::string& module) const override {
    if (file.contains(module + ".weight_packed")) return true;
    const auto found = file.tensors().find(module + ".weight");
    return found != file.tensors().end() && found->second.dtype == DType::i8 && file.contains(module + ".weight_scale");
  }
  Tensor matrix(const TensorFile& file, const std::string& module, Index out, Index in) const override {
    const std::string packed = module + ".weight_packed";
    if (!file.contains(packed)) return scaled(file, module, whole(file, module + ".weight", out, in), 8);
    if (file.entry(packed).dtype == DType::u8) return of_pairs(file, module, out, in);
    const int bits = bits_of(file, module, in);
    const Index words = few_bits::words_of(bits, in);
    const std::vector<std::uint32_t> stream = whole_numbers<std::uint32_t>(file, packed, DType::i32, {out, words});
    Tensor numbers = Tensor::uninitialized({out, in});
    for (Index i = 0; i < out; ++i)
      few_bits::unpack(stream.data() + i * words, bits, in, numbers.mutable_data() + i * in);
    const auto half = static_cast<float>(1 << (bits - 1));
    for (float& number : numbers.mutable_values()) number -= half;
    return scaled(file, module, numbers, bits);
  }
  std::string dtype(const TensorFile& file, const std::string& module) const override {
    const auto packed = file.tensors().find(module + ".weight_packed");
    if (packed == file.tensors().end()) return "INT8";
    if (packed->second.dtype == DType::u8) return file.contains(module + ".weight_global_scale") ? "NVFP4" : "MXFP4";
    const auto shape = file.tensors().find(module + ".weight_shape");
    if (shape == file.tensors().end() || shape->second.dtype != DType::i64 || shape->second.elements() != 2)
      return "INT";
    const std::int64_t in = nth(shape->second.items<std::int64_t>(), 1);
    return in > 0 && in <= config_limits::d_mlp ? fmt::format("INT{}", bits_of(file, module, in)) : "INT";
  }

 private:
  static int bits_of(const TensorFile& file, const std::string& module, Index in) {
    const TensorEntry& entry = file.entry(module + ".weight_packed");
    for (int bits = 8; bits > 0; --bits)
      if (entry.shape.size() == 2 && entry.shape[1] == few_bits::words_of(bits, in)) return bits;
    throw Error(file.path().string() + ": tensor " + module + ".weight_packed",
                fmt::format("rows of {} numbers of 1 to 8 bits", in),
                fmt::format("shape [{}]", fmt::join(entry.shape, ", ")),
                "config.json and the weights disagree: do they belong together?");
  }

  static Tensor whole(const TensorFile& file, const std::string& name, Index out, Index in) {
    const std::vector<std::int8_t> items = whole_numbers<std::int8_t>(file, name, DType::i8, {out, in});
    Tensor numbers = Tensor::uninitialized({out, in});
    std::copy(items.begin(), items.end(), numbers.mutable_data());
    return numbers;
  }

  /// As the scales have them before they are spread over outputs; undefined where there are none.
  static Tensor zeros(const TensorFile& file, const std::string& module, int bits) {
    const std::string name = module + ".weight_zero_point", scale = module + ".weight_scale";
    if (!file.contains(name)) return {};
    const TensorEntry& entry = file.entry(name);
    if (entry.dtype == DType::i8) {
      const std::vector<std::int8_t> items = whole_numbers<std::int8_t>(file, name, DType::i8, file.entry(scale).shape);
      Tensor zeros = Tensor::uninitialized(Shape(std::span<const Index>(entry.shape)));
      std::copy(items.begin(), items.end(), zeros.mutable_data());
      return zeros;
    }
    if (file.entry(scale).shape.size() != 2)
      throw Error(file.path().string() + ": tensor " + scale, "a matrix, as its packed zeros are",
                  fmt::format("shape [{}]", fmt::join(file.entry(scale).shape, ", ")));
    const Index down = file.entry(scale).shape[0], across = file.entry(scale).shape[1];
    const std::vector<std::uint32_t> stream =
        whole_numbers<std::uint32_t>(file, name, DType::i32, {few_bits::words_of(bits, down), across});
    Tensor zeros = Tensor::uninitialized({down, across});
    for (Index i = 0; i < down; ++i)
      few_bits::unpack_across(stream.data(), bits, i, across, zeros.mutable_data() + i * across);
    for (float& zero : zeros.mutable_values()) zero -= static_cast<float>(1 << (bits - 1));
    return zeros;
  }

  /// Of each input; empty where none are told.
  static std::vector<std::int32_t> groups(const TensorFile& file, const std::string& module, Index in, Index count) {
    const std::string name = module + ".weight_g_idx";
    if (!file.contains(name)) return {};
    const std::vector<std::int32_t> told = whole_numbers<std::int32_t>(file, name, DType::i32, {in});
    if (std::ranges::all_of(told, [](std::int32_t each) { return each == -1; })) return {};
    for (const std::int32_t each : told)
      if (each < 0 || each >= count)
        throw Error(file.path().string() + ": tensor " + name, fmt::format("groups 0 to {}", count - 1),
                    std::to_string(each));
    return told;
  }

  static Tensor scaled(const TensorFile& file, const std::string& module, const Tensor& numbers, int bits) {
    const Index out = numbers.dim(0), in = numbers.dim(1);
    const std::string name = module + ".weight_scale";
    const Tensor scale = by_output(file.tensor(name), file, name, out, in), zero = zeros(file, module, bits);
    const int half = 1 << (bits - 1);
    return tensor_of({numbers,
                      -half,
                      half - 1,
                      scale,
                      zero.defined() ? by_output(zero, file, name, out, in) : zero,
                      {},
                      groups(file, module, in, scale.dim(1))});
  }

  static Tensor of_pairs(const TensorFile& file, const std::string& module, Index out, Index in) {
    const std::string packed = module + ".weight_packed", scale = module + ".weight_scale",
                      all = module + ".weight_global_scale";
    const Index group = group_of_pairs(file, scale, out, in), groups = in / group;
    if (file.entry(scale).dtype == DType::u8 && group == 32)
      return mxfp4(file, scale, {out, groups}, whole_numbers<std::uint8_t>(file, packed, DType::u8, {out, in / 2}),
                   {out, in});
    const Tensor scales = floats_of(file, scale, out, groups);
    const float divisor = file.contains(all) ? floats_of(file, all, 1, 1).at(0, 0) : 1.0f;
    return pairs(file, packed, out, in, group, [&](Index i, Index g) { return scales.at(i, g) / divisor; });
  }
};

class ModelOpt final : public FewBits {
 public:
  std::span<const std::string_view> parts() const override {
    static constexpr std::array<std::string_view, 3> all{".weight", ".weight_scale", ".weight_scale_2"};
    return all;
  }
  bool holds(const TensorFile& file, const std::string& module) const override {
    const auto found = file.tensors().find(module + ".weight");
    return found != file.tensors().end() && found->second.dtype == DType::u8 &&
           file.contains(module + ".weight_scale_2");
  }
  Tensor matrix(const TensorFile& file, const std::string& module, Index out, Index in) const override {
    const std::string scale = module + ".weight_scale";
    const Index group = group_of_pairs(file, scale, out, in);
    const Tensor scales = floats_of(file, scale, out, in / group);
    const float all = floats_of(file, module + ".weight_scale_2", 1, 1).at(0, 0);
    return pairs(file, module + ".weight", out, in, group, [&](Index i, Index g) { return scales.at(i, g) * all; });
  }
  std::string dtype(const TensorFile&, const std::string&) const override { return "NVFP4"; }
};

}  // namespace

std::unique_ptr<FewBits> compressed_tensors_layout(const ConfigReader&) {
  return std::make_unique<Compressed>();
}
std::unique_ptr<FewBits> modelopt_layout(const ConfigReader&) {
  return std::make_unique<ModelOpt>();
}

}  // namespace headscope
