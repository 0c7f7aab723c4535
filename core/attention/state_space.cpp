#include "core/attention/state_space.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "core/base/error.h"
#include "core/base/nth.h"

namespace headscope {

namespace {

using Numbers = std::vector<double>;
using Complex = std::complex<double>;

Numbers times_vector(const Numbers& a, Index n, std::span<const double> x) {
  Numbers out(as_size(n), 0.0);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) out[as_size(i)] += a[as_size(i * n + j)] * x[as_size(j)];
  return out;
}

/// Solves M X = R for X, (n, columns), by elimination with pivots. M and R are used up.
Numbers solve(Numbers m, Numbers r, Index n, Index columns) {
  for (Index k = 0; k < n; ++k) {
    Index pivot = k;
    for (Index i = k + 1; i < n; ++i)
      if (std::abs(m[as_size(i * n + k)]) > std::abs(m[as_size(pivot * n + k)])) pivot = i;
    if (m[as_size(pivot * n + k)] == 0) throw Error("state space", "a matrix that can be inverted", "a singular one");
    for (Index j = 0; j < n; ++j) std::swap(m[as_size(k * n + j)], m[as_size(pivot * n + j)]);
    for (Index j = 0; j < columns; ++j) std::swap(r[as_size(k * columns + j)], r[as_size(pivot * columns + j)]);
    for (Index i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = m[as_size(i * n + k)] / m[as_size(k * n + k)];
      if (factor == 0) continue;
      for (Index j = k; j < n; ++j) m[as_size(i * n + j)] -= factor * m[as_size(k * n + j)];
      for (Index j = 0; j < columns; ++j) r[as_size(i * columns + j)] -= factor * r[as_size(k * columns + j)];
    }
  }
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < columns; ++j) r[as_size(i * columns + j)] /= m[as_size(i * n + i)];
  return r;
}

/// 1 + factor · A.
Numbers one_plus(double factor, const Numbers& a, Index n) {
  Numbers out = a;
  for (double& value : out) value *= factor;
  for (Index i = 0; i < n; ++i) out[as_size(i * n + i)] += 1;
  return out;
}

/// In place, radix 2 (Cooley & Tukey, 1965); the length is a power of two. Inverse without the division by it.
void transform(std::vector<Complex>& x, bool inverse) {
  const std::size_t n = x.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (std::size_t length = 2; length <= n; length *= 2) {
    const double angle = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(length);
    for (std::size_t i = 0; i < n; i += length)
      for (std::size_t k = 0; k < length / 2; ++k) {
        const Complex turned = x[i + k + length / 2] * std::polar(1.0, angle * static_cast<double>(k));
        x[i + k + length / 2] = x[i + k] - turned;
        x[i + k] += turned;
      }
  }
}

}  // namespace

std::vector<double> run_recurrence(const StateSpace& system, std::span<const double> u, std::vector<double>* states) {
  const Index n = system.size;
  Numbers x(as_size(n), 0.0), y;
  if (states) states->clear();
  for (const double input : u) {
    x = times_vector(system.a, n, x);
    double out = system.d * input;
    for (Index i = 0; i < n; ++i) {
      x[as_size(i)] += system.b[as_size(i)] * input;
      out += system.c[as_size(i)] * x[as_size(i)];
    }
    y.push_back(out);
    if (states) states->insert(states->end(), x.begin(), x.end());
  }
  return y;
}

std::vector<double> kernel(const StateSpace& system, Index n) {
  Numbers x = system.b, out;
  for (Index t = 0; t < n; ++t) {
    double sum = 0;
    for (Index i = 0; i < system.size; ++i) sum += system.c[as_size(i)] * x[as_size(i)];
    out.push_back(sum);
    x = times_vector(system.a, system.size, x);
  }
  return out;
}

std::vector<double> convolve(std::span<const double> k, std::span<const double> u) {
  Numbers y(u.size(), 0.0);
  for (std::size_t t = 0; t < u.size(); ++t)
    for (std::size_t s = 0; s <= t && s < k.size(); ++s) y[t] += k[s] * u[t - s];
  return y;
}

std::vector<double> convolve_fft(std::span<const double> k, std::span<const double> u) {
  std::size_t length = 1;
  while (length < 2 * std::max(k.size(), u.size())) length *= 2;
  std::vector<Complex> a(length), b(length);
  for (std::size_t i = 0; i < k.size(); ++i) a[i] = k[i];
  for (std::size_t i = 0; i < u.size(); ++i) b[i] = u[i];
  transform(a, false);
  transform(b, false);
  for (std::size_t i = 0; i < length; ++i) a[i] *= b[i];
  transform(a, true);
  Numbers y(u.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i].real() / static_cast<double>(length);
  return y;
}

StateSpace discretize(const StateSpace& continuous, double step, Discretization how) {
  const Index n = continuous.size;
  StateSpace out = continuous;
  if (how == Discretization::zero_order_hold) {
    if (n != 1) throw Error("zero-order hold", "an A of one number", std::to_string(n) + " × " + std::to_string(n));
    const double a = continuous.a[0];
    out.a[0] = std::exp(step * a);
    out.b[0] = (a == 0 ? step : std::expm1(step * a) / a) * continuous.b[0];
    return out;
  }
  const Numbers left = one_plus(-step / 2, continuous.a, n);
  out.a = solve(left, one_plus(step / 2, continuous.a, n), n, n);
  Numbers b = continuous.b;
  for (double& value : b) value *= step;
  out.b = solve(left, std::move(b), n, 1);
  return out;
}

std::vector<double> hippo_matrix(Index size) {
  Numbers a(as_size(size * size), 0.0);
  for (Index n = 0; n < size; ++n)
    for (Index k = 0; k <= n; ++k)
      a[as_size(n * size + k)] =
          n == k ? static_cast<double>(n + 1) : std::sqrt(static_cast<double>((2 * n + 1) * (2 * k + 1)));
  return a;
}

std::vector<double> hippo_input(Index size) {
  Numbers b;
  for (Index n = 0; n < size; ++n) b.push_back(std::sqrt(static_cast<double>(2 * n + 1)));
  return b;
}

std::vector<double> hippo_memory(std::span<const double> u, Index size) {
  const Numbers a = hippo_matrix(size), b = hippo_input(size);
  Numbers x(as_size(size), 0.0), states;
  for (std::size_t i = 0; i < u.size(); ++i) {
    // x' = (−A x + B u) / t over the step to t, bilinear: (1 + A/2t) x_new = (1 − A/2t) x_old + B u / t.
    const double t = static_cast<double>(i + 1);
    Numbers right = times_vector(one_plus(-0.5 / t, a, size), size, x);
    for (Index n = 0; n < size; ++n) right[as_size(n)] += b[as_size(n)] * u[i] / t;
    x = solve(one_plus(0.5 / t, a, size), std::move(right), size, 1);
    states.insert(states.end(), x.begin(), x.end());
  }
  return states;
}

std::vector<double> hippo_recall(std::span<const double> state, Index t) {
  Numbers out;
  for (Index s = 0; s < t; ++s) {
    const double z = 2 * (static_cast<double>(s) + 0.5) / static_cast<double>(t) - 1;
    double before = 0, legendre = 1, sum = 0;  // P_{n−1}, P_n
    for (std::size_t n = 0; n < state.size(); ++n) {
      const auto order = static_cast<double>(n);
      sum += state[n] * std::sqrt(2 * order + 1) * legendre;
      const double next = ((2 * order + 1) * z * legendre - order * before) / (order + 1);
      before = legendre;
      legendre = next;
    }
    out.push_back(sum);
  }
  return out;
}

}  // namespace headscope
