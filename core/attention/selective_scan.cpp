#include "core/attention/selective_scan.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace headscope {

namespace {
std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}
}  // namespace

double softplus(double x) {
  return x > 30 ? x : std::log1p(std::exp(x));
}

Tensor scan_recurrent(const SelectiveScan& in, std::vector<Tensor>* states) {
  const Index n = in.x.dim(0), channels = in.x.dim(1), size = in.b.dim(1);
  std::vector<double> h(at(size * channels), 0.0);
  Tensor y = Tensor::uninitialized({n, channels});
  for (Index t = 0; t < n; ++t) {
    const double delta = in.delta[at(t)];
    for (Index i = 0; i < size; ++i) {
      const double keep = std::exp(delta * in.a[at(i)]), write = delta * static_cast<double>(in.b.at(t, i));
      for (Index e = 0; e < channels; ++e) {
        double& state = h[at(i * channels + e)];
        state = keep * state + write * static_cast<double>(in.x.at(t, e));
      }
    }
    for (Index e = 0; e < channels; ++e) {
      double sum = 0;
      for (Index i = 0; i < size; ++i) sum += static_cast<double>(in.c.at(t, i)) * h[at(i * channels + e)];
      y.ref(t, e) = static_cast<float>(sum);
    }
    if (!states) continue;
    Tensor state = Tensor::uninitialized({size, channels});
    for (Index i = 0; i < size; ++i)
      for (Index e = 0; e < channels; ++e) state.ref(i, e) = static_cast<float>(h[at(i * channels + e)]);
    states->push_back(std::move(state));
  }
  return y;
}

Tensor scan_parallel(const SelectiveScan& in, int* rounds) {
  const Index n = in.x.dim(0), channels = in.x.dim(1), size = in.b.dim(1);
  // A step is h → a ⊙ h + b: a (N), b (N, channels), for every token.
  std::vector<double> a(at(n * size)), b(at(n * size * channels));
  for (Index t = 0; t < n; ++t)
    for (Index i = 0; i < size; ++i) {
      a[at(t * size + i)] = std::exp(in.delta[at(t)] * in.a[at(i)]);
      for (Index e = 0; e < channels; ++e)
        b[at((t * size + i) * channels + e)] =
            in.delta[at(t)] * static_cast<double>(in.b.at(t, i)) * static_cast<double>(in.x.at(t, e));
    }
  int count = 0;
  for (Index reach = 1; reach < n; reach *= 2, ++count) {
    // Every token joins what the one `reach` before it has joined: all of them at once.
    const std::vector<double> a_before = a, b_before = b;
    for (Index t = reach; t < n; ++t)
      for (Index i = 0; i < size; ++i) {
        const double later = a_before[at(t * size + i)];
        a[at(t * size + i)] = later * a_before[at((t - reach) * size + i)];
        for (Index e = 0; e < channels; ++e)
          b[at((t * size + i) * channels + e)] += later * b_before[at(((t - reach) * size + i) * channels + e)];
      }
  }
  if (rounds) *rounds = count;
  Tensor y = Tensor::uninitialized({n, channels});
  for (Index t = 0; t < n; ++t)
    for (Index e = 0; e < channels; ++e) {
      double sum = 0;
      for (Index i = 0; i < size; ++i) sum += static_cast<double>(in.c.at(t, i)) * b[at((t * size + i) * channels + e)];
      y.ref(t, e) = static_cast<float>(sum);
    }
  return y;
}

Tensor hidden_attention(const SelectiveScan& in, const std::stop_token& stop) {
  const Index n = in.x.dim(0), size = in.b.dim(1);
  Tensor weights = Tensor::zeros({n, n});
  for (Index t = 0; t < n; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    double passed = 0;  // Σ Δ_r over s < r ≤ t
    for (Index s = t; s >= 0; --s) {
      double sum = 0;
      for (Index i = 0; i < size; ++i)
        sum += static_cast<double>(in.c.at(t, i)) * std::exp(in.a[at(i)] * passed) * static_cast<double>(in.b.at(s, i));
      weights.ref(t, s) = static_cast<float>(in.delta[at(s)] * sum);
      passed += in.delta[at(s)];
    }
  }
  return weights;
}

}  // namespace headscope
