#include "core/tensor/quantized.h"

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"

namespace headscope {

namespace {

class Steps {
 public:
  Steps(Index lines, bool each, int bits) : most_(static_cast<double>((1 << (bits - 1)) - 1)), each_(each) {
    largest_.assign(static_cast<std::size_t>(each ? lines : 1), 0.0);
  }
  void see(Index line, float x) {
    double& most = nth(largest_, each_ ? line : 0);
    most = std::max(most, std::abs(static_cast<double>(x)));
  }
  float rounded(Index line, float x) const {
    const double step = nth(largest_, each_ ? line : 0) / most_;
    return step > 0 ? static_cast<float>(step * std::round(static_cast<double>(x) / step)) : 0.0f;
  }

 private:
  double most_;
  bool each_;
  std::vector<double> largest_;
};

}  // namespace

QuantizedFactors quantized_factors(const Tensor& x, const Tensor& w, const Quantization& how) {
  QuantizedFactors out{x.floats().copy(), w.floats().copy(), {}};
  const Index rows = x.dim(0), in = x.dim(1), width = w.dim(1);
  std::vector<char> kept(static_cast<std::size_t>(in), 0);
  if (how.apart > 0)
    for (Index c = 0; c < in; ++c) {
      bool reaches = false;
      for (Index i = 0; i < rows && !reaches; ++i) reaches = std::abs(static_cast<double>(out.x.at(i, c))) >= how.apart;
      nth(kept, c) = reaches;
      if (reaches) out.apart.push_back(c);
    }
  Steps of_w(width, how.vectors, how.bits);
  for (Index c = 0; c < in; ++c)
    if (!nth(kept, c))
      for (Index e = 0; e < width; ++e) of_w.see(e, out.w.at(c, e));
  for (Index c = 0; c < in; ++c)
    if (!nth(kept, c))
      for (Index e = 0; e < width; ++e) out.w.ref(c, e) = of_w.rounded(e, out.w.at(c, e));
  if (!how.activations) return out;
  Steps of_x(rows, how.vectors, how.bits);
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < in; ++c)
      if (!nth(kept, c)) of_x.see(i, out.x.at(i, c));
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < in; ++c)
      if (!nth(kept, c)) out.x.ref(i, c) = of_x.rounded(i, out.x.at(i, c));
  return out;
}

}  // namespace headscope
