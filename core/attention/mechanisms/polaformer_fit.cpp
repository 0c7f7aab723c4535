#include "core/attention/mechanisms/polaformer_fit.h"

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/base/nth.h"

namespace headscope::mechanism {

namespace {

// A row whose similarities sum to less counts as empty, as in kernel.cpp.
constexpr double smallest_sum = 1e-30;

MechanismInput first_tokens(MechanismInput in) {
  const Index n = std::min(in.n(), most_fitted_tokens), m = std::min(in.m(), most_fitted_tokens);
  if (n == in.n() && m == in.m()) return in;
  in.q = in.q.slice(0, 0, n).copy();
  in.k = in.k.slice(0, 0, m).copy(), in.v = in.v.slice(0, 0, m).copy();
  return in;
}

/// |x|^p, ln |x| and the sign of every number.
struct Raised {
  std::vector<double> power, log;  // row-major
  std::vector<bool> positive;
  Raised(const Tensor& x, const std::vector<double>& powers) {
    for (Index i = 0; i < x.dim(0); ++i)
      for (Index c = 0; c < x.dim(1); ++c) {
        const double value = std::abs(static_cast<double>(x.at(i, c)));
        power.push_back(std::pow(value, nth(powers, c)));
        log.push_back(std::log(std::max(value, 1e-300)));
        positive.push_back(x.at(i, c) >= 0);
      }
  }
};

}  // namespace

double polar_loss(const MechanismInput& in, const std::vector<double>& powers, double same, double opposite,
                  std::vector<double>* gradient) {
  const Index n = in.n(), m = in.m(), d = in.d(), d_v = in.d_v(), half = (d_v + 1) / 2;
  const Tensor target = softmax_reference(in).output;
  double energy = 0;
  for (const float x : target.values()) energy += static_cast<double>(x) * static_cast<double>(x);
  energy = std::max(energy, 1e-30);
  const Raised q(in.q, powers), k(in.k, powers);
  const auto hidden = hidden_cells(*in.rule, n, m);
  if (gradient) gradient->assign(static_cast<std::size_t>(d + 2), 0.0);
  double loss = 0;
  std::vector<double> similar[2], mixed(static_cast<std::size_t>(d_v)), pull(static_cast<std::size_t>(d_v));
  for (Index i = 0; i < n; ++i) {
    check(in);
    for (auto& row : similar) row.assign(static_cast<std::size_t>(m), 0.0);
    double sums[2] = {0, 0};
    for (Index j = 0; j < m; ++j) {
      if (!hidden.empty() && nth(hidden, i * m + j)) continue;
      for (Index c = 0; c < d; ++c) {
        const int stream = nth(q.positive, i * d + c) == nth(k.positive, j * d + c) ? 0 : 1;
        nth(similar[stream], j) += nth(q.power, i * d + c) * nth(k.power, j * d + c);
      }
      for (const int stream : {0, 1}) sums[stream] += nth(similar[stream], j);
    }
    std::ranges::fill(mixed, 0.0);
    for (Index c = 0; c < d_v; ++c) {
      const int stream = c < half ? 0 : 1;
      if (sums[stream] < smallest_sum) continue;
      for (Index j = 0; j < m; ++j)
        nth(mixed, c) += nth(similar[stream], j) / sums[stream] * static_cast<double>(in.v.at(j, c));
    }
    double along[2] = {0, 0};  // G_i · o_i
    for (Index c = 0; c < d_v; ++c) {
      const int stream = c < half ? 0 : 1;
      const double off = (stream == 0 ? same : opposite) * nth(mixed, c) - static_cast<double>(target.at(i, c));
      loss += off * off / energy;
      nth(pull, c) = 2 * off / energy;
      along[stream] += nth(pull, c) * nth(mixed, c);
    }
    if (!gradient) continue;
    for (const int stream : {0, 1}) nth(*gradient, d + stream) += along[stream];
    for (Index j = 0; j < m; ++j) {
      if (!hidden.empty() && nth(hidden, i * m + j)) continue;
      double to[2] = {0, 0};  // G_i · v_j
      for (Index c = 0; c < d_v; ++c) to[c < half ? 0 : 1] += nth(pull, c) * static_cast<double>(in.v.at(j, c));
      double by_cell[2];
      for (const int stream : {0, 1})
        by_cell[stream] = sums[stream] < smallest_sum
                              ? 0
                              : (stream == 0 ? same : opposite) * (to[stream] - along[stream]) / sums[stream];
      for (Index c = 0; c < d; ++c) {
        const int stream = nth(q.positive, i * d + c) == nth(k.positive, j * d + c) ? 0 : 1;
        const double both = nth(q.power, i * d + c) * nth(k.power, j * d + c);
        if (both > 0) nth(*gradient, c) += by_cell[stream] * both * (nth(q.log, i * d + c) + nth(k.log, j * d + c));
      }
    }
  }
  return loss;
}

PolarFit fit_polar(const MechanismInput& whole) {
  constexpr double rate = 0.15, slow = 0.9, slower = 0.999, widest = 4;
  const MechanismInput in = first_tokens(whole);
  const auto d = static_cast<std::size_t>(in.d());
  std::vector<double> w(d + 2, 0.0), mean(d + 2, 0.0), square(d + 2, 0.0), gradient;
  w[d] = w[d + 1] = 1;
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  PolarFit fit;
  const auto take = [&] {
    fit.powers.resize(d);
    for (std::size_t c = 0; c < d; ++c) fit.powers[c] = 1 + widest * sigmoid(w[c]);
    fit.same = w[d], fit.opposite = w[d + 1];
  };
  PolarFit best;
  double least = 0;
  for (int step = 0; step <= fit_steps; ++step) {
    take();
    fit.losses.push_back(polar_loss(in, fit.powers, fit.same, fit.opposite, &gradient));
    if (step == 0 || fit.losses.back() < least) best = fit, least = fit.losses.back();
    for (std::size_t c = 0; c < d; ++c) gradient[c] *= widest * sigmoid(w[c]) * (1 - sigmoid(w[c]));
    for (std::size_t p = 0; p < w.size(); ++p) {  // Adam (Kingma & Ba 2015)
      mean[p] = slow * mean[p] + (1 - slow) * gradient[p];
      square[p] = slower * square[p] + (1 - slower) * gradient[p] * gradient[p];
      const double m = mean[p] / (1 - std::pow(slow, step + 1)), v = square[p] / (1 - std::pow(slower, step + 1));
      w[p] -= rate * m / (std::sqrt(v) + 1e-12);
    }
  }
  best.losses = fit.losses;
  return best;
}

}  // namespace headscope::mechanism
