#include "core/model/formats/packed_pairs.h"

#include <fmt/format.h>

#include <cstdint>

#include "core/base/error.h"
#include "core/model/formats/few_bits.h"

namespace headscope {

namespace {
constexpr const char* const blocks_ending = "_blocks";
constexpr const char* const scales_ending = "_scales";
constexpr Index bytes_of_group = 16;
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
  constexpr Index group = 2 * bytes_of_group;
  if (shape.rank() != 3 || shape[1] % group != 0)
    throw Error(file.path().string() + ": tensor " + name + blocks_ending,
                fmt::format("a matrix of each expert whose inputs are whole groups of {}", group), shape.str());
  const Index experts = shape[0], in = shape[1], out = shape[2], groups = in / group;
  const std::vector<std::uint8_t> blocks =
      whole_numbers<std::uint8_t>(file, name + blocks_ending, DType::u8, {experts, out, groups, bytes_of_group});
  return mxfp4(file, name + scales_ending, {experts, out, groups}, blocks, {experts, out, in}).transpose(1, 2);
}

}  // namespace headscope
