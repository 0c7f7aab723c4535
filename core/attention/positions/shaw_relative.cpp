#include "core/attention/positions/shaw_relative.h"

#include <algorithm>

namespace headscope {

Index shaw_index(Index key_minus_query, Index w) {
  return std::clamp(key_minus_query, -w, w) + w;
}

Tensor shaw_scores(const Tensor& q, const Tensor& k, const Tensor& table, double scale) {
  const Index w = table.dim(0) / 2, d = q.dim(1);
  Tensor scores = Tensor::uninitialized({q.dim(0), k.dim(0)});
  for (Index i = 0; i < q.dim(0); ++i)
    for (Index j = 0; j < k.dim(0); ++j) {
      const Index row = shaw_index(j - i, w);
      double sum = 0;
      for (Index c = 0; c < d; ++c)
        sum +=
            static_cast<double>(q.at(i, c)) * (static_cast<double>(k.at(j, c)) + static_cast<double>(table.at(row, c)));
      scores.ref(i, j) = static_cast<float>(scale * sum);
    }
  return scores;
}

Tensor shaw_values(const Tensor& pattern, const Tensor& table) {
  const Index w = table.dim(0) / 2, d = table.dim(1);
  Tensor out = Tensor::zeros({pattern.dim(0), d});
  for (Index i = 0; i < pattern.dim(0); ++i)
    for (Index j = 0; j < pattern.dim(1); ++j) {
      const Index row = shaw_index(j - i, w);
      for (Index c = 0; c < d; ++c) out.ref(i, c) += pattern.at(i, j) * table.at(row, c);
    }
  return out;
}

}  // namespace headscope
