#include "core/attention/positions/learned.h"

#include <cmath>

namespace headscope {

Tensor row_norms(const Tensor& table) {
  Tensor norms = Tensor::uninitialized({table.dim(0)});
  for (Index p = 0; p < table.dim(0); ++p) {
    double sum = 0;
    for (Index c = 0; c < table.dim(1); ++c)
      sum += static_cast<double>(table.at(p, c)) * static_cast<double>(table.at(p, c));
    norms.ref(p) = static_cast<float>(std::sqrt(sum));
  }
  return norms;
}

Tensor cosine_similarity(const Tensor& given, bool centered) {
  Tensor table = given.copy();
  const Index n = table.dim(0), d = table.dim(1);
  if (centered)
    for (Index c = 0; c < d; ++c) {
      double mean = 0;
      for (Index p = 0; p < n; ++p) mean += static_cast<double>(table.at(p, c)) / static_cast<double>(n);
      for (Index p = 0; p < n; ++p) table.ref(p, c) -= static_cast<float>(mean);
    }
  const Tensor norms = row_norms(table);
  Tensor out = Tensor::zeros({n, n});
  for (Index a = 0; a < n; ++a)
    for (Index b = a; b < n; ++b) {
      double dot = 0;
      for (Index c = 0; c < d; ++c) dot += static_cast<double>(table.at(a, c)) * static_cast<double>(table.at(b, c));
      const double length = static_cast<double>(norms.at(a)) * static_cast<double>(norms.at(b));
      out.ref(a, b) = out.ref(b, a) = static_cast<float>(length > 0 ? dot / length : 0);
    }
  return out;
}

}  // namespace headscope
