#include "core/model/formats/renamed_weights.h"

#include <algorithm>

#include "core/model/weight_reader.h"

namespace headscope {

std::vector<std::string> RenamedWeights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, stored] : by_name_) names.push_back(name);
  return names;
}

std::string RenamedWeights::dtype(const std::string& name) const {
  return dtype_name(file_->entry(by_name_.at(name).name).dtype);
}

Tensor RenamedWeights::take(const std::string& name, const Shape& shape) const {
  const Stored& stored = by_name_.at(name);
  if (stored.turn != Turn::transposed) {
    const Tensor tensor = FileWeights(*file_).take(stored.name, shape);
    return stored.turn == Turn::none ? tensor : halves_from_pairs(tensor, stored.heads);
  }
  if (shape.rank() != 2) return FileWeights(*file_).take(stored.name, shape);  // the bias of a transposed matrix
  return FileWeights(*file_).take(stored.name, {shape[1], shape[0]}).transpose(0, 1);
}

Tensor halves_from_pairs(const Tensor& rows, int heads) {
  const Index d = rows.dim(0) / heads, width = rows.size() / rows.dim(0);
  Tensor out = Tensor::uninitialized(rows.shape());
  for (Index row = 0; row < rows.dim(0); ++row) {
    const Index head = row / d, in_head = row % d, to = head * d + in_head % 2 * (d / 2) + in_head / 2;
    std::copy_n(rows.data() + row * width, width, out.mutable_data() + to * width);
  }
  return out;
}

}  // namespace headscope
