#include "core/model/formats/packed_pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "core/base/error.h"

namespace headscope {

namespace {
constexpr const char* const blocks_ending = "_blocks";
constexpr const char* const scales_ending = "_scales";
constexpr Index pairs = 16;  // bytes of a group
constexpr std::array<float, 16> values{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};

std::vector<std::uint8_t> bytes_of(const TensorFile& file, const std::string& name,
                                   const std::vector<std::int64_t>& shape) {
  const TensorEntry& entry = file.entry(name);
  if (entry.dtype != DType::u8 || entry.shape != shape)
    throw Error(file.path().string() + ": tensor " + name, fmt::format("U8 of shape [{}]", fmt::join(shape, ", ")),
                fmt::format("{} of shape [{}]", dtype_name(entry.dtype), fmt::join(entry.shape, ", ")),
                "config.json and the weights disagree: do they belong together?");
  return entry.items<std::uint8_t>();
}
}  // namespace

bool in_packed_pairs(const TensorFile& file, const std::string& name) {
  return !file.contains(name) && file.contains(name + blocks_ending) && file.contains(name + scales_ending);
}

std::string packed_pairs_of(const TensorFile& file, const std::string& stored) {
  for (const std::string ending : {blocks_ending, scales_ending})
    if (stored.ends_with(ending))
      if (std::string name = stored.substr(0, stored.size() - ending.size()); in_packed_pairs(file, name)) return name;
  return "";
}

Tensor from_packed_pairs(const TensorFile& file, const std::string& name, const Shape& shape) {
  constexpr Index group = 2 * pairs;
  if (shape.rank() != 3 || shape[1] % group != 0)
    throw Error(file.path().string() + ": tensor " + name + blocks_ending,
                fmt::format("a matrix of each expert whose inputs are whole groups of {}", group), shape.str());
  const Index experts = shape[0], in = shape[1], out = shape[2], groups = in / group;
  const std::vector<std::uint8_t> blocks = bytes_of(file, name + blocks_ending, {experts, out, groups, pairs}),
                                  scales = bytes_of(file, name + scales_ending, {experts, out, groups});
  Tensor numbers = Tensor::uninitialized({experts, out, in});
  float* to = numbers.mutable_data();
  for (std::size_t g = 0; g < scales.size(); ++g) {
    const float scale = std::ldexp(1.0f, static_cast<int>(scales[g]) - 127);
    for (std::size_t i = 0; i < static_cast<std::size_t>(pairs); ++i) {
      const std::uint8_t both = blocks[g * static_cast<std::size_t>(pairs) + i];
      *to++ = values[both & 0xf] * scale;
      *to++ = values[both >> 4] * scale;
    }
  }
  return numbers.transpose(1, 2);
}

}  // namespace headscope
