#include "core/model/stored_layouts.h"

#include <span>

namespace headscope {

Tensor joined(const Tensor& x, const Ranges& ranges) {
  bool whole = true;
  Index width = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    whole = whole && (i == 0 || ranges[i].first == ranges[i - 1].second);
    width += ranges[i].second - ranges[i].first;
  }
  const int axis = x.rank() - 1;
  if (whole) return x.slice(axis, ranges.front().first, ranges.back().second);
  std::vector<Index> columns;
  columns.reserve(static_cast<std::size_t>(width));
  for (const auto& [begin, end] : ranges)
    for (Index c = begin; c < end; ++c) columns.push_back(c);
  return x.transpose(0, axis).rows(columns).transpose(0, axis);  // columns are rows of what is stored
}

Qkv ranges_of(FusedQkv how, const ModelDims& d) {
  const Index head = d.d_head, queries = d.heads * head, keys = d.kv_heads * head;
  Qkv out;
  Index at = 0;
  const auto next = [&](Ranges& into, Index width) {
    into.emplace_back(at, at + width);
    at += width;
  };
  switch (how) {
    case FusedQkv::side_by_side:
      next(out.q, queries), next(out.k, keys), next(out.v, keys);
      break;
    case FusedQkv::by_group:
      for (int group = 0; group < d.kv_heads; ++group)
        next(out.q, d.group(0) * head), next(out.k, head), next(out.v, head);
      break;
    case FusedQkv::four_chunks:
      for (int chunk = 0; chunk < 4; ++chunk) next(out.q, queries / 4), next(out.v, keys / 4), next(out.k, keys / 4);
      break;
  }
  return out;
}

Tensor times_columns(const Tensor& x, const Tensor& by) {
  Tensor out = x.copy();
  const std::span<float> values = out.mutable_values();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= by.at(static_cast<Index>(i) % by.size());
  return out;
}

Tensor added_to_rows(const Tensor& x, const Tensor& row) {
  Tensor out = x.copy();
  const std::span<float> values = out.mutable_values();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += row.at(static_cast<Index>(i) % row.size());
  return out;
}

Tensor with_gap(const Tensor& x, Index at, Index count) {
  Tensor out = Tensor::zeros({x.dim(0) + count, x.dim(1)});
  for (Index row = 0; row < x.dim(0); ++row)
    for (Index i = 0; i < x.dim(1); ++i) out.ref(row < at ? row : row + count, i) = x.at(row, i);
  return out;
}

Tensor whole_matrix(const Tensor& kernel, Index in, Index groups) {
  const Index out = kernel.dim(0), width = kernel.dim(1), each = out / groups;
  Tensor weight = Tensor::zeros({in, out});
  for (Index column = 0; column < out; ++column)
    for (Index i = 0; i < width; ++i) weight.ref(column / each * width + i, column) = kernel.at(column, i, 0);
  return weight;
}

}  // namespace headscope
