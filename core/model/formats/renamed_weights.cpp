#include "core/model/formats/renamed_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/nth.h"
#include "core/model/weight_reader.h"

namespace headscope {

namespace {
/// (head · (key + value), in) of keys (head, in, key) and values (head, value, in).
Tensor keys_and_values(const TensorFile& from, const RenamedWeights::Stored& stored, const Shape& shape) {
  const FileWeights file(from);
  const auto wide = [&](const std::string& name, std::size_t axis) {
    const std::vector<std::int64_t>& found = from.entry(name).shape;
    return found.size() == 3 ? Index{found[axis]} : Index{0};
  };
  const Index heads = wide(stored.name, 0), key = wide(stored.name, 2), value = wide(stored.values, 1), in = shape[1];
  if (heads * (key + value) != shape[0])
    throw Error(from.path().string() + ": tensor " + stored.name, fmt::format("rows of {} with those beside", shape[0]),
                fmt::format("{} heads of {} and {}", heads, key, value));
  const Tensor keys = file.take(stored.name, {heads, in, key}), values = file.take(stored.values, {heads, value, in});
  Tensor out = Tensor::uninitialized(shape);
  for (Index head = 0; head < heads; ++head)
    for (Index row = 0; row < key + value; ++row)
      for (Index i = 0; i < in; ++i)
        out.ref(head * (key + value) + row, i) = row < key ? keys.at(head, i, row) : values.at(head, row - key, i);
  return out;
}
}  // namespace

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
  const Tensor weight = turned(stored, shape);
  if (stored.factor.empty()) return weight;
  const Tensor factors = file_->tensor(stored.factor).packed();
  const std::int64_t experts = stored.expert < 0 ? 1 : file_->entry(stored.name).shape[0];
  if (factors.size() != 1 && factors.size() != experts)
    throw Error(where() + ": tensor " + excerpt(stored.factor),
                experts > 1 ? fmt::format("one number, or one of each of {} experts", experts) : "one number",
                fmt::format("{}", factors.size()));
  const float factor = factors.values()[factors.size() > 1 ? static_cast<std::size_t>(stored.expert) : 0];
  Tensor product = weight.copy();
  for (float& number : product.mutable_values()) number *= factor;
  return product;
}

Tensor RenamedWeights::turned(const Stored& stored, const Shape& shape) const {
  const FileWeights file(*file_);
  if (stored.expert >= 0) {
    const auto [found, fresh] = experts_.try_emplace(stored.name);
    if (fresh) {
      std::vector<Index> all{Index{file_->entry(stored.name).shape[0]}};
      for (int axis = 0; axis < shape.rank(); ++axis) all.push_back(shape[axis]);
      found->second = file.take(stored.name, Shape(all));
    }
    return found->second.select(0, stored.expert);
  }
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
    case Turn::row:
      return file.take(stored.name, {shape[1]}).reshape(shape);
    case Turn::keys_and_values:
      return keys_and_values(*file_, stored, shape);
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
