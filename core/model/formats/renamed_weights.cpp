#include "core/model/formats/renamed_weights.h"

#include "core/base/nth.h"
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
  const FileWeights file(*file_);
  switch (stored.turn) {
    case Turn::none:
      return file.take(stored.name, shape);
    case Turn::transposed:  // its bias is none
      return shape.rank() == 2 ? file.take(stored.name, {shape[1], shape[0]}).transpose(0, 1)
                               : file.take(stored.name, shape);
    case Turn::rotary_pairs:
    case Turn::rotary_pairs_of_keys:
      return halves_from_pairs(file.take(stored.name, shape), stored.heads);
    case Turn::by_group:
      return groups_from_kinds(file.take(stored.name, shape), stored.heads, stored.kv_heads);
    case Turn::plus_one: {
      Tensor less = file.take(stored.name, shape).copy();
      for (float& v : less.mutable_values()) v -= 1;
      return less;
    }
    case Turn::first_third:
    case Turn::second_third:
    case Turn::last_third:
      break;
  }
  Shape all = shape;
  all[0] *= 3;
  const Index from = shape[0] * (static_cast<int>(stored.turn) - static_cast<int>(Turn::first_third));
  return file.take(stored.name, all).slice(0, from, from + shape[0]);
}

Tensor halves_from_pairs(const Tensor& rows, int heads) {
  const Index d = rows.dim(0) / heads;
  std::vector<Index> from(static_cast<std::size_t>(rows.dim(0)));
  for (Index row = 0; row < rows.dim(0); ++row) {
    const Index head = row / d, in_head = row % d;
    nth(from, head * d + in_head % 2 * (d / 2) + in_head / 2) = row;
  }
  return rows.rows(from);
}

Tensor groups_from_kinds(const Tensor& rows, int heads, int kv_heads) {
  const Index d = rows.dim(0) / (heads + 2 * kv_heads), group = heads / kv_heads;
  std::vector<Index> from;
  const auto put = [&](Index first, Index count) {
    for (Index i = 0; i < count; ++i) from.push_back(first + i);
  };
  for (Index key = 0; key < kv_heads; ++key) {
    put(key * group * d, group * d);
    put((heads + key) * d, d);
    put((heads + kv_heads + key) * d, d);
  }
  return rows.rows(from);
}

}  // namespace headscope
