#include "core/model/plain_parts.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/base/nth.h"

namespace headscope::plain {

using std::numbers::pi;

double number(const Tensor& t, Index i) {
  return static_cast<double>(t.at(i));
}

Table product(const Table& x, const Tensor& given, const Tensor& bias, const std::stop_token& stop) {
  const Tensor weight = given.floats();
  Table y(x.rows, weight.dim(1));
  std::vector<double> w(static_cast<std::size_t>(y.columns));  // of one input
  for (Index in = 0; in < x.columns; ++in) {
    if (stop.stop_requested()) throw Cancelled();
    for (Index out = 0; out < y.columns; ++out) nth(w, out) = static_cast<double>(weight.at(in, out));
    for (Index row = 0; row < x.rows; ++row)
      for (Index out = 0; out < y.columns; ++out) y.at(row, out) += x.at(row, in) * nth(w, out);
  }
  if (bias.defined())
    for (Index row = 0; row < y.rows; ++row)
      for (Index out = 0; out < y.columns; ++out) y.at(row, out) += number(bias, out);
  return y;
}

void normalize(const ModelConfig& c, NormKind kind, Table& x, Index first, Index width, const Tensor& gain,
               const Tensor& bias, Index first_gain, std::optional<double> epsilon) {
  if (kind == NormKind::none) return;
  const auto n = static_cast<double>(width);
  const Tensor gains = gain.defined() ? gain.reshape({gain.size()}) : gain;  // a row for each head: one after another
  const Tensor biases = bias.defined() ? bias.reshape({bias.size()}) : bias;
  for (Index row = 0; row < x.rows; ++row) {
    double mean = 0, square = 0;
    if (kind == NormKind::layer_norm)
      for (Index i = 0; i < width; ++i) mean += x.at(row, first + i) / n;
    for (Index i = 0; i < width; ++i) square += std::pow(x.at(row, first + i) - mean, 2) / n;
    for (Index i = 0; i < width; ++i) {
      double& value = x.at(row, first + i);
      value = (value - mean) / std::sqrt(square + epsilon.value_or(c.norm_epsilon));
      if (gains.defined()) value *= number(gains, first_gain + i);
      if (biases.defined()) value += number(biases, first_gain + i);
    }
  }
}

double softplus(double x) {
  return x > 30 ? x : std::log1p(std::exp(x));
}

double activated(Activation f, double x, const Tensor& learned) {
  switch (f) {
    case Activation::xielu: {
      const double beta = number(learned, 2);
      if (x > 0) return softplus(number(learned, 0)) * x * x + beta * x;
      return (std::expm1(std::min(x, number(learned, 3))) - x) * (beta + softplus(number(learned, 1))) + beta * x;
    }
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::relu2:
      return std::pow(std::max(x, 0.0), 2);
    case Activation::gelu:
      return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
    case Activation::quick_gelu:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::silu:
    case Activation::solu:  // whose rows are made at once
      break;
  }
  return x / (1 + std::exp(-x));
}

void activate(Activation f, Table& x, const Tensor& learned) {
  if (f != Activation::solu) {
    for (double& value : x.values) value = activated(f, value, learned);
    return;
  }
  for (Index row = 0; row < x.rows; ++row) {
    double most = x.at(row, 0), total = 0;
    for (Index i = 0; i < x.columns; ++i) most = std::max(most, x.at(row, i));
    for (Index i = 0; i < x.columns; ++i) total += std::exp(x.at(row, i) - most);
    for (Index i = 0; i < x.columns; ++i) x.at(row, i) *= std::exp(x.at(row, i) - most) / total;
  }
}

void round_rows(Table& x, int bits) {
  if (bits <= 0) return;
  const double most = std::pow(2.0, bits - 1) - 1;
  for (Index row = 0; row < x.rows; ++row) {
    double largest = 1e-5;
    for (Index i = 0; i < x.columns; ++i) largest = std::max(largest, std::abs(x.at(row, i)));
    for (Index i = 0; i < x.columns; ++i)
      x.at(row, i) = std::clamp(std::nearbyint(x.at(row, i) * most / largest), -most - 1, most) * largest / most;
  }
}

Table columns(const Table& x, Index first, Index end) {
  Table out(x.rows, end - first);
  for (Index row = 0; row < x.rows; ++row)
    for (Index i = 0; i < out.columns; ++i) out.at(row, i) = x.at(row, first + i);
  return out;
}

void rotate_patches(const VisionConfig& v, Table& x, Index heads, Index d, double base) {
  for (Index row = v.leading; row < x.rows; ++row) {
    const double y = (2.0 * static_cast<double>((row - v.leading) / v.columns()) + 1) / v.rows() - 1,
                 over = (2.0 * static_cast<double>((row - v.leading) % v.columns()) + 1) / v.columns() - 1;
    for (Index head = 0; head < heads; ++head)
      for (Index i = 0; i < d / 2; ++i) {
        const bool by_row = i < d / 4;
        const double turn = std::pow(base, -4.0 * static_cast<double>(by_row ? i : i - d / 4) / static_cast<double>(d)),
                     angle = 2 * pi * (by_row ? y : over) * turn;
        double &first = x.at(row, head * d + i), &second = x.at(row, head * d + i + d / 2);
        const double p = first, q = second;
        first = p * std::cos(angle) - q * std::sin(angle);
        second = p * std::sin(angle) + q * std::cos(angle);
      }
  }
}

}  // namespace headscope::plain
