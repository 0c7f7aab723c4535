#include "core/attention/mechanisms/polaformer_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/kernel.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/base/nth.h"

namespace headscope::mechanism {

namespace {

// Fits that are kept: of every head of a large model. A page asks for one three times, an edit again for every token.
constexpr std::size_t most_fits = 4096;

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

double polar_loss(const MechanismInput& in, const Tensor& target, const std::vector<double>& powers, double same,
                  double opposite, std::vector<double>* gradient) {
  const Index n = in.n(), m = in.m(), d = in.d(), d_v = in.d_v(), half = (d_v + 1) / 2;
  const double energy = std::max(std::pow(norm(target), 2), 1e-30);
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

namespace {

/// Of what a fit follows from: q, k, v, what is hidden, and what softmax makes of them.
struct Print {
  std::uint64_t a = 0xCBF29CE484222325ull, b = 0x9E3779B97F4A7C15ull;  // FNV-1a, and the same from another start
  auto operator<=>(const Print&) const = default;
  void add(std::uint32_t x) { a = (a ^ x) * 0x100000001B3ull, b = (b ^ x ^ (b >> 29)) * 0x9E3779B97F4A7C15ull; }
  void add(const Tensor& x) {
    for (Index axis = 0; axis < 2; ++axis) add(static_cast<std::uint32_t>(x.dim(axis)));
    for (const float value : x.packed().values()) add(std::bit_cast<std::uint32_t>(value));
  }
};

PolarFit fitted(const MechanismInput& in, const Tensor& target) {
  constexpr double rate = 0.15, slow = 0.9, slower = 0.999, widest = 4;
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
    fit.losses.push_back(polar_loss(in, target, fit.powers, fit.same, fit.opposite, &gradient));
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

}  // namespace

PolarFit fit_polar(const MechanismInput& whole) {
  const MechanismInput in = first_tokens(whole, most_fitted_tokens);
  const Tensor target = softmax_reference(in).output;
  Print print;
  for (const Tensor* each : {&in.q, &in.k, &in.v, &target}) print.add(*each);
  for (const std::uint8_t hidden : hidden_cells(*in.rule, in.n(), in.m())) print.add(hidden);
  static std::mutex mutex;
  static std::map<Print, PolarFit> known;  // of a pure function: who asks first changes nothing
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = known.find(print); found != known.end()) return found->second;
  }
  PolarFit fit = fitted(in, target);
  const std::scoped_lock lock(mutex);
  if (known.size() >= most_fits) known.clear();
  return known.insert_or_assign(print, std::move(fit)).first->second;
}

}  // namespace headscope::mechanism
