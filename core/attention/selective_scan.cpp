#include "core/attention/selective_scan.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"

namespace headscope {

namespace {
/// One number of Ā and the factor that makes B̄ of B, for token t, channel e and number i of the state.
struct Step {
  double keep, write;
};
Step step_of(const SelectiveScan& in, Index t, Index e, Index i) {
  const double delta = in.delta[as_size(t * in.x.dim(1) + e)], a = in.a[as_size(i)];
  // (exp(Δ a) − 1) ÷ a; expm1 keeps its digits where Δ a is small.
  return {std::exp(delta * a), in.hold == SelectiveScan::Hold::euler ? delta : std::expm1(delta * a) / a};
}
}  // namespace

double softplus(double x) {
  return x > 30 ? x : std::log1p(std::exp(x));
}

Tensor scan_recurrent(const SelectiveScan& in, std::vector<Tensor>* states) {
  const Index n = in.x.dim(0), channels = in.x.dim(1), size = in.b.dim(1);
  std::vector<double> h(as_size(size * channels), 0.0);
  Tensor y = Tensor::uninitialized({n, channels});
  for (Index t = 0; t < n; ++t) {
    for (Index i = 0; i < size; ++i)
      for (Index e = 0; e < channels; ++e) {
        const Step step = step_of(in, t, e, i);
        double& state = h[as_size(i * channels + e)];
        state =
            step.keep * state + step.write * static_cast<double>(in.b.at(t, i)) * static_cast<double>(in.x.at(t, e));
      }
    for (Index e = 0; e < channels; ++e) {
      double sum = 0;
      for (Index i = 0; i < size; ++i) sum += static_cast<double>(in.c.at(t, i)) * h[as_size(i * channels + e)];
      y.ref(t, e) = static_cast<float>(sum);
    }
    if (!states) continue;
    Tensor state = Tensor::uninitialized({size, channels});
    for (Index i = 0; i < size; ++i)
      for (Index e = 0; e < channels; ++e) state.ref(i, e) = static_cast<float>(h[as_size(i * channels + e)]);
    states->push_back(std::move(state));
  }
  return y;
}

Tensor scan_parallel(const SelectiveScan& in, int* rounds) {
  const Index n = in.x.dim(0), channels = in.x.dim(1), size = in.b.dim(1);
  // A step is h → a ⊙ h + b: both (N, channels), for every token.
  std::vector<double> a(as_size(n * size * channels)), b(a);
  for (Index t = 0; t < n; ++t)
    for (Index i = 0; i < size; ++i)
      for (Index e = 0; e < channels; ++e) {
        const Step step = step_of(in, t, e, i);
        const std::size_t cell = as_size((t * size + i) * channels + e);
        a[cell] = step.keep;
        b[cell] = step.write * static_cast<double>(in.b.at(t, i)) * static_cast<double>(in.x.at(t, e));
      }
  int count = 0;
  for (Index reach = 1; reach < n; reach *= 2, ++count) {
    // Every token joins what the one `reach` before it has joined: all of them at once.
    const std::vector<double> a_before = a, b_before = b;
    for (Index cell = 0; cell < (n - reach) * size * channels; ++cell) {
      const std::size_t here = as_size(reach * size * channels + cell);
      a[here] = a_before[here] * a_before[as_size(cell)];
      b[here] += a_before[here] * b_before[as_size(cell)];
    }
  }
  if (rounds) *rounds = count;
  Tensor y = Tensor::uninitialized({n, channels});
  for (Index t = 0; t < n; ++t)
    for (Index e = 0; e < channels; ++e) {
      double sum = 0;
      for (Index i = 0; i < size; ++i)
        sum += static_cast<double>(in.c.at(t, i)) * b[as_size((t * size + i) * channels + e)];
      y.ref(t, e) = static_cast<float>(sum);
    }
  return y;
}

Tensor hidden_attention(const SelectiveScan& in, Index channel, const std::stop_token& stop) {
  const Index n = in.x.dim(0), size = in.b.dim(1);
  Tensor weights = Tensor::zeros({n, n});
  std::vector<Step> steps;
  for (Index t = 0; t < n; ++t)
    for (Index i = 0; i < size; ++i) steps.push_back(step_of(in, t, channel, i));
  std::vector<double> reach(as_size(size));  // C_t ⊙ what the steps after s leave
  for (Index t = 0; t < n; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    for (Index i = 0; i < size; ++i) reach[as_size(i)] = static_cast<double>(in.c.at(t, i));
    for (Index s = t; s >= 0; --s) {
      double sum = 0;
      for (Index i = 0; i < size; ++i) {
        const Step& step = steps[as_size(s * size + i)];
        sum += reach[as_size(i)] * step.write * static_cast<double>(in.b.at(s, i));
        reach[as_size(i)] *= step.keep;
      }
      weights.ref(t, s) = static_cast<float>(sum);
    }
  }
  return weights;
}

}  // namespace headscope
